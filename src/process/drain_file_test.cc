#include "process/drain_file.h"

#include <filesystem>
#include <fstream>

#include <sys/stat.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "sys/files.h"
#include "sys/test_directory.h"

namespace trainyard::process {
namespace {

/// The only directory in which a user's drains are.
std::string place_in(const std::string& board) {
  for (const std::string& name : sys::names_in(board)) {
    if (name.starts_with("trainyard-drain.")) return board + "/" + name;
  }
  ADD_FAILURE() << "nothing is drained";
  return {};
}

TEST(DrainFile, WhatIsWrittenIsReadUntilItIsTakenBack) {
  const sys::TemporaryDirectory directory;
  const std::vector<std::string> here{directory / "board"};
  EXPECT_TRUE(read_drains(here).empty());
  const std::vector<model::Drain> drains{{.uuid = "GPU-1", .until_unix_s = 7, .now = true}};
  ASSERT_TRUE(write_own_drains(here, drains).has_value());
  EXPECT_EQ(read_drains(here), drains);
  EXPECT_EQ(read_own_drains(here), drains);
  ASSERT_TRUE(write_own_drains(here, {}).has_value());
  EXPECT_TRUE(read_drains(here).empty());
  ASSERT_TRUE(write_own_drains(here, {}).has_value()) << "there is nothing to take back";
  EXPECT_TRUE(sys::names_in(here.front()).empty());
}

TEST(DrainFile, TheLastOneTakesThePlaceOfTheOneBefore) {
  const sys::TemporaryDirectory directory;
  const std::vector<std::string> here{directory / "board"};
  ASSERT_TRUE(write_own_drains(here, {{.uuid = "GPU-1"}}).has_value());
  ASSERT_TRUE(write_own_drains(here, {{.uuid = "GPU-2"}}).has_value());
  EXPECT_EQ(read_drains(here), (std::vector<model::Drain>{{.uuid = "GPU-2"}}));
}

TEST(DrainFile, ADrainIsReadFromWhicheverDirectoryItCouldBeWrittenTo) {
  const sys::TemporaryDirectory directory;
  std::filesystem::create_directory(directory / "closed");
  const std::vector<std::string> second{directory / "board"};
  ASSERT_TRUE(write_own_drains(second, {{.uuid = "GPU-1"}}).has_value());
  EXPECT_EQ(read_drains({directory / "closed", second.front()}), read_drains(second));
}

TEST(DrainFile, FilesOfAnotherUserAreNotInTheWay) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root becomes another user";
  const sys::TemporaryDirectory directory;
  ASSERT_EQ(::chmod(directory.path().c_str(), 0755), 0);
  const std::vector<std::string> here{directory / "board"};
  ASSERT_TRUE(write_own_drains(here, {{.uuid = "GPU-1"}}).has_value()) << "makes the directory";
  constexpr uid_t kUser = 65533;
  for (const char* const end : {"", ".new", "."}) {
    const std::string path = fmt::format("{}/trainyard-drain.{}{}", here.front(), kUser, end);
    std::ofstream(path) << "GPU-3 until=0 now=0\n";
    ASSERT_EQ(::chown(path.c_str(), 65534, 65534), 0);
  }
  const pid_t user = ::fork();
  if (user == 0) {
    if (::setresuid(kUser, kUser, kUser) != 0) ::_exit(3);
    if (!write_own_drains(here, {{.uuid = "GPU-2"}})) ::_exit(1);
    ::_exit(read_own_drains(here) == std::vector<model::Drain>{{.uuid = "GPU-2"}} ? 0 : 2);
  }
  ASSERT_GT(user, 0);
  int status = 0;
  ASSERT_EQ(::waitpid(user, &status, 0), user);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(DrainFile, WhatAnotherUserHasPutInOurPlaceCountsForNothing) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root gives files away";
  const sys::TemporaryDirectory directory;
  const std::vector<std::string> here{directory / "board"};
  ASSERT_TRUE(write_own_drains(here, {{.uuid = "GPU-1"}}).has_value());
  const std::string place = place_in(here.front());
  ASSERT_EQ(::chown((place + "/gpus").c_str(), 65534, 65534), 0);
  EXPECT_TRUE(read_drains(here).empty());
  ASSERT_EQ(::chown((place + "/gpus").c_str(), 0, 0), 0);
  EXPECT_EQ(read_drains(here).size(), 1U);
  ASSERT_EQ(::chown(place.c_str(), 65534, 65534), 0);
  EXPECT_TRUE(read_drains(here).empty());
}

TEST(DrainFile, ALinkIsNotFollowed) {
  const sys::TemporaryDirectory directory;
  const std::vector<std::string> here{directory / "board"};
  ASSERT_TRUE(write_own_drains(here, {{.uuid = "GPU-1"}}).has_value());
  const std::string place = place_in(here.front());
  const std::string elsewhere = here.front() + "/elsewhere";
  std::filesystem::rename(place, elsewhere);
  std::filesystem::create_symlink(elsewhere, place);
  EXPECT_TRUE(read_drains(here).empty());
  std::filesystem::remove(place);
  std::filesystem::rename(elsewhere, place);
  EXPECT_EQ(read_drains(here).size(), 1U);
  std::filesystem::rename(place + "/gpus", place + "/elsewhere");
  std::filesystem::create_symlink("elsewhere", place + "/gpus");
  EXPECT_TRUE(read_drains(here).empty());
}

}  // namespace
}  // namespace trainyard::process
