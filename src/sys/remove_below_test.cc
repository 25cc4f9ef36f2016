// Only the entries of the directory are deleted, and nothing that they lead to.
#include "sys/remove_below.h"

#include <filesystem>

#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sys/files.h"
#include "sys/test_directory.h"

namespace trainyard::sys {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

TEST(RemoveBelow, DeletesAllButWhatIsKeptAndSaysHowMuchThatWas) {
  const TemporaryDirectory run;
  run.make("a");
  run.make("a/checkpoints");
  run.write("a/checkpoints/1.pt", "12345");
  run.write("a/model.pt", "123");
  run.write("a/stdout.log", "kept");
  run.write("beside.txt", "kept");
  const auto is_log = [](std::string_view name) { return name.ends_with(".log"); };
  const Removed looked =
      remove_below({.root = run.path(), .directory = "a", .kept = is_log, .only_look = true});
  EXPECT_EQ(looked.bytes, Bytes{8});
  EXPECT_EQ(looked.entries, 3U);
  EXPECT_TRUE(std::filesystem::exists(run / "a/checkpoints/1.pt"));
  const Removed removed = remove_below({.root = run.path(), .directory = "a", .kept = is_log});
  EXPECT_EQ(removed.bytes, Bytes{8});
  EXPECT_EQ(removed.entries, 3U) << "with the directory below";
  EXPECT_THAT(removed.failed, IsEmpty());
  EXPECT_THAT(names_in(run / "a"), ElementsAre("stdout.log"));
  EXPECT_TRUE(std::filesystem::exists(run / "beside.txt"));
}

TEST(RemoveBelow, DeletesALinkAndNotWhatItLeadsTo) {
  const TemporaryDirectory run;
  const TemporaryDirectory outside;
  outside.write("precious.pt", "precious");
  run.make("a");
  run.make("a/sub");
  std::filesystem::create_symlink(outside.path(), run / "a/directory");
  std::filesystem::create_symlink(outside / "precious.pt", run / "a/sub/file");
  const Removed removed = remove_below({.root = run.path(), .directory = "a"});
  EXPECT_EQ(removed.bytes, Bytes{0});
  EXPECT_THAT(names_in(run / "a"), IsEmpty());
  EXPECT_THAT(names_in(outside.path()), ElementsAre("precious.pt"));
}

TEST(RemoveBelow, GoesThroughNoLinkOnTheWayAndToNoPlaceAbove) {
  const TemporaryDirectory run;
  const TemporaryDirectory outside;
  outside.make("a");
  outside.write("a/precious.pt", "precious");
  std::filesystem::create_symlink(outside.path(), run / "group");
  std::filesystem::create_symlink(outside / "a", run / "task");
  const std::string up = "../" + std::filesystem::path(outside.path()).filename().string() + "/a";
  for (const std::string& directory : {std::string("group/a"), std::string("task"), up}) {
    EXPECT_EQ(remove_below({.root = run.path(), .directory = directory}).bytes, Bytes{0})
        << directory;
  }
  EXPECT_THAT(names_in(outside / "a"), ElementsAre("precious.pt"));
  EXPECT_THAT(remove_below({.root = run.path(), .directory = "none"}).failed, IsEmpty());
}

TEST(RemoveBelow, CountsAFileOfSeveralNamesWhenTheLastIsGone) {
  const TemporaryDirectory run;
  run.make("a");
  run.write("a/last.pt", "12345");
  std::filesystem::create_hard_link(run / "a/last.pt", run / "a/best.pt");
  run.write("a/shared.pt", "123");
  std::filesystem::create_hard_link(run / "a/shared.pt", run / "elsewhere.pt");
  EXPECT_EQ(remove_below({.root = run.path(), .directory = "a"}).bytes, Bytes{5});
  EXPECT_EQ(content_of(run / "elsewhere.pt"), "123");
}

TEST(RemoveBelow, GoesOnBehindWhatCannotBeDeletedAndSaysWhatThatIs) {
  if (::geteuid() == 0) GTEST_SKIP() << "root may delete anything";
  const TemporaryDirectory run;
  run.make("a");
  run.make("a/locked");
  for (int i = 0; i < 12; ++i) run.write("a/locked/" + std::to_string(i), "x");
  run.write("a/model.pt", "123");
  std::filesystem::permissions(
      run / "a/locked", std::filesystem::perms::owner_read | std::filesystem::perms::owner_exec);
  const Removed removed = remove_below({.root = run.path(), .directory = "a"});
  std::filesystem::permissions(run / "a/locked", std::filesystem::perms::owner_all);
  EXPECT_EQ(removed.bytes, Bytes{3});
  EXPECT_EQ(removed.failed.size(), Removed::kFailedMax);
  EXPECT_THAT(removed.failed.front(), HasSubstr("a/locked/"));
  EXPECT_THAT(names_in(run / "a"), UnorderedElementsAre("locked"));
}

}  // namespace
}  // namespace trainyard::sys
