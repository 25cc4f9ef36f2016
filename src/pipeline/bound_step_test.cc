// Labels and roles: which steps run where. And what steps are called.
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pipeline/test_loop.h"
#include "trainyard/pipeline.h"

namespace trainyard::pipeline {
namespace {

using testing::ElementsAre;

std::vector<std::string> messages(const RunResult& result) {
  std::vector<std::string> all;
  for (const StepError& error : result.errors) all.push_back(error.step + ": " + error.message);
  return all;
}

TEST(Labels, AreThoseOfAPipelineByItselfAndTheUsers) {
  EXPECT_THAT(Pipeline<Loop>().labels(), ElementsAre("standalone", "node.0"));
  EXPECT_THAT(Pipeline<Loop>({.async = true, .labels = {"gpu"}}).labels(),
              ElementsAre("standalone", "node.0", "async", "gpu"));
}

TEST(Labels, AreMatchedByPatterns) {
  const Pipeline<Loop> loop({.labels = {"gpu", "rack.7"}});
  EXPECT_TRUE(loop.match_labels({"node.*"}));
  EXPECT_TRUE(loop.match_labels({"none", "rack.[5-9]"}));
  EXPECT_TRUE(loop.match_labels({"g?u"}));
  EXPECT_FALSE(loop.match_labels({"GPU"}));
  EXPECT_FALSE(loop.match_labels({"node"}));
  EXPECT_FALSE(loop.match_labels({}));
}

TEST(Placement, RunsAStepOnlyWhereALabelMatches) {
  std::string order;
  Pipeline<Loop> loop({.labels = {"gpu"}});
  loop.use("everywhere", both(order, "a"))
      .use("here", both(order, "b"), {.where = {"distributed", "g*"}})
      .use("elsewhere", both(order, "c"), {.where = {"distributed"}})
      .use("other-node", both(order, "d"), {.where = {"node.1"}})
      .use(serial(named<Loop>("part", both(order, "e"), {.where = {"node.[1-9]"}}),
                  both(order, "f")));
  EXPECT_TRUE(loop.run({.max_steps = 1}));
  EXPECT_EQ(order, "a b f f' b' a' ");
}

TEST(Placement, RefusesALabelThatNoPipelineHas) {
  Pipeline<Loop> loop({.labels = {"gpu"}});
  loop.use("a", [](Loop&) {}, {.where = {"standalon"}}).use("b", [](Loop&) {}, {.where = {"moon"}});
  EXPECT_THAT(
      messages(loop.run()),
      ElementsAre(
          "a: no pipeline has a label that matches 'standalon'; this one has standalone, node.0, "
          "gpu (did you mean 'standalone'?)",
          "b: no pipeline has a label that matches 'moon'; this one has standalone, node.0, "
          "gpu"));
  EXPECT_FALSE(loop.run()) << "it is still wrong";
}

TEST(Placement, GivesAPipelineWithoutRolesEveryRole) {
  std::string order;
  Pipeline<Loop> loop;
  EXPECT_TRUE(loop.has_role(role::kLearner));
  loop.use("learn", both(order, "learn"), {.roles = {role::kLearner}})
      .use("collect", both(order, "collect"), {.roles = {role::kCollector}});
  EXPECT_TRUE(loop.run({.max_steps = 1}));
  EXPECT_EQ(order, "learn collect collect' learn' ");
}

TEST(Placement, RefusesAStepWhoseRoleNobodyPlays) {
  constexpr Role kLogger{"logger"};
  Pipeline<Loop> loop({.roles = {role::kLearner, kLogger}});
  EXPECT_TRUE(loop.has_role(kLogger));
  EXPECT_FALSE(loop.has_role(role::kCollector));
  loop.use("learn", [](Loop&) {}, {.roles = {role::kEvaluator, role::kLearner}})
      .use("collect", [](Loop&) {}, {.roles = {role::kCollector}});
  EXPECT_THAT(messages(loop.run()),
              ElementsAre("collect: it is for collector, and this pipeline is "
                          "learner, logger: nobody runs it"));
}

TEST(Names, AreGivenToStepsThatHaveNone) {
  std::vector<std::string> names;
  Pipeline<Loop> loop;
  loop.use([](Loop&) {})
      .use("learn", [](Loop&) {})
      .use("learn", [](Loop&) {})
      .use(no_step)
      .use(named("named", [](Loop&) {}))
      .use(serial([](Loop&) {}, named("x", [](Loop&) {}), named("x", [](Loop&) {})));
  loop.wrap([&](const StepCall& call, Loop&, const Next& next) {
    names.emplace_back(call.step);
    next();
  });
  EXPECT_TRUE(loop.run({.max_steps = 1}));
  EXPECT_THAT(names, ElementsAre("step-1", "learn", "learn#2", "named", "serial<1,x,x>",
                                 "serial<1,x,x>/1", "serial<1,x,x>/x", "serial<1,x,x>/x#2"));
}

TEST(Placement, LeavesRolesToOtherWorkersWhereThereAre) {
  std::string order;
  Pipeline<Loop> loop({.roles = {role::kCollector}, .node = 2});
  loop.use("learn", both(order, "l"), {.roles = {role::kLearner}})
      .use("collect", both(order, "c"), {.roles = {role::kCollector}})
      .use("second", both(order, "s"), {.where = {"node.2"}})
      .use("other", both(order, "o"), {.where = {"node.1", "standalone"}});
  EXPECT_TRUE(loop.run({.max_steps = 1}));
  EXPECT_EQ(order, "c s s' c' ");
  EXPECT_TRUE(loop.match_labels({"distributed"}));
}

}  // namespace
}  // namespace trainyard::pipeline
