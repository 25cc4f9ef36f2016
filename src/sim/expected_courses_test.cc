#include "sim/expected_courses.h"

#include <vector>

#include <gtest/gtest.h>

#include "base/bytes.h"
#include "base/time.h"
#include "model/plan.h"
#include "model/resources.h"
#include "sim/play_run.h"

namespace trainyard::sim {
namespace {

/// Of two tasks nobody knows how long the second takes; of the third, on a GPU, how much it uses.
model::Plan three_kinds() {
  model::Plan plan;
  plan.groups = {{.name = "train"}};
  plan.shapes = {
      {.group = {0},
       .terms = {.request = {.memory = gb(1),
                             .gpus = 1,
                             .gpu_memory = gb(2),
                             .sharing = {.utilization = 300}},
                 .load_expected = Duration{5},
                 .train_expected = Duration{100}}},
      {.group = {0}, .terms = {.request = {.memory = gb(2)}}},
      {.group = {0},
       .terms = {.request = {.gpus = 1, .gpu_memory = gb(3)}, .train_expected = Duration{300}}}};
  plan.tasks = {{.shape = {0}}, {.shape = {1}}, {.shape = {2}}};
  return plan;
}

TEST(ExpectedCourses, TakeWhatIsWrittenAndTheMeanForTheOthers) {
  const Expected expected = expected_of(three_kinds());
  EXPECT_EQ(expected.unknown, 1U);
  EXPECT_EQ(expected.assumed, Duration{200});
  ASSERT_EQ(expected.courses.size(), 3U);
  EXPECT_EQ(expected.courses[0].load, Duration{5});
  EXPECT_EQ(expected.courses[0].train, Duration{100});
  EXPECT_EQ(expected.courses[0].gpu_share, 300);
  EXPECT_EQ(expected.courses[0].gpu_memory, gb(2));
  EXPECT_EQ(expected.courses[1].train, Duration{200});
  EXPECT_EQ(expected.courses[1].memory, gb(2));
}

TEST(ExpectedCourses, AtTheWorstKeepAllOfAGpuBusyUnlessItIsWritten) {
  const model::Plan plan = three_kinds();
  const std::vector<Course> worst = at_the_worst(plan, expected_of(plan).courses);
  EXPECT_EQ(worst[0].gpu_share, 300);
  EXPECT_EQ(worst[1].gpu_share, 0);
  EXPECT_EQ(worst[2].gpu_share, 1000);
}

}  // namespace
}  // namespace trainyard::sim
