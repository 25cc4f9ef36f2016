#include "workers/meetings.h"

#include <variant>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace trainyard::workers {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

/// Three workers, of which the first is a learner.
struct Three {
  Three() {
    roll.add(0, {"learner"});
    roll.add(1, {"collector"});
    roll.add(2, {"collector"});
  }
  Meetings::Answers barrier(int node, std::uint64_t sequence, std::vector<std::string> roles = {}) {
    return meetings.ask(
        {.node = node, .sequence = sequence},
        wire::BarrierRequest{.name = "b", .roles = std::move(roles), .within_ms = 100}, now);
  }
  Meetings::Answers ready(int node, int workers) {
    return meetings.ask({.node = node, .sequence = 1},
                        wire::ReadyRequest{.workers = workers, .within_ms = 100}, now);
  }
  Roll roll;
  Meetings meetings{roll};
  Duration now{1'000};
};

std::vector<int> nodes_of(const Meetings::Answers& answers) {
  std::vector<int> nodes;
  for (const MeetingAnswer& each : answers) nodes.push_back(each.to.node);
  return nodes;
}

TEST(Ready, IsAnsweredWhenSoManyHaveSettled) {
  Three it;
  it.roll.set(0, Presence::Settled);
  EXPECT_THAT(it.ready(0, 2), IsEmpty());
  it.roll.set(1, Presence::Joined);
  EXPECT_THAT(it.meetings.look(), IsEmpty());
  it.roll.set(1, Presence::Settled);
  EXPECT_THAT(nodes_of(it.meetings.look()), ElementsAre(0));
  it.roll.set(1, Presence::Finished);
  EXPECT_THAT(nodes_of(it.ready(0, 2)), ElementsAre(0)) << "one that has been there counts";
}

TEST(Barrier, OfARoleThatNoWorkerHasIsAnErrorThatNamesTheRoles) {
  Three it;
  EXPECT_EQ(it.barrier(1, 1, {"colector"}).at(0).reply.error,
            "barrier 'b': no worker of the run has the role 'colector'; the roles are collector, "
            "learner");
  EXPECT_THAT(it.barrier(1, 2, {"colector", "collector"}), IsEmpty()) << "waits for the other one";
}

TEST(Barrier, OfARoleThatIsGivenToNoneIsOneOfTheWorkersWithoutRoles) {
  Three it;
  it.roll.add(3, {});
  const auto met = it.barrier(3, 1, {"evaluator"});
  ASSERT_THAT(nodes_of(met), ElementsAre(3));
  EXPECT_EQ(met[0].reply.error, "");
  EXPECT_EQ(it.barrier(0, 1, {"evaluator"}).at(0).reply.error,
            "barrier 'b' is none of worker 0 (learner)");
  it.roll.add(4, {});
  EXPECT_THAT(it.barrier(3, 2, {"evaluator"}), IsEmpty());
  EXPECT_THAT(nodes_of(it.barrier(4, 1, {"evaluator"})), ElementsAre(3, 4));
}

TEST(Ready, NamesThoseThatAreMissing) {
  Three it;
  it.roll.set(0, Presence::Settled);
  EXPECT_THAT(it.ready(0, 0), IsEmpty());
  EXPECT_EQ(it.meetings.next_deadline(), Duration(1'100));
  EXPECT_THAT(it.meetings.overdue(Duration(1'099)), IsEmpty());
  const auto late = it.meetings.overdue(Duration(1'100));
  ASSERT_EQ(late.size(), 1U);
  EXPECT_EQ(late[0].reply.error,
            "1 of 3 workers are ready; missing: worker 1 (collector), worker 2 (collector)");
  EXPECT_THAT(late[0].reply.missing, ElementsAre("worker 1 (collector)", "worker 2 (collector)"));
  EXPECT_EQ(it.meetings.next_deadline(), std::nullopt);
  EXPECT_EQ(it.ready(0, 4).at(0).reply.error, "4 workers are waited for, and there are 3");
}

TEST(Request, HasTheTimeThatIsLeftOfItAndNoneWhenItsWorkerHasGivenUp) {
  const auto left_at = [](Duration now) -> std::optional<std::int64_t> {
    const auto left =
        still_asked(wire::BarrierRequest{.name = "b", .within_ms = 100, .asked_ms = 1'000}, now);
    if (!left) return std::nullopt;
    EXPECT_EQ(std::get<wire::BarrierRequest>(*left).asked_ms, std::nullopt);
    return std::get<wire::BarrierRequest>(*left).within_ms;
  };
  EXPECT_EQ(left_at(Duration(1'000)), 100);
  EXPECT_EQ(left_at(Duration(1'030)), 70);
  EXPECT_EQ(left_at(Duration(0)), 100) << "another clock gives it no more time";
  EXPECT_EQ(left_at(Duration(1'100)), 0);
  EXPECT_EQ(left_at(Duration(3'099)), 0) << "its worker still waits for the answer";
  EXPECT_EQ(left_at(Duration(3'100)), std::nullopt);
  const wire::WorkerRequest undated = wire::ReadyRequest{.workers = 2, .within_ms = 100};
  EXPECT_EQ(still_asked(undated, Duration(1'000'000)), undated);
}

TEST(Barrier, LetsAllGoWhenTheLastHasCome) {
  Three it;
  EXPECT_THAT(it.barrier(0, 7), IsEmpty());
  EXPECT_THAT(it.barrier(1, 8), IsEmpty());
  const auto gone = it.barrier(2, 9);
  EXPECT_THAT(nodes_of(gone), ElementsAre(0, 1, 2));
  EXPECT_EQ(gone[1].to.sequence, 8U);
  EXPECT_TRUE(gone[0].met && gone[0].reply.error.empty());
  EXPECT_THAT(it.barrier(0, 10), IsEmpty()) << "the next round is another one";
}

TEST(Barrier, DoesNotCountAWorkerThatHasWithdrawn) {
  Three it;
  EXPECT_THAT(it.barrier(0, 7), IsEmpty());
  EXPECT_THAT(it.meetings.withdraw({.node = 0, .sequence = 6}, it.now), IsEmpty()) << "another one";
  const auto answers = it.meetings.withdraw({.node = 0, .sequence = 7}, it.now);
  EXPECT_THAT(nodes_of(answers), ElementsAre(0));
  EXPECT_FALSE(answers[0].met);
  EXPECT_THAT(it.barrier(1, 8), IsEmpty());
  EXPECT_THAT(it.barrier(2, 9), IsEmpty());
  EXPECT_THAT(nodes_of(it.barrier(0, 10)), ElementsAre(0, 1, 2));
  EXPECT_THAT(it.meetings.withdraw({.node = 0, .sequence = 10}, it.now), IsEmpty()) << "it was met";
}

TEST(Ready, IsNotAnsweredOnceItHasBeenWithdrawn) {
  Three it;
  EXPECT_THAT(it.ready(0, 3), IsEmpty());
  EXPECT_THAT(nodes_of(it.meetings.withdraw({.node = 0, .sequence = 1}, it.now)), ElementsAre(0));
  for (const int node : {0, 1, 2}) it.roll.set(node, Presence::Settled);
  EXPECT_THAT(it.meetings.look(), IsEmpty());
}

TEST(Barrier, CountsAWorkerWithoutRolesForEveryRole) {
  Three it;
  it.roll.add(3, {});
  EXPECT_THAT(it.barrier(1, 1, {"collector"}), IsEmpty());
  EXPECT_THAT(it.barrier(2, 1, {"collector"}), IsEmpty());
  EXPECT_THAT(nodes_of(it.barrier(3, 1, {"collector"})), ElementsAre(1, 2, 3));
}

TEST(Barrier, CountsThoseWithARoleAlone) {
  Three it;
  EXPECT_THAT(it.barrier(1, 1, {"collector"}), IsEmpty());
  EXPECT_EQ(it.barrier(0, 1, {"collector"}).at(0).reply.error,
            "barrier 'b' is none of worker 0 (learner)");
  EXPECT_EQ(it.barrier(2, 1).at(0).reply.error, "barrier 'b' is one of other roles: collector");
  EXPECT_THAT(nodes_of(it.barrier(2, 1, {"collector"})), ElementsAre(1, 2));
  EXPECT_THAT(it.barrier(0, 2), IsEmpty());
  EXPECT_EQ(it.barrier(1, 2, {"collector"}).at(0).reply.error, "barrier 'b' is one of all workers");
}

TEST(Barrier, WaitsNoMoreForOneThatHasEnded) {
  Three it;
  EXPECT_THAT(it.barrier(0, 1), IsEmpty());
  EXPECT_THAT(it.barrier(1, 1), IsEmpty());
  it.roll.set(2, Presence::Finished);
  EXPECT_THAT(nodes_of(it.meetings.look(2)), ElementsAre(0, 1));
}

TEST(Ready, IsAnErrorAtOnceWhereOneHasEndedThatNeverListened) {
  Three it;
  it.roll.set(0, Presence::Settled);
  it.roll.set(2, Presence::Settled);
  EXPECT_THAT(it.ready(0, 0), IsEmpty());
  it.roll.set(1, Presence::Finished);
  const auto late = it.meetings.look(1);
  ASSERT_THAT(nodes_of(late), ElementsAre(0));
  EXPECT_EQ(late[0].reply.error,
            "2 of 3 workers are ready, and 3 cannot be: worker 1 (collector) has ended");
  EXPECT_THAT(late[0].reply.missing, ElementsAre("worker 1 (collector)"));
  EXPECT_EQ(it.ready(0, 2).at(0).reply.error, "") << "two are";
  it.roll.set(1, Presence::Failed);
  EXPECT_EQ(it.ready(2, 3).at(0).reply.error,
            "2 of 3 workers are ready, and 3 cannot be: worker 1 (collector) has failed");
}

TEST(Ready, SaysNothingOfThoseThatCanStillBecomeReady) {
  Three it;
  it.roll.set(0, Presence::Settled);
  it.roll.set(1, Presence::Finished);
  EXPECT_EQ(it.ready(0, 3).at(0).reply.error,
            "1 of 3 workers are ready, and 3 cannot be: worker 1 (collector) has ended");
}

TEST(Barrier, IsNotPassedWhereOneHasFailed) {
  Three it;
  EXPECT_THAT(it.barrier(0, 1), IsEmpty());
  EXPECT_THAT(it.barrier(1, 2), IsEmpty());
  it.roll.set(2, Presence::Failed);
  const auto failed = it.meetings.look(2);
  ASSERT_THAT(nodes_of(failed), ElementsAre(0, 1));
  for (const MeetingAnswer& each : failed) {
    EXPECT_FALSE(each.met);
    EXPECT_EQ(each.reply.error, "barrier 'b': worker 2 (collector) failed, and will not come");
    EXPECT_THAT(each.reply.missing, ElementsAre("worker 2 (collector)"));
  }
  EXPECT_EQ(it.barrier(0, 3).at(0).reply.error,
            "barrier 'b': worker 2 (collector) failed, and will not come")
      << "nor the next one";
  EXPECT_EQ(it.barrier(0, 4, {"learner"}).at(0).reply.error, "") << "it is none of that one";
}

TEST(Barrier, WaitsForOneThatBeginsAgain) {
  Three it;
  EXPECT_THAT(it.barrier(0, 1), IsEmpty());
  EXPECT_THAT(it.barrier(2, 1), IsEmpty());
  it.roll.set(2, Presence::Awaited);
  EXPECT_THAT(it.meetings.look(2), IsEmpty()) << "it is gone from the barrier, too";
  EXPECT_THAT(it.barrier(1, 1), IsEmpty());
  EXPECT_THAT(nodes_of(it.barrier(2, 1)), ElementsAre(0, 1, 2));
}

TEST(Barrier, TellsOneThatWaitedTooLongWhoIsMissing) {
  Three it;
  EXPECT_THAT(it.barrier(1, 5), IsEmpty());
  it.now = Duration(1'050);
  EXPECT_THAT(it.barrier(2, 6), IsEmpty());
  const auto late = it.meetings.overdue(Duration(1'100));
  ASSERT_THAT(nodes_of(late), ElementsAre(1));
  EXPECT_EQ(late[0].reply.error, "barrier 'b' waits for worker 0 (learner)");
  const auto waiting = it.meetings.waiting();
  ASSERT_EQ(waiting.size(), 1U);
  EXPECT_THAT(waiting[0].arrived, ElementsAre(2));
  EXPECT_THAT(waiting[0].missing, ElementsAre(0, 1));
  EXPECT_EQ(it.barrier(2, 7).at(0).reply.error,
            "worker 2 (collector) waits at barrier 'b' already");
}

TEST(Barrier, SaysOfOneThatLeftAtItsDeadlineThatItHadCome) {
  Three it;
  const auto error_at = [&](Duration now) { return it.meetings.overdue(now).at(0).reply.error; };
  it.barrier(1, 5);
  it.now = Duration(1'050);
  it.barrier(2, 6);
  EXPECT_EQ(error_at(Duration(1'100)), "barrier 'b' waits for worker 0 (learner)");
  const std::string left = "; worker 1 (collector) came before and gave up waiting";
  EXPECT_EQ(error_at(Duration(1'150)), "barrier 'b' waits for worker 0 (learner)" + left);
  it.barrier(2, 7);
  EXPECT_EQ(error_at(Duration(1'150)), "barrier 'b' waits for worker 0 (learner)" + left)
      << "also when nobody had waited any more";
  it.barrier(1, 6);
  it.barrier(2, 8);
  EXPECT_EQ(error_at(Duration(1'150)), "barrier 'b' waits for worker 0 (learner)") << "it is back";
  it.barrier(0, 1);
  it.meetings.look(1);
  it.barrier(2, 9);
  EXPECT_EQ(error_at(Duration(1'150)), "barrier 'b' waits for worker 1 (collector)")
      << "one that is gone never came";
  it.barrier(1, 7, {"collector"});
  it.meetings.overdue(Duration(1'150));
  it.barrier(2, 10, {"collector"});
  EXPECT_EQ(error_at(Duration(1'150)),
            "barrier 'b': worker 1 (collector) came before and gave up waiting");
}

TEST(Barrier, RemembersABoundedNumberOfThoseThatLeft) {
  Three it;
  const auto ask = [&](int node, const std::string& name) {
    it.meetings.ask({.node = node, .sequence = 1},
                    wire::BarrierRequest{.name = name, .within_ms = 0}, it.now);
    return it.meetings.overdue(it.now).at(0).reply.error;
  };
  for (std::size_t i = 0; i <= Meetings::kLeftMax; ++i) ask(1, fmt::format("{}", i));
  const std::string left = "; worker 1 (collector) came before and gave up waiting";
  EXPECT_EQ(ask(2, "1"), "barrier '1' waits for worker 0 (learner)" + left);
  EXPECT_EQ(ask(2, "0"), "barrier '0' waits for worker 0 (learner), worker 1 (collector)");
}

TEST(Barrier, RemembersWhoLeftUntilItsEndIsKnown) {
  Three it;
  const auto error = [&] { return it.meetings.overdue(Duration(1'100)).back().reply.error; };
  it.barrier(2, 1);
  error();
  it.barrier(1, 1);
  it.meetings.disconnect(1);
  it.meetings.disconnect(2);
  it.barrier(0, 1);
  EXPECT_EQ(error(),
            "barrier 'b': worker 1 (collector), worker 2 (collector) came before and gave up "
            "waiting");
  it.roll.set(2, Presence::Awaited);
  it.meetings.look(2);
  it.barrier(0, 2);
  EXPECT_EQ(error(),
            "barrier 'b' waits for worker 2 (collector); worker 1 (collector) came before "
            "and gave up waiting")
      << "its next life has not come";
}

/// "2 since 1000 for 1, 2", of each answer.
std::vector<std::string> waits_in(const Meetings::Answers& answers) {
  std::vector<std::string> waits;
  for (const MeetingAnswer& each : answers) {
    waits.push_back(fmt::format("{} since {} for {}", each.to.node, each.waited->since.count(),
                                fmt::join(each.waited->whom, ", ")));
  }
  return waits;
}

TEST(Meetings, KnowForWhomEachHasWaitedInTheEnd) {
  Three it;
  it.barrier(0, 1);
  const auto open = it.meetings.open_waits();
  ASSERT_EQ(open.size(), 1U);
  EXPECT_EQ(open[0].first, 0);
  EXPECT_EQ(open[0].second.name, "b");
  EXPECT_THAT(open[0].second.whom, ElementsAre(1, 2));
  it.now += Duration(10);
  it.barrier(2, 1);
  it.now += Duration(10);
  EXPECT_THAT(waits_in(it.barrier(1, 1)),
              ElementsAre("0 since 1000 for 1", "1 since 1020 for 1", "2 since 1010 for 1"));
  it.barrier(0, 2);
  EXPECT_THAT(waits_in(it.meetings.overdue(it.now + Duration(1'000))),
              ElementsAre("0 since 1020 for 1, 2"));
  it.ready(0, 0);
  it.roll.set(0, Presence::Settled);
  it.roll.set(2, Presence::Settled);
  EXPECT_THAT(it.meetings.look(), IsEmpty());
  it.roll.set(1, Presence::Settled);
  EXPECT_THAT(waits_in(it.meetings.look()), ElementsAre("0 since 1020 for 1"));
  it.barrier(0, 3);
  it.barrier(1, 3);
  it.roll.set(2, Presence::Finished);
  EXPECT_THAT(waits_in(it.meetings.look(2)),
              ElementsAre("0 since 1020 for 2", "1 since 1020 for 2"));
}

TEST(Meetings, HaveABound) {
  Three it;
  for (std::size_t i = 0; i < Meetings::kWaitingMax; ++i) EXPECT_THAT(it.ready(1, 0), IsEmpty());
  EXPECT_EQ(it.ready(1, 0).at(0).reply.error, "it waits for too much already");
  EXPECT_EQ(it.barrier(1, 1).at(0).reply.error, "it waits for too much already");
  EXPECT_THAT(it.ready(2, 0), IsEmpty()) << "another one may";
}

TEST(Roll, IsOpenWhenNobodyIsWaitedForAnyMore) {
  Three it;
  EXPECT_FALSE(it.roll.is_open());
  it.roll.set(0, Presence::Settled);
  it.roll.set(1, Presence::Finished);
  EXPECT_FALSE(it.roll.is_open());
  it.roll.set(2, Presence::Settled);
  EXPECT_TRUE(it.roll.is_open());
  it.roll.set(2, Presence::Awaited);
  EXPECT_TRUE(it.roll.is_open()) << "one that begins again was there";
}

}  // namespace
}  // namespace trainyard::workers
