#include "process/drain_file.h"

#include <filesystem>
#include <string>
#include <vector>

#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "model/gpu_limits.h"
#include "sys/test_directory.h"

namespace trainyard::process {
namespace {

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
}

TEST(DrainFile, WhatAnotherUserHasPutInOurPlaceCountsForNothing) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root gives files away";
  const sys::TemporaryDirectory directory;
  const std::vector<std::string> here{directory / "board"};
  ASSERT_TRUE(write_own_drains(here, {{.uuid = "GPU-1"}}).has_value());
  const std::string path = fmt::format("{}/drain.{}", here.front(), ::geteuid());
  ASSERT_EQ(::chown(path.c_str(), 65534, 65534), 0);
  EXPECT_TRUE(read_drains(here).empty());
}

TEST(DrainFile, ALinkIsNotFollowed) {
  const sys::TemporaryDirectory directory;
  const std::vector<std::string> here{directory / "board"};
  ASSERT_TRUE(write_own_drains(here, {{.uuid = "GPU-1"}}).has_value());
  const std::string path = fmt::format("{}/drain.{}", here.front(), ::geteuid());
  std::filesystem::rename(path, path + ".elsewhere");
  std::filesystem::create_symlink(path + ".elsewhere", path);
  EXPECT_TRUE(read_drains(here).empty());
}

}  // namespace
}  // namespace trainyard::process
