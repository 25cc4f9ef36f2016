#include "journal/stale_tasks.h"

#include <cstddef>
#include <cstdint>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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

/// The last runs of tasks that have never run.
std::vector<LastRun> none(std::size_t tasks) { return std::vector<LastRun>(tasks); }

std::vector<LastRun> ran(const std::vector<std::pair<int, int>>& times) {
  std::vector<LastRun> runs;
  runs.reserve(times.size());
  for (const auto& [started, ended] : times) {
    runs.push_back({.started = Instant{Duration{started}}, .ended = Instant{Duration{ended}}});
  }
  return runs;
}

TEST(StaleTasks, AreAllOfAGroupThatNeedsOneOfWhichATaskBeginsAnew) {
  model::Plan plan = groups_of_two(3);
  plan.groups[1].needs = {{0}};
  EXPECT_THAT(find_stale(plan, {true, false, false, false, false, false}, none(6)),
              ElementsAre(false, false, true, true, false, false));
  EXPECT_THAT(find_stale(plan, {false, false, true, false, false, false}, none(6)),
              ElementsAre(false, false, false, false, false, false));
}

TEST(StaleTasks, AreOfMatchedGroupsTheirOwnCellsAlone) {
  model::Plan plan = groups_of_two(2);
  plan.groups[1].needs_by_task = {{0}};
  plan.task_needs = {{.task = {2}, .needed = {0}}, {.task = {3}, .needed = {1}}};
  EXPECT_THAT(find_stale(plan, {false, true, false, false}, none(4)),
              ElementsAre(false, false, false, true));
}

TEST(StaleTasks, AreThoseBehindOthersInWhicheverOrderTheyStand) {
  model::Plan plan = groups_of_two(4);
  plan.groups[0].needs = {{1}};
  plan.groups[1].needs = {{2}};
  plan.groups[3].needs = {{0}};
  EXPECT_THAT(find_stale(plan, {false, false, false, false, true, true, false, false}, none(8)),
              ElementsAre(true, true, true, true, false, false, true, true));
}

TEST(StaleTasks, AreNoneThatBeginAnewThemselvesAndNoneOfGroupsThatAreNotThere) {
  model::Plan plan = groups_of_two(2);
  plan.groups[1].needs = {{0}, {7}};
  EXPECT_THAT(find_stale(plan, {true, true, true, true}, none(4)),
              ElementsAre(false, false, false, false));
  EXPECT_THAT(find_stale(plan, {false, false, false, false}, none(4)),
              ElementsAre(false, false, false, false));
}

TEST(StaleTasks, AreThoseThatHadStartedBeforeTheEndOfWhatTheyNeed) {
  model::Plan plan = groups_of_two(2);
  plan.groups[1].needs = {{0}};
  EXPECT_THAT(find_stale(plan, std::vector<bool>(4), ran({{0, 5}, {10, 20}, {5, 6}, {20, 30}})),
              ElementsAre(false, false, true, false));
  plan.groups[1].needs = {};
  plan.groups[1].needs_by_task = {{0}};
  plan.task_needs = {{.task = {2}, .needed = {0}}, {.task = {3}, .needed = {1}}};
  EXPECT_THAT(find_stale(plan, std::vector<bool>(4), ran({{0, 7}, {10, 20}, {5, 6}, {20, 30}})),
              ElementsAre(false, false, true, false));
}

TEST(StaleTasks, AreThoseThatHadStartedBeforeWhatTheyNeedRunsAgain) {
  model::Plan plan = groups_of_two(2);
  plan.groups[1].needs = {{0}};
  std::vector<LastRun> runs = ran({{0, 5}, {10, 20}, {20, 21}, {30, 31}});
  EXPECT_THAT(find_stale(plan, std::vector<bool>(4), runs),
              ElementsAre(false, false, false, false));
  runs[0] = {.started = Instant{Duration{25}}, .ended = std::nullopt};
  EXPECT_THAT(find_stale(plan, std::vector<bool>(4), runs), ElementsAre(false, false, true, false));
}

TEST(StaleTasks, AreThoseBehindOnesThatAreOlderThanWhatTheyNeed) {
  model::Plan plan = groups_of_two(3);
  plan.groups[1].needs = {{0}};
  plan.groups[2].needs = {{1}};
  EXPECT_THAT(find_stale(plan, std::vector<bool>(6),
                         ran({{0, 5}, {50, 60}, {5, 6}, {60, 61}, {61, 62}, {61, 62}})),
              ElementsAre(false, false, true, false, true, true));
}

}  // namespace
}  // namespace trainyard::journal
