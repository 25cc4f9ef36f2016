#include "job/gpu_wish.h"

#include <gtest/gtest.h>

namespace trainyard::job {
namespace {

model::Plan plan_wanting(int gpus) {
  model::Plan plan;
  plan.groups.push_back({.name = "train"});
  plan.shapes.push_back({.group = {0}, .terms = {.request = {.gpus = gpus}}});
  return plan;
}

TEST(GpuLimitNote, SaysWhichTasksCanStartAtNoHour) {
  EXPECT_EQ(gpu_limit_note(plan_wanting(2), {.usual = 1, .hours = {}}),
            "group 'train': a task needs 2 GPUs, but limits.gpus allows all of your runs 1 "
            "together: the task waits until you change that");
  EXPECT_EQ(gpu_limit_note(plan_wanting(1), {.usual = 0, .hours = {}}),
            "group 'train': a task needs 1 GPU, but limits.gpus allows all of your runs 0 "
            "together: the task waits until you change that");
}

TEST(GpuLimitNote, IsNoneWhereTheyMayStartAtSomeHour) {
  EXPECT_EQ(gpu_limit_note(plan_wanting(2), {.usual = 2, .hours = {}}), std::nullopt);
  EXPECT_EQ(gpu_limit_note(plan_wanting(2), {.usual = 1, .hours = {{.gpus_max = 2}}}),
            std::nullopt);
  EXPECT_EQ(gpu_limit_note(plan_wanting(2), {.usual = {}, .hours = {{.gpus_max = 1}}}),
            std::nullopt);
  EXPECT_EQ(gpu_limit_note(plan_wanting(0), {.usual = 0, .hours = {}}), std::nullopt);
}

}  // namespace
}  // namespace trainyard::job
