#include "workers/routes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace trainyard::workers {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::uint64_t told(Routes& routes, const std::string& name, const std::string& type = "json") {
  EXPECT_TRUE(routes.tell_topic({.name = name, .type = type}));
  return wire::topic_of(name);
}

TEST(Routes, GoToThoseWhoWantTheNameOrAPatternThatMatchesIt) {
  Routes routes(Topology::Mesh, 0);
  const std::uint64_t loss = told(routes, "metrics.loss");
  EXPECT_THAT(routes.wanting(loss), IsEmpty());
  EXPECT_TRUE(routes.want(2, "metrics.*"));
  EXPECT_TRUE(routes.want(1, "metrics.loss"));
  EXPECT_TRUE(routes.want(3, "metrics"));
  EXPECT_THAT(routes.wanting(loss), ElementsAre(1, 2));
  routes.want_not(2, "metrics.*");
  EXPECT_THAT(routes.wanting(loss), ElementsAre(1));
  routes.forget(1);
  EXPECT_THAT(routes.wanting(loss), IsEmpty());
}

TEST(Routes, SayWhatIsWantedThatWasNotBefore) {
  Routes routes(Topology::Mesh, 0);
  const std::uint64_t a = told(routes, "a");
  const std::uint64_t b = told(routes, "b");
  EXPECT_THAT(routes.want(1, "a").value(), ElementsAre(a));
  EXPECT_THAT(routes.want(1, "[ab]").value(), ElementsAre(b)) << "it has the other one already";
  EXPECT_THAT(routes.want(1, "c").value(), IsEmpty());
}

TEST(Routes, KnowByWhichNameATopicWasWantedFirst) {
  Routes routes(Topology::Mesh, 0);
  EXPECT_TRUE(routes.want(1, "a.*"));
  EXPECT_TRUE(routes.want(1, "a.b"));
  EXPECT_TRUE(routes.want(2, "a.b"));
  const std::uint64_t topic = told(routes, "a.b");
  EXPECT_TRUE(routes.wants_first(1, "a.*", topic));
  EXPECT_FALSE(routes.wants_first(1, "a.b", topic));
  EXPECT_TRUE(routes.wants_first(2, "a.b", topic));
  EXPECT_FALSE(routes.wants_first(3, "a.b", topic));
  routes.want_not(1, "a.*");
  EXPECT_FALSE(routes.wants_first(1, "a.*", topic));
  EXPECT_TRUE(routes.wants_first(1, "a.b", topic));
}

TEST(Routes, KnowATopicByItsNameAndType) {
  Routes routes(Topology::Mesh, 0);
  const std::uint64_t topic = told(routes, "w", "buffer");
  ASSERT_NE(routes.find(topic), nullptr);
  EXPECT_EQ(routes.find(topic)->name, "w");
  EXPECT_EQ(routes.find(topic + 1), nullptr);
  EXPECT_EQ(routes.tell_topic({.name = "w", .type = "json"}).error().message,
            "event 'w' carries buffer elsewhere, and json here");
}

TEST(Routes, HaveABoundOfNames) {
  Routes routes(Topology::Mesh, 0);
  for (std::size_t i = 0; i < Routes::kWantsMax; ++i) {
    EXPECT_TRUE(routes.want(1, "n" + std::to_string(i)));
  }
  EXPECT_EQ(routes.want(1, "one more").error().message, "it wants more than 10000 names of events");
  EXPECT_TRUE(routes.want(2, "one more")) << "another one may";
}

TEST(Routes, DifferByTopologyInWhoHearsWhom) {
  const Routes mesh(Topology::Mesh, 4);
  EXPECT_TRUE(mesh.hears(5, 6));
  EXPECT_FALSE(mesh.hears(5, 5)) << "nobody hears itself";
  const Routes star(Topology::Star, 4);
  EXPECT_TRUE(star.hears(4, 5) && star.hears(5, 4));
  EXPECT_FALSE(star.hears(5, 6));
  EXPECT_FALSE(Routes(Topology::Alone, 4).hears(4, 5));
}

}  // namespace
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
    ended[node] = {.node = node, .change = "finished", .outcome = "max steps"};
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
  roll.workers.push_back({.node = 3});
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
