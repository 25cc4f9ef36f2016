#include "job/gpu_limit_note.h"

#include <optional>

#include <gtest/gtest.h>

#include "model/gpu_limits.h"
#include "model/plan.h"

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
            "group 'train': a task wants 2 GPUs, and limits.gpus lets all of your runs have 1 "
            "together: it waits until that is changed");
  EXPECT_EQ(gpu_limit_note(plan_wanting(1), {.usual = 0, .hours = {}}),
            "group 'train': a task wants 1 GPU, and limits.gpus lets all of your runs have 0 "
            "together: it waits until that is changed");
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
