#include "model/plan.h"

#include <gtest/gtest.h>

namespace trainyard::model {
namespace {

Plan two_groups() {
  Plan plan;
  plan.groups.push_back({.name = "train", .directory = "train"});
  plan.groups.push_back({.name = "test", .directory = "test", .needs = {GroupIndex{0}}});
  plan.shapes.push_back({.group = {0}});
  plan.shapes.push_back({.group = {1}});
  plan.tasks = {{.shape = {0}}, {.shape = {0}, .first_attempt = 3}, {.shape = {1}}};
  plan.reached = {{.task = {1}, .memory = gb(3), .tries = {.train = 1}}};
  plan.taken = {{.task = {2}, .memory = gb(1)}};
  plan.sharing = {{.shape = {1}, .to_a_gpu = 2, .factor = 1.5, .tasks = 3}};
  plan.failed = {{.task = {1}, .message = "exited with code 3"}};
  return plan;
}

TEST(Plan, KeepsItsNumbersWhenItIsTheFirstOfARun) {
  Plan whole;
  EXPECT_EQ(append(whole, two_groups()), PlanStart{});
  ASSERT_EQ(whole.groups.size(), 2U);
  EXPECT_EQ(whole.groups[1].needs, std::vector{GroupIndex{0}});
  EXPECT_EQ(whole.shapes[1].group, GroupIndex{1});
  ASSERT_EQ(whole.tasks.size(), 3U);
  EXPECT_EQ(whole.tasks[2].shape, ShapeIndex{1});
  EXPECT_EQ(whole.reached, two_groups().reached);
  EXPECT_EQ(whole.taken, two_groups().taken);
  EXPECT_EQ(whole.sharing, two_groups().sharing);
  EXPECT_EQ(whole.failed, two_groups().failed);
}

TEST(Plan, MovesItsNumbersBehindThoseOfTheBatchesBefore) {
  Plan whole = two_groups();
  Plan next = two_groups();
  next.groups[0].needs_earlier = {GroupIndex{1}};
  EXPECT_EQ(append(whole, next), (PlanStart{.group = 2, .shape = 2, .task = 3}));
  ASSERT_EQ(whole.groups.size(), 4U);
  EXPECT_EQ(whole.groups[2].name, "train");
  EXPECT_EQ(whole.groups[2].needs, std::vector{GroupIndex{1}}) << "of an earlier batch";
  EXPECT_TRUE(whole.groups[2].needs_earlier.empty());
  EXPECT_EQ(whole.groups[3].needs, std::vector{GroupIndex{2}}) << "of its own";
  EXPECT_EQ(whole.shapes[2].group, GroupIndex{2});
  EXPECT_EQ(whole.shapes[3].group, GroupIndex{3});
  ASSERT_EQ(whole.tasks.size(), 6U);
  EXPECT_EQ(whole.tasks[3].shape, ShapeIndex{2});
  EXPECT_EQ(whole.tasks[4].first_attempt, 3U);
  EXPECT_EQ(whole.tasks[5].shape, ShapeIndex{3});
  ASSERT_EQ(whole.reached.size(), 2U);
  EXPECT_EQ(whole.reached[1], (Reached{.task = {4}, .memory = gb(3), .tries = {.train = 1}}));
  ASSERT_EQ(whole.taken.size(), 2U);
  EXPECT_EQ(whole.taken[1].task, TaskIndex{5});
  ASSERT_EQ(whole.sharing.size(), 2U);
  EXPECT_EQ(whole.sharing[1].shape, ShapeIndex{3});
  ASSERT_EQ(whole.failed.size(), 2U);
  EXPECT_EQ(whole.failed[1].task, TaskIndex{4});
}

}  // namespace
}  // namespace trainyard::model
