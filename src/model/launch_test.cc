#include "model/launch.h"

#include <gtest/gtest.h>

namespace trainyard::model {
namespace {

TEST(Elsewhere, HasTheSamePlacesBelowItsDirectories) {
  const Elsewhere elsewhere{
      .run = {.here = "/home/me/proj/runs/a", .there = "/data/proj/.trainyard/a-1"},
      .work = {.here = "/home/me/proj", .there = "/data/proj"}};
  EXPECT_EQ(elsewhere.place_of("/home/me/proj"), "/data/proj");
  EXPECT_EQ(elsewhere.place_of("/home/me/proj/src/x"), "/data/proj/src/x");
  EXPECT_EQ(elsewhere.place_of("/home/me/proj/runs/a/train/1"), "/data/proj/.trainyard/a-1/train/1")
      << "the run's own comes first";
  EXPECT_EQ(elsewhere.place_of("/home/me/proj/runs/ab"), "/data/proj/runs/ab");
  EXPECT_EQ(elsewhere.place_of("/home/me/project"), "/home/me/project");
  EXPECT_EQ(elsewhere.place_of("/usr/bin"), "/usr/bin");
}

TEST(Elsewhere, IsNowhereElseWhereNothingIsSaid) { EXPECT_EQ(Elsewhere{}.place_of("/a"), "/a"); }

}  // namespace
}  // namespace trainyard::model
