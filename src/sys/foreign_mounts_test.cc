#include "sys/foreign_mounts.h"

#include <filesystem>

#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "sys/files.h"
#include "sys/test_directory.h"

namespace trainyard::sys {
namespace {

/// A line of /proc/self/mountinfo for the file system on which `path` is, as mounted by user 23002.
std::string mounted_by_another(const std::string& path) {
  struct stat about{};
  EXPECT_EQ(::stat(path.c_str(), &about), 0);
  return fmt::format(
      "22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n"
      "63 43 {}:{} / /mnt rw,relatime shared:7 - fuse.x user_id=0 "
      "rw,user_id=23002,group_id=23002\n",
      major(about.st_dev), minor(about.st_dev));
}

TEST(ForeignMounts, HaveNoPlaceForWhatIsOnTheFileSystemOfAnotherUser) {
  if (!open_cached("/proc").is_open()) GTEST_SKIP() << "only since Linux 5.12";
  const TemporaryDirectory directory;
  const auto foreign = ForeignMounts::in(mounted_by_another(directory.path()), 23001);
  EXPECT_EQ(foreign.place_of(directory.path()), std::nullopt);
  EXPECT_EQ(foreign.place_of("/proc"), "/proc");
  EXPECT_EQ(foreign.place_of("/proc/absent"), std::nullopt);
}

TEST(ForeignMounts, AreNoneOfTheUserAndOfRoot) {
  const TemporaryDirectory directory;
  const std::string its = mounted_by_another(directory.path());
  EXPECT_EQ(ForeignMounts::in(its, 23002).place_of(directory.path()), directory.path());
  const std::string roots = "63 43 0:39 / /mnt rw - fuse.x y rw,user_id=0,group_id=0\n";
  EXPECT_EQ(ForeignMounts::in(roots, 23001).place_of("/absent"), "/absent") << "not looked at";
  for (const char* const bad : {"", "\n", "63", "63 43 0 - fuse x user_id=9", "a - b\n - fuse"}) {
    EXPECT_EQ(ForeignMounts::in(bad, 23001).place_of("/absent"), "/absent") << bad;
  }
}

TEST(ForeignMounts, ResolveLinks) {
  if (!open_cached("/proc").is_open()) GTEST_SKIP() << "only since Linux 5.12";
  const TemporaryDirectory directory;
  std::filesystem::create_directories(directory / "real/trainyard-1");
  std::filesystem::create_directory_symlink(directory / "real", directory / "link");
  if (!open_cached(directory / "link/.").is_open()) {
    GTEST_SKIP() << "the file system is always asked here";  // As the overlay of a container.
  }
  const auto foreign = ForeignMounts::in(mounted_by_another("/proc"), 23001);
  const std::filesystem::path real = std::filesystem::canonical(directory / "real");
  EXPECT_EQ(foreign.place_of(directory / "link"), real.string());
  EXPECT_EQ(foreign.place_of(directory / "link/trainyard-1"), (real / "trainyard-1").string());
}

}  // namespace
}  // namespace trainyard::sys
