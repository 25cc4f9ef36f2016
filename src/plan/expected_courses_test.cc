#include "plan/expected_courses.h"

#include <gtest/gtest.h>

#include "base/bytes.h"

namespace trainyard::plan {
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

TEST(ExpectedCourses, UseSoMuchOfAGpuAsWasMeasuredWhereNothingIsWritten) {
  const model::Plan plan = three_kinds();
  const Expected expected = expected_of(plan, {900});
  EXPECT_EQ(expected.courses[0].gpu_share, 300) << "as it is written";
  EXPECT_EQ(expected.courses[1].gpu_share, 0) << "it has no GPU";
  EXPECT_EQ(expected.courses[2].gpu_share, 900);
  EXPECT_EQ(at_the_worst(plan, expected.courses)[2].gpu_share, 900);
}

TEST(ExpectedCourses, AtTheWorstKeepAllOfAGpuBusyUnlessItIsWritten) {
  const model::Plan plan = three_kinds();
  const std::vector<Course> worst = at_the_worst(plan, expected_of(plan).courses);
  EXPECT_EQ(worst[0].gpu_share, 300);
  EXPECT_EQ(worst[1].gpu_share, 0);
  EXPECT_EQ(worst[2].gpu_share, 1000);
}

TEST(PlayedRun, SaysOfEachTaskThatItHasFinished) {
  model::Plan plan;
  plan.groups = {{.name = "train"}};
  plan.shapes = {{.group = {0}, .terms = {.request = {.memory = mb(1)}}}};
  plan.tasks.assign(3, {.shape = {0}});
  const model::Capacity machine{.memory = gb(10), .cpus = model::cpus(4)};
  const std::vector<Course> courses(3, {.train = Duration{1000}, .memory = mb(1)});
  std::vector<std::size_t> told;
  ASSERT_TRUE(play_run(plan, {.memory_remain = Bytes{0}}, {{.name = "here", .capacity = machine}},
                       courses,
                       {.on_finished = [&](std::size_t finished) { told.push_back(finished); }}));
  EXPECT_EQ(told, (std::vector<std::size_t>{1, 2, 3}));
}

TEST(ForecastRun, IsARangeWhereTasksMayShare) {
  model::Plan plan;
  plan.groups = {{.name = "train"}};
  plan.shapes = {{.group = {0},
                  .terms = {.request = {.memory = mb(1), .gpus = 1, .gpu_memory = gb(4)},
                            .train_expected = Duration{100'000}}}};
  plan.tasks.assign(4, {.shape = {0}});
  const model::Policy policy{.memory_remain = Bytes{0}, .gpu_memory_remain = Bytes{0}};
  const model::Capacity machine{.memory = gb(10),
                                .cpus = model::cpus(4),
                                .gpus = {{.number = 0, .pci = "a", .memory = gb(8)}}};
  const auto range = forecast_run(plan, policy, machine);
  ASSERT_TRUE(range);
  EXPECT_EQ(range->free, Duration{200'000});
  EXPECT_EQ(range->at_the_worst, Duration{400'000});
  plan.shapes.front().terms.request.sharing.utilization = 300;
  EXPECT_EQ(forecast_run(plan, policy, machine)->at_the_worst, Duration{200'000});
  plan.shapes.front().terms.train_expected = {};
  EXPECT_FALSE(forecast_run(plan, policy, machine)) << "nobody knows how long they take";
}

}  // namespace
}  // namespace trainyard::plan
