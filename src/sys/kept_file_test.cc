// Another text in a file that a person keeps.
#include "sys/kept_file.h"

#include <filesystem>

#include <sys/stat.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/bytes.h"
#include "sys/files.h"
#include "sys/test_directory.h"

namespace trainyard::sys {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

unsigned mode_of(const std::string& path) {
  struct stat about{};
  EXPECT_EQ(::stat(path.c_str(), &about), 0);
  return about.st_mode & 07777U;
}

TEST(KeptFile, HasTheNewTextWithTheOldModeAndNothingIsLeftBesideIt) {
  const TemporaryDirectory place;
  const std::string path = place / "job.yaml";
  ASSERT_TRUE(write_file_atomically(path, "old"));
  ASSERT_TRUE(write_file_atomically(place / "job.yaml.new", "mine"));
  ASSERT_EQ(::chmod(path.c_str(), 0640), 0);
  EXPECT_TRUE(rewrite_kept_file(path, "old", "new, and longer"));
  EXPECT_EQ(read_file(path, kib(1)).value(), "new, and longer");
  EXPECT_EQ(mode_of(path), 0640U);
  EXPECT_THAT(names_in(place.path()), UnorderedElementsAre("job.yaml", "job.yaml.new"));
  EXPECT_EQ(read_file(place / "job.yaml.new", kib(1)).value(), "mine") << "it is another file";
}

TEST(KeptFile, IsTheOneThatALinkLeadsTo) {
  const TemporaryDirectory place;
  ASSERT_TRUE(make_directories(place / "kept"));
  ASSERT_TRUE(write_file_atomically(place / "kept/job.yaml", "old"));
  std::filesystem::create_symlink("kept/job.yaml", place / "job.yaml");
  EXPECT_TRUE(rewrite_kept_file(place / "job.yaml", "old", "new"));
  EXPECT_TRUE(std::filesystem::is_symlink(place / "job.yaml"));
  EXPECT_EQ(read_file(place / "kept/job.yaml", kib(1)).value(), "new");
  EXPECT_THAT(names_in(place / "kept"), ElementsAre("job.yaml"));
}

TEST(KeptFile, IsLeftAsItIsWhereSomebodyHasChangedItMeanwhile) {
  const TemporaryDirectory place;
  const std::string path = place / "job.yaml";
  for (const char* const now : {"other", "", "older", "ol"}) {
    ASSERT_TRUE(write_file_atomically(path, now));
    EXPECT_THAT(rewrite_kept_file(path, "old", "new").error().message,
                HasSubstr("has changed since it was read: nothing was written"));
    EXPECT_EQ(read_file(path, kib(1)).value(), now);
    EXPECT_THAT(names_in(place.path()), ElementsAre("job.yaml"));
  }
}

TEST(KeptFile, IsLeftAsItIsWhereItWouldNotBeTheSameFile) {
  const TemporaryDirectory place;
  const std::string path = place / "job.yaml";
  EXPECT_THAT(rewrite_kept_file(path, "old", "new").error().message, HasSubstr("no such file"));
  ASSERT_TRUE(make_directories(place / "directory"));
  EXPECT_THAT(rewrite_kept_file(place / "directory", "", "new").error().message,
              HasSubstr("is not a regular file"));
  ASSERT_TRUE(write_file_atomically(path, "old"));
  ASSERT_EQ(::link(path.c_str(), (place / "second").c_str()), 0);
  EXPECT_THAT(rewrite_kept_file(path, "old", "new").error().message, HasSubstr("a second name"));
  EXPECT_EQ(read_file(path, kib(1)).value(), "old");
  ASSERT_EQ(::unlink((place / "second").c_str()), 0);
  if (::geteuid() == 0) return;  // Root may write everything.
  ASSERT_EQ(::chmod(path.c_str(), 0444), 0);
  EXPECT_THAT(rewrite_kept_file(path, "old", "new").error().message,
              HasSubstr("permission denied"));
  EXPECT_EQ(read_file(path, kib(1)).value(), "old");
}

}  // namespace
}  // namespace trainyard::sys
