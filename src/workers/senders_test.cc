#include "workers/senders.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace trainyard::workers {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

wire::RollWord roll_of(const std::string& topology) {
  return {.topology = topology,
          .hub = 0,
          .workers = {{.node = 0, .roles = {"learner"}},
                      {.node = 1, .roles = {"collector"}},
                      {.node = 2, .roles = {"collector", "evaluator"}}},
          .awaited = 0};
}

std::map<int, wire::PeerWord> over(const std::vector<int>& nodes) {
  std::map<int, wire::PeerWord> ended;
  for (const int node : nodes) {
    ended[node] = {
        .node = node, .change = "finished", .outcome = "max steps", .why = {}, .roles = {}};
  }
  return ended;
}

TEST(Senders, AreThoseWithTheRoleThatHaveNotEnded) {
  const Senders two = senders_of(roll_of("mesh"), {}, 0, "collector");
  EXPECT_THAT(two.left, ElementsAre("worker 1 (collector)", "worker 2 (collector, evaluator)"));
  EXPECT_EQ(two.why_none, "");
  const Senders one = senders_of(roll_of("mesh"), over({1}), 0, "collector");
  EXPECT_THAT(one.left, ElementsAre("worker 2 (collector, evaluator)"));
  EXPECT_EQ(one.why_none, "");
}

TEST(Senders, AreNoneWhereAllHaveEnded) {
  auto ended = over({1, 2});
  ended[2].why = "done";
  const Senders none = senders_of(roll_of("mesh"), ended, 0, "collector");
  EXPECT_THAT(none.left, IsEmpty());
  EXPECT_EQ(
      none.why_none,
      "nothing more comes of the role 'collector': worker 1 (collector) has ended (max steps), "
      "worker 2 (collector, evaluator) has ended (max steps: done)");
}

TEST(Senders, AreNoneWhereNobodyHasTheRole) {
  EXPECT_EQ(senders_of(roll_of("mesh"), {}, 0, "actor").why_none,
            "nothing comes of the role 'actor': no other worker of the run has it");
  EXPECT_EQ(senders_of(roll_of("mesh"), {}, 0, "learner").why_none,
            "nothing comes of the role 'learner': no other worker of the run has it");
}

TEST(Senders, AreNoWorkersWithoutRoles) {
  wire::RollWord roll = roll_of("mesh");
  roll.workers.push_back({.node = 3, .roles = {}});
  EXPECT_THAT(senders_of(roll, {}, 0, "evaluator").left,
              ElementsAre("worker 2 (collector, evaluator)"));
}

TEST(Senders, AreThoseThatAreHeard) {
  EXPECT_EQ(senders_of(roll_of("star"), {}, 1, "collector").why_none,
            "nothing comes of the role 'collector': in the topology 'star' worker 1 does not hear "
            "worker 2 (collector, evaluator)");
  EXPECT_THAT(senders_of(roll_of("star"), {}, 0, "evaluator").left,
              ElementsAre("worker 2 (collector, evaluator)"));
  EXPECT_NE(senders_of(roll_of("alone"), {}, 0, "evaluator").why_none, "");
}

TEST(Senders, MayBeThoseThatHaveNotJoinedYet) {
  wire::RollWord roll = roll_of("star");
  roll.awaited = 3;
  EXPECT_THAT(senders_of(roll, {}, 0, "actor").left,
              ElementsAre("3 workers that have not joined yet"));
  EXPECT_THAT(senders_of(roll, {}, 1, "actor").left, IsEmpty()) << "it will not hear them";
}

TEST(Senders, AreNotAllNamed) {
  std::vector<std::string> names(8, "a");
  EXPECT_EQ(listed(names), "a, a, a, a, a, a, a, a");
  names.resize(10, "b");
  EXPECT_EQ(listed(names), "a, a, a, a, a, a, a, a and 2 more");
}

}  // namespace
}  // namespace trainyard::workers
