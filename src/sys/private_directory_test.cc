#include "sys/private_directory.h"

#include <filesystem>

#include <sys/stat.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "sys/files.h"
#include "sys/test_directory.h"

namespace trainyard::sys {
namespace {

using std::filesystem::perms;

TEST(PrivateDirectory, IsForItsUserAloneWhateverItWasBefore) {
  const TemporaryDirectory place;
  const mode_t before = ::umask(0);
  EXPECT_TRUE(make_own_directory(place / "a/b"));
  EXPECT_EQ(std::filesystem::status(place / "a/b").permissions(), perms::owner_all);
  place.make("open");
  ::umask(before);
  EXPECT_TRUE(make_own_directory(place / "open"));
  EXPECT_EQ(std::filesystem::status(place / "open").permissions(), perms::owner_all);
}

TEST(PrivateDirectory, IsNoLinkToAnotherOfTheUserWhichStaysAsItIs) {
  const TemporaryDirectory place;
  place.make("mine");
  std::filesystem::permissions(place / "mine", perms::owner_all | perms::group_all);
  std::filesystem::create_symlink(place / "mine", place / "link");
  const auto made = make_own_directory(place / "link");
  ASSERT_FALSE(made.has_value());
  EXPECT_EQ(made.error().message,
            "'" + place.path() + "/link' is a symbolic link, not a directory");
  EXPECT_EQ(std::filesystem::status(place / "mine").permissions(),
            perms::owner_all | perms::group_all);
}

TEST(PrivateDirectory, IsNeitherAFileNorAnotherUsers) {
  const TemporaryDirectory place;
  place.write("file", "");
  EXPECT_EQ(make_own_directory(place / "file").error().message,
            "'" + place.path() + "/file' is a file, not a directory");
  place.make("others");
  if (::geteuid() != 0) GTEST_SKIP() << "only root makes a directory of another user";
  ASSERT_EQ(::chown((place / "others").c_str(), 1, 1), 0);
  EXPECT_EQ(make_own_directory(place / "others").error().message,
            "'" + place.path() + "/others' is another user's");
}

}  // namespace
}  // namespace trainyard::sys
