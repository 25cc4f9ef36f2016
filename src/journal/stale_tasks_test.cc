#include "journal/stale_tasks.h"

#include <cstdint>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/plan.h"

namespace trainyard::journal {
namespace {

using ::testing::ElementsAre;

/// Groups of two tasks each, which need nothing.
model::Plan groups_of_two(std::uint32_t groups) {
  model::Plan plan;
  for (std::uint32_t group = 0; group < groups; ++group) {
    plan.groups.push_back({.name = "g"});
    plan.shapes.push_back({.group = {group}, .terms = {}});
    plan.tasks.insert(plan.tasks.end(), 2, {.shape = {group}});
  }
  return plan;
}

TEST(StaleTasks, AreAllOfAGroupThatNeedsOneOfWhichATaskBeginsAnew) {
  model::Plan plan = groups_of_two(3);
  plan.groups[1].needs = {{0}};
  EXPECT_THAT(find_stale(plan, {true, false, false, false, false, false}),
              ElementsAre(false, false, true, true, false, false));
  EXPECT_THAT(find_stale(plan, {false, false, true, false, false, false}),
              ElementsAre(false, false, false, false, false, false));
}

TEST(StaleTasks, AreOfMatchedGroupsTheirOwnCellsAlone) {
  model::Plan plan = groups_of_two(2);
  plan.groups[1].needs_by_task = {{0}};
  plan.task_needs = {{.task = {2}, .needed = {0}}, {.task = {3}, .needed = {1}}};
  EXPECT_THAT(find_stale(plan, {false, true, false, false}),
              ElementsAre(false, false, false, true));
}

TEST(StaleTasks, AreThoseBehindOthersInWhicheverOrderTheyStand) {
  model::Plan plan = groups_of_two(4);
  plan.groups[0].needs = {{1}};
  plan.groups[1].needs = {{2}};
  plan.groups[3].needs = {{0}};
  EXPECT_THAT(find_stale(plan, {false, false, false, false, true, true, false, false}),
              ElementsAre(true, true, true, true, false, false, true, true));
}

TEST(StaleTasks, AreNoneThatBeginAnewThemselvesAndNoneOfGroupsThatAreNotThere) {
  model::Plan plan = groups_of_two(2);
  plan.groups[1].needs = {{0}, {7}};
  EXPECT_THAT(find_stale(plan, {true, true, true, true}), ElementsAre(false, false, false, false));
  EXPECT_THAT(find_stale(plan, {false, false, false, false}),
              ElementsAre(false, false, false, false));
}

}  // namespace
}  // namespace trainyard::journal
