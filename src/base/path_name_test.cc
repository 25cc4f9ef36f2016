#include "base/path_name.h"

#include <gtest/gtest.h>

namespace trainyard {
namespace {

TEST(PathName, LiesInADirectoryThatItIsOrIsBelow) {
  EXPECT_TRUE(lies_in("/a/b", "/a/b"));
  EXPECT_TRUE(lies_in("/a/b/c", "/a/b"));
  EXPECT_FALSE(lies_in("/a/bc", "/a/b"));
  EXPECT_FALSE(lies_in("/a", "/a/b"));
}

TEST(PathName, SaysWhetherAPartOfItGoesUp) {
  for (const char* const path : {"..", "../a", "a/..", "/a/../b", "a/b/.."}) {
    EXPECT_TRUE(goes_up(path)) << path;
  }
  for (const char* const path : {"", "a", "/", "...", "a..b/..c/d..", "."}) {
    EXPECT_FALSE(goes_up(path)) << path;
  }
}

TEST(PathName, IsMadeAbsoluteAndShort) {
  EXPECT_EQ(absolute_path("a/b", "/base"), "/base/a/b");
  EXPECT_EQ(absolute_path("./a/../b/", "/base"), "/base/b");
  EXPECT_EQ(absolute_path("/x//y/.", "/base"), "/x/y");
  EXPECT_EQ(absolute_path("../..", "/base"), "/");
  EXPECT_EQ(absolute_path(".", "/base/"), "/base");
  EXPECT_EQ(absolute_path("", "/base"), "/base");
}

}  // namespace
}  // namespace trainyard
