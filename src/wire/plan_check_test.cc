#include "wire/plan_check.h"

#include <functional>
#include <string>
#include <utility>

#include <gtest/gtest.h>

namespace trainyard::wire {
namespace {

/// Two groups of two tasks each, of which the second needs the first, task by task.
model::Plan good_plan() {
  return {.groups = {{.name = "load"}, {.name = "train", .needs_by_task = {{0}}}},
          .shapes = {{.group = {0}}, {.group = {1}}},
          .tasks = {{}, {}, {.shape = {1}}, {.shape = {1}}},
          .task_needs = {{.task = {2}, .needed = {0}}, {.task = {3}, .needed = {1}}},
          .reached = {{.task = {3}}},
          .taken = {{.task = {0}}},
          .said = {{.task = {2}}},
          .sharing = {{.shape = {1}}}};
}

std::string fault_after(const std::function<void(model::Plan&)>& change) {
  model::Plan plan = good_plan();
  change(plan);
  const std::optional<Error> fault = fault_of(plan);
  return fault ? fault->message : "";
}

TEST(PlanCheck, TakesAPlanAsItIsMade) {
  EXPECT_EQ(fault_after([](model::Plan&) {}), "");
  EXPECT_EQ(fault_after([](model::Plan& plan) { plan = {}; }), "");
  // The groups of earlier batches are not known here.
  EXPECT_EQ(fault_after([](model::Plan& plan) { plan.groups[0].needs_earlier = {{99}}; }), "");
  // A group, or a shape, of which there is no task is none to stumble over.
  EXPECT_EQ(fault_after([](model::Plan& plan) { plan.groups.emplace_back(); }), "");
  EXPECT_EQ(fault_after([](model::Plan& plan) { plan.shapes.push_back({.group = {0}}); }), "");
}

TEST(PlanCheck, FindsWhatIsNotThere) {
  const auto fault = fault_after;
  EXPECT_EQ(fault([](model::Plan& plan) { plan.groups[1].needs = {{0}, {2}}; }),
            "groups[1].needs[1]: there is no group 2, only 2");
  EXPECT_EQ(fault([](model::Plan& plan) { plan.groups[1].needs_by_task = {{7}}; }),
            "groups[1].needs_by_task[0]: there is no group 7, only 2");
  EXPECT_EQ(fault([](model::Plan& plan) { plan.shapes[1].group = {2}; }),
            "shapes[1].group: there is no group 2, only 2");
  EXPECT_EQ(fault([](model::Plan& plan) { plan.tasks[3].shape = {4'294'967'295}; }),
            "tasks[3].shape: there is no shape 4294967295, only 2");
  EXPECT_EQ(fault([](model::Plan& plan) { plan.task_needs[1].task = {4}; }),
            "task_needs[1].task: there is no task 4, only 4");
  EXPECT_EQ(fault([](model::Plan& plan) { plan.task_needs[0].needed = {4}; }),
            "task_needs[0].needed: there is no task 4, only 4");
  EXPECT_EQ(fault([](model::Plan& plan) { plan.reached[0].task = {4}; }),
            "reached[0].task: there is no task 4, only 4");
  EXPECT_EQ(fault([](model::Plan& plan) { plan.taken[0].task = {4}; }),
            "taken[0].task: there is no task 4, only 4");
  EXPECT_EQ(fault([](model::Plan& plan) { plan.said[0].task = {4}; }),
            "said[0].task: there is no task 4, only 4");
  EXPECT_EQ(fault([](model::Plan& plan) { plan.sharing[0].shape = {2}; }),
            "sharing[0].shape: there is no shape 2, only 2");
}

TEST(PlanCheck, FindsWhatIsOutOfOrder) {
  const auto fault = fault_after;
  EXPECT_EQ(fault([](model::Plan& plan) { plan.tasks[3].shape = {0}; }),
            "tasks[3].shape: a task of group 0 behind one of group 1");
  EXPECT_EQ(fault([](model::Plan& plan) { std::swap(plan.task_needs[0], plan.task_needs[1]); }),
            "task_needs[1]: must come in the order of tasks and of what they need, each once");
  EXPECT_EQ(fault([](model::Plan& plan) { plan.task_needs[1] = plan.task_needs[0]; }),
            "task_needs[1]: must come in the order of tasks and of what they need, each once");
  EXPECT_EQ(fault([](model::Plan& plan) { plan.groups[1].needs_by_task.clear(); }),
            "task_needs[0].needed: a task of group 0, which is not among needs_by_task of the "
            "group of task 2");
}

TEST(PlanCheck, FindsGroupsThatNeedEachOther) {
  const auto fault = fault_after;
  EXPECT_EQ(fault([](model::Plan& plan) { plan.groups[0].needs = {{0}}; }),
            "groups[0]: groups need each other in a circle");
  EXPECT_EQ(fault([](model::Plan& plan) { plan.groups[0].needs = {{1}}; }),
            "groups[0]: groups need each other in a circle");
  EXPECT_EQ(fault([](model::Plan& plan) { plan.groups[1].needs = {{0}, {0}}; }), "");
}

}  // namespace
}  // namespace trainyard::wire
