#include "report/sharing_note.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/bytes.h"

namespace trainyard::report {
namespace {

using testing::HasSubstr;

const model::Capacity kOneGpu{.gpus = {{.number = 0, .pci = "a", .memory = gb(8)}}};

model::Plan two_tasks(const model::Request& request) {
  model::Plan plan;
  plan.groups = {{.name = "train"}};
  plan.shapes = {{.group = {0}, .terms = {.request = request}}};
  plan.tasks.assign(2, {.shape = {0}});
  return plan;
}

TEST(SharingNote, SaysWhatIsAssumedWhereTasksMayShare) {
  EXPECT_THAT(sharing_note(two_tasks({.gpus = 1, .gpu_memory = gb(4)}), kOneGpu),
              HasSubstr("tasks of 'train' share GPUs where their memory allows it; until measured, "
                        "sharing is assumed not to slow them down"));
}

TEST(SharingNote, SaysNothingWhereAnEarlierRunHasMeasuredIt) {
  model::Plan plan = two_tasks({.gpus = 1, .gpu_memory = gb(4)});
  EXPECT_NE(sharing_note(plan, kOneGpu), "");
  plan.sharing = {{.shape = {0}, .to_a_gpu_max = 2}};
  EXPECT_EQ(sharing_note(plan, kOneGpu), "");
}

TEST(SharingNote, SaysNothingWhereNobodySharesOrItIsWrittenWhatThatCosts) {
  EXPECT_EQ(sharing_note(two_tasks({.gpus = 1}), kOneGpu), "");
  EXPECT_EQ(sharing_note(two_tasks({.gpus = 1, .gpu_memory = gb(5)}), kOneGpu), "");
  EXPECT_EQ(sharing_note(two_tasks({.memory = gb(1)}), kOneGpu), "");
  EXPECT_EQ(
      sharing_note(two_tasks({.gpus = 1, .gpu_memory = gb(2), .sharing = {.utilization = 400}}),
                   kOneGpu),
      "");
  EXPECT_EQ(sharing_note(two_tasks({.gpus = 1, .gpu_memory = gb(2), .sharing = {.max_per_gpu = 1}}),
                         kOneGpu),
            "");
  model::Plan one = two_tasks({.gpus = 1, .gpu_memory = gb(4)});
  one.tasks.front().before = model::Verdict::Finished;
  EXPECT_EQ(sharing_note(one, kOneGpu), "");
}

}  // namespace
}  // namespace trainyard::report
