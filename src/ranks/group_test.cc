#include "ranks/group.h"

#include <algorithm>
#include <csignal>
#include <random>
#include <utility>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/match.h"

namespace trainyard::ranks {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::string text(const GroupCommand& command) {
  const auto verdict = [](const Verdict& it) {
    return it.why.empty() ? std::string(to_text(it.code))
                          : fmt::format("{}: {}", to_text(it.code), it.why);
  };
  return match(
      command, [](const StartProcesses&) { return std::string("start"); },
      [](const SendInitialise& it) { return fmt::format("initialise {}", it.rank); },
      [](const SendExecute& it) { return fmt::format("execute {}", it.rank); },
      [](const SendStop& it) { return fmt::format("stop {}", it.rank); },
      [](const SendClose& it) { return fmt::format("close {}", it.rank); },
      [](const SignalProcesses& it) { return fmt::format("signal {}", it.signal); },
      [&](const Launched& it) { return "launched " + verdict(it.verdict); },
      [&](const Executed& it) { return fmt::format("executed {} {}", it.id, verdict(it.verdict)); },
      [&](const EventOver& it) { return fmt::format("event {} {}", it.id, verdict(it.verdict)); },
      [](const Restart& it) { return fmt::format("restart {}", it.id); },
      [](const GroupDown& it) { return "down" + it.left; });
}

class GroupTest : public testing::Test {
 protected:
  explicit GroupTest(Group::Options options = {.ranks = 2, .limits = {.execute = Duration(60'000)}})
      : group_(options) {}

  std::vector<std::string> on(const GroupEvent& event) {
    std::vector<std::string> texts;
    for (const GroupCommand& command : group_.on(event, now_)) texts.push_back(text(command));
    return texts;
  }
  /// Lets the time pass until something is due.
  std::vector<std::string> pass() {
    now_ = group_.wake_at().value();
    return on(TimePassed{});
  }
  void bring_up() {
    on(LaunchAsked{});
    on(RankJoined{0});
    on(RankJoined{1});
    on(RankReplied{.rank = 0});
    on(RankReplied{.rank = 1});
    ASSERT_EQ(group_.phase(), Phase::Ready);
  }
  static GroupEvent replied(int rank, ReturnCode code = ReturnCode::Ok, std::string why = {}) {
    return RankReplied{.rank = rank, .verdict = {.code = code, .why = std::move(why)}};
  }
  static GroupEvent ended(int rank, model::End end = model::ExitedWith{0}) {
    return ProcessEnd{.rank = rank, .end = std::move(end)};
  }

  Duration now_{1'000};
  Group group_;
};

TEST_F(GroupTest, IsReadyWhenAllHaveJoinedAndMadeTheirComponents) {
  EXPECT_THAT(on(LaunchAsked{}), ElementsAre("start"));
  EXPECT_THAT(on(RankJoined{1}), IsEmpty());
  EXPECT_THAT(on(RankJoined{0}), ElementsAre("initialise 0", "initialise 1"));
  EXPECT_THAT(on(replied(1)), IsEmpty());
  EXPECT_THAT(on(replied(0)), ElementsAre("launched ok"));
  EXPECT_EQ(group_.phase(), Phase::Ready);
  EXPECT_EQ(group_.wake_at(), std::nullopt);
}

TEST_F(GroupTest, IsEndedWhenALimitOfItsLaunchHasPassed) {
  on(LaunchAsked{});
  on(RankJoined{1});
  EXPECT_THAT(pass(), ElementsAre("launched launch-failed: rank 0 did not connect within 5m "
                                  "(limit 'launch')",
                                  "close 1"));
  EXPECT_EQ(now_, Duration(301'000));
  EXPECT_THAT(pass(), ElementsAre("signal 15"));
  EXPECT_THAT(pass(), ElementsAre("signal 9"));
  EXPECT_THAT(on(ended(0, model::KilledBy{SIGKILL})), IsEmpty());
  EXPECT_THAT(on(ended(1, model::KilledBy{SIGKILL})), ElementsAre("down"));
  EXPECT_EQ(group_.phase(), Phase::Down);
}

TEST_F(GroupTest, WaitsNoLongerForProcessesThatCannotBeEnded) {
  on(LaunchAsked{});
  pass();
  EXPECT_THAT(pass(), ElementsAre("signal 9"));
  EXPECT_THAT(pass(), ElementsAre("downrank 0, rank 1 cannot be ended"));
}

TEST_F(GroupTest, TellsHowItsLauncherEndedOfARankThatIsGone) {
  group_ = Group({.ranks = 2, .own_processes = false});
  bring_up();
  on(ExecuteAsked{7});
  EXPECT_THAT(on(RankGone{.rank = 1, .why = "its connection has ended"}), IsEmpty());
  EXPECT_THAT(on(ProcessEnd{.end = model::KilledBy{.signal = 9, .out_of_memory = true}}),
              ElementsAre("executed 7 out-of-memory: rank 1 is gone, and the launcher was killed "
                          "by signal 9 (out of memory)",
                          "stop 0", "down"));
}

TEST_F(GroupTest, AnswersWithTheFirstReplyThatIsNotOk) {
  bring_up();
  EXPECT_THAT(on(ExecuteAsked{7}), ElementsAre("execute 0", "execute 1"));
  EXPECT_THAT(on(replied(1, ReturnCode::EmptyResult, "none")), IsEmpty());
  EXPECT_THAT(on(replied(0)), ElementsAre("executed 7 empty-result: none"));
  EXPECT_EQ(group_.phase(), Phase::Ready);
}

TEST_F(GroupTest, AnswersAtOnceWhenARankThrowsAndWaitsForTheOthersToStop) {
  bring_up();
  on(ExecuteAsked{7});
  EXPECT_THAT(on(replied(1, ReturnCode::ExecutionException, "no")),
              ElementsAre("executed 7 execution-exception: no", "stop 0"));
  EXPECT_EQ(group_.phase(), Phase::Settling);
  EXPECT_THAT(on(replied(0)), IsEmpty());
  EXPECT_EQ(group_.phase(), Phase::Ready);
}

TEST_F(GroupTest, EndsThoseThatDoNotStopAfterAnother) {
  bring_up();
  on(ExecuteAsked{7});
  on(replied(1, ReturnCode::ExecutionException, "no"));
  EXPECT_THAT(pass(), ElementsAre("close 1", "stop 0", "signal 15"));
  EXPECT_EQ(group_.phase(), Phase::Ending);
}

TEST_F(GroupTest, AnswersThatItWasAbortedWhateverTheRanksSay) {
  bring_up();
  on(ExecuteAsked{7});
  EXPECT_THAT(on(StopAsked{"Ctrl-C"}), ElementsAre("stop 0", "stop 1"));
  EXPECT_THAT(on(StopAsked{"Ctrl-C"}), IsEmpty());
  EXPECT_THAT(on(replied(0)), IsEmpty());
  EXPECT_THAT(on(replied(1, ReturnCode::ExecutionException, "stopped")),
              ElementsAre("executed 7 task-aborted: Ctrl-C"));
  EXPECT_EQ(group_.phase(), Phase::Ready);
}

TEST_F(GroupTest, EndsRanksThatDoNotStop) {
  bring_up();
  on(ExecuteAsked{7});
  on(StopAsked{"Ctrl-C"});
  on(replied(0));
  EXPECT_THAT(pass(), ElementsAre("executed 7 task-aborted: Ctrl-C (rank 1 did not stop within "
                                  "5.0 s (limit 'stop'))",
                                  "close 0", "stop 1", "signal 15"));
}

TEST_F(GroupTest, WaitsAMomentForTheCauseOfADeath) {
  bring_up();
  on(ExecuteAsked{7});
  EXPECT_THAT(on(RankGone{.rank = 1, .why = "its connection has ended"}), IsEmpty());
  EXPECT_THAT(on(ended(1, model::KilledBy{.signal = 9, .out_of_memory = true})),
              ElementsAre("executed 7 out-of-memory: rank 1 was killed by signal 9 (out of memory)",
                          "stop 0"));
  EXPECT_THAT(on(replied(0)), ElementsAre("close 0"));
  EXPECT_THAT(on(ended(0)), ElementsAre("down"));
}

TEST_F(GroupTest, DoesWithoutTheCauseWhenItDoesNotCome) {
  bring_up();
  on(ExecuteAsked{7});
  on(RankGone{.rank = 1, .why = "its connection has ended"});
  EXPECT_THAT(pass(), ElementsAre("executed 7 rank-died: rank 1 is gone: its connection has ended",
                                  "stop 0"));
  EXPECT_EQ(now_, Duration(1'500));
}

TEST_F(GroupTest, SaysHowItsLauncherEnded) {
  Group launched({.ranks = 1, .own_processes = false});
  launched.on(LaunchAsked{}, now_);
  const auto commands = launched.on(ProcessEnd{.end = model::ExitedWith{3}}, now_);
  ASSERT_EQ(commands.size(), 2U);
  EXPECT_EQ(text(commands[0]), "launched launch-failed: the launcher exited with code 3");
  EXPECT_EQ(text(commands[1]), "down");
}

TEST_F(GroupTest, BeginsAnExecutionAnewAsOftenAsItMay) {
  group_ = Group({.ranks = 2, .restarts = 1});
  bring_up();
  on(ExecuteAsked{7});
  EXPECT_THAT(on(ended(0, model::ExitedWith{1})), ElementsAre("restart 7", "stop 1"));
  on(ended(1));
  bring_up();
  on(ExecuteAsked{7});
  EXPECT_THAT(on(ended(0, model::ExitedWith{1})),
              ElementsAre("executed 7 rank-died: rank 0 exited with code 1", "stop 1"));
  on(ended(1));
  bring_up();
  on(ExecuteAsked{8});
  EXPECT_THAT(on(ended(0, model::ExitedWith{1})), ElementsAre("restart 8", "stop 1"));
}

TEST_F(GroupTest, EndsAnEventWhenAllHaveHeardIt) {
  bring_up();
  EXPECT_THAT(on(EventAsked{.id = 1}), ElementsAre("event 1 ok"));
  EXPECT_THAT(on(EventAsked{.id = 2, .ranks = {0, 1}}), IsEmpty());
  EXPECT_THAT(on(EventHeard{.id = 2, .rank = 1}), IsEmpty());
  EXPECT_THAT(on(EventHeard{.id = 2, .rank = 0}), ElementsAre("event 2 ok"));
  on(EventAsked{.id = 3, .ranks = {1}});
  EXPECT_THAT(pass(),
              ElementsAre("event 3 timeout: rank 1 did not answer within 30.0 s (limit 'event')"));
  EXPECT_THAT(on(EventHeard{.id = 3, .rank = 1}), IsEmpty());
  on(EventAsked{.id = 4, .ranks = {0, 1}});
  EXPECT_THAT(on(ended(1, model::ExitedWith{2})),
              ElementsAre("event 4 rank-died: rank 1 exited with code 2", "close 0"));
}

TEST_F(GroupTest, ClosesCleanly) {
  bring_up();
  EXPECT_THAT(on(CloseAsked{}), ElementsAre("close 0", "close 1"));
  EXPECT_THAT(on(RankGone{.rank = 0, .why = "its connection has ended"}), IsEmpty());
  EXPECT_THAT(on(ended(0)), IsEmpty());
  EXPECT_THAT(on(ended(1)), ElementsAre("down"));
  EXPECT_THAT(on(CloseAsked{}), IsEmpty());
}

/// A group to which anything may happen.
class Played {
 public:
  explicit Played(std::mt19937& random)
      : random_(random),
        ranks_(1 + static_cast<int>(random() % 4)),
        group_({.ranks = ranks_,
                .own_processes = random() % 2 == 0,
                .limits = {.execute = Duration(60'000)},
                .restarts = static_cast<int>(random() % 2)}) {}

  void step() {
    const int rank = static_cast<int>(random_() % static_cast<unsigned>(ranks_));
    switch (random_() % 6) {
      case 0:
        return ask(rank);
      case 1:
        return feed(EventHeard{.id = last_, .rank = rank});
      case 2:
        return go_wrong(rank);
      default:
        feed(RankJoined{rank});
        feed(RankReplied{
            .rank = rank,
            .verdict = {.code = one_in(6) ? ReturnCode::ExecutionException : ReturnCode::Ok}});
    }
  }

  /// Returns the time that it took.
  Duration close() {
    const Duration closed = now_;
    feed(CloseAsked{});
    while (group_.wake_at()) pass();
    return now_ - closed;
  }

  /// The number of requests that have not been answered, by name.
  [[nodiscard]] const std::map<std::string, int>& open() const { return open_; }
  [[nodiscard]] Phase phase() const { return group_.phase(); }

 private:
  bool one_in(unsigned count) { return random_() % count == 0; }

  void ask(int rank) {
    if (group_.phase() == Phase::Down) {
      ++open_["launch"];
      feed(LaunchAsked{});
    } else if (group_.phase() == Phase::Ready && one_in(2)) {
      ++open_[fmt::format("x{}", ++last_)];
      feed(ExecuteAsked{last_});
    } else {
      ++open_[fmt::format("e{}", ++last_)];
      feed(EventAsked{.id = last_, .ranks = {rank}});
    }
  }

  void go_wrong(int rank) {
    if (!one_in(4)) return;
    switch (random_() % 5) {
      case 0:
        return feed(StopAsked{"stop"});
      case 1:
        return feed(RankGone{.rank = rank, .why = "gone"});
      case 2:
        return feed(ProcessEnd{.rank = rank, .end = model::ExitedWith{1}});
      case 3:
        return feed(RankSpokeNonsense{.rank = rank, .what = "x"});
      default:
        if (group_.wake_at()) pass();
    }
  }

  void pass() {
    now_ = std::max(now_, group_.wake_at().value_or(now_));
    feed(TimePassed{});
  }

  void feed(const GroupEvent& event) {
    for (const GroupCommand& command : group_.on(event, now_)) {
      if (std::holds_alternative<Launched>(command)) --open_["launch"];
      if (const auto* it = std::get_if<Executed>(&command)) --open_[fmt::format("x{}", it->id)];
      if (const auto* it = std::get_if<Restart>(&command)) --open_[fmt::format("x{}", it->id)];
      if (const auto* it = std::get_if<EventOver>(&command)) --open_[fmt::format("e{}", it->id)];
    }
  }

  std::mt19937& random_;
  int ranks_;
  Group group_;
  Duration now_{0};
  std::map<std::string, int> open_;
  std::uint64_t last_ = 0;
};

/// In whatever order: what was asked for is answered once, and after a close all is down within the
/// limits.
TEST(Group, AnswersEverythingOnceWhateverHappens) {
  const auto seed = std::random_device()();
  SCOPED_TRACE(fmt::format("seed {}", seed));
  std::mt19937 random(seed);
  for (int run = 0; run < 2'000; ++run) {
    Played played(random);
    for (int step = 0; step < 60; ++step) {
      played.step();
      for (const auto& [name, count] : played.open()) {
        ASSERT_TRUE(count == 0 || count == 1) << name;
      }
    }
    EXPECT_LE(played.close(), Duration(30'000));
    EXPECT_EQ(played.phase(), Phase::Down);
    for (const auto& [name, count] : played.open()) ASSERT_EQ(count, 0) << name;
  }
}

}  // namespace
}  // namespace trainyard::ranks
