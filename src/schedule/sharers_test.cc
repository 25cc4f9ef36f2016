#include "schedule/sharers.h"

#include <gtest/gtest.h>

namespace trainyard::schedule {
namespace {

constexpr int kWhole = 1000;

TEST(Sharers, AdmitAnyNumberOfThoseOfWhichNothingIsWritten) {
  Sharers sharers;
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(sharers.admit({}, kWhole));
    sharers.add({});
  }
  EXPECT_EQ(sharers.tasks(), 100);
  EXPECT_EQ(sharers.tasks_max(), 0);
}

TEST(Sharers, AdmitNoMoreThanTheStrictestOfThemLetsBeThere) {
  Sharers sharers;
  sharers.add({.max_per_gpu = 3});
  EXPECT_TRUE(sharers.admit({}, kWhole));
  EXPECT_FALSE(sharers.admit({.max_per_gpu = 1}, kWhole)) << "the one that comes is one of them";
  sharers.add({.max_per_gpu = 2});
  EXPECT_EQ(sharers.tasks_max(), 2);
  EXPECT_FALSE(sharers.admit({}, kWhole));
  sharers.remove({.max_per_gpu = 2});
  EXPECT_EQ(sharers.tasks_max(), 3);
  EXPECT_TRUE(sharers.admit({.max_per_gpu = 2}, kWhole));
}

TEST(Sharers, AdmitNoMoreUseThanTheLimitAndOneThatIsAlone) {
  Sharers sharers;
  EXPECT_TRUE(sharers.admit({.utilization = 1000}, 800)) << "it would never run";
  sharers.add({.utilization = 500});
  EXPECT_TRUE(sharers.admit({.utilization = 300}, 800));
  EXPECT_FALSE(sharers.admit({.utilization = 301}, 800));
  EXPECT_TRUE(sharers.admit({}, 800)) << "of what nobody said nothing is known";
  sharers.remove({.utilization = 500});
  EXPECT_EQ(sharers.utilization(), 0);
  EXPECT_EQ(sharers.tasks(), 0);
}

}  // namespace
}  // namespace trainyard::schedule
