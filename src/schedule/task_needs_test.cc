#include "schedule/task_needs.h"

#include <array>

#include <gtest/gtest.h>

namespace trainyard::schedule {
namespace {

TEST(NeededTasks, AreNamedOnceInTheOrderOfTheirVerdicts) {
  TaskTable tasks;
  for (int task = 0; task < 4; ++task) tasks.add(model::PlannedTask{});
  TaskNeeds needs;
  const std::array<model::TaskNeed, 2> written{model::TaskNeed{.task = {2}, .needed = {0}},
                                               model::TaskNeed{.task = {2}, .needed = {1}}};
  needs.add(written, {}, tasks);
  EXPECT_EQ(needs.next_concluded(), std::nullopt);
  needs.concluded({1}, model::Verdict::Finished);
  needs.concluded({3}, model::Verdict::Finished);
  needs.concluded({0}, model::Verdict::Failed);
  EXPECT_EQ(needs.next_concluded(), model::TaskIndex{1});
  EXPECT_EQ(needs.next_concluded(), model::TaskIndex{0});
  EXPECT_EQ(needs.next_concluded(), std::nullopt);
}

}  // namespace
}  // namespace trainyard::schedule
