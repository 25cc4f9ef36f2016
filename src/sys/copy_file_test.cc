#include "sys/copy_file.h"

#include <chrono>
#include <cstddef>
#include <filesystem>

#include <sys/stat.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sys/test_directory.h"

namespace trainyard::sys {
namespace {

using ::testing::HasSubstr;
namespace fs = std::filesystem;

TEST(CopyFile, TakesBytesPermissionsAndTimeOver) {
  const TemporaryDirectory directory;
  // More than is read at once.
  const std::string text(std::size_t{300'000}, 'x');
  directory.write("script", text);
  ASSERT_EQ(::chmod((directory / "script").c_str(), 0550), 0);
  const auto long_ago = fs::last_write_time(directory / "script") - std::chrono::hours(100);
  fs::last_write_time(directory / "script", long_ago);
  const Result<bool> copied = copy_file({.from = directory / "script", .to = directory / "copy"});
  ASSERT_TRUE(copied.has_value());
  EXPECT_TRUE(*copied);
  EXPECT_TRUE(content_of(directory / "copy") == text);
  EXPECT_EQ(fs::status(directory / "copy").permissions(),
            fs::perms::owner_read | fs::perms::owner_exec | fs::perms::group_read |
                fs::perms::group_exec);
  EXPECT_EQ(fs::last_write_time(directory / "copy"), long_ago);
}

TEST(CopyFile, IsNoOtherNameOfTheOriginal) {
  const TemporaryDirectory directory;
  directory.write("script", "old");
  ASSERT_TRUE(copy_file({.from = directory / "script", .to = directory / "copy"}).value());
  directory.write("script", "new");
  EXPECT_EQ(content_of(directory / "copy"), "old");
}

TEST(CopyFile, FromAnotherFileSystemIsReadAndWritten) {
  const TemporaryDirectory memory(TemporaryDirectory::in_memory());
  const TemporaryDirectory directory;
  const std::string text(std::size_t{300'000}, 'y');
  memory.write("data", text);
  ASSERT_TRUE(copy_file({.from = memory / "data", .to = directory / "copy"}).value());
  EXPECT_TRUE(content_of(directory / "copy") == text);
}

TEST(CopyFile, MakesNothingWhereThereIsNoPlainFile) {
  const TemporaryDirectory directory;
  ASSERT_EQ(::mkfifo((directory / "pipe").c_str(), 0600), 0);
  fs::create_symlink("pipe", directory / "link");
  for (const std::string name : {"none", "pipe", "link", "none/below", "."}) {
    const Result<bool> copied = copy_file({.from = directory / name, .to = directory / "copy"});
    ASSERT_TRUE(copied.has_value()) << name;
    EXPECT_FALSE(*copied) << name;
    EXPECT_FALSE(fs::exists(directory / "copy")) << name;
  }
}

TEST(CopyFile, NamesTheFileThatCannotBeWritten) {
  const TemporaryDirectory directory;
  directory.write("script", "mine");
  directory.write("there", "theirs");
  const Result<bool> copied = copy_file({.from = directory / "script", .to = directory / "there"});
  ASSERT_FALSE(copied.has_value());
  EXPECT_THAT(copied.error().message, HasSubstr("cannot write '" + (directory / "there")));
  EXPECT_EQ(content_of(directory / "there"), "theirs");
}

}  // namespace
}  // namespace trainyard::sys
