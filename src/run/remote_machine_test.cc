#include "run/remote_machine.h"

#include <algorithm>
#include <fstream>
#include <utility>
#include <variant>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/bytes.h"
#include "link/control_socket.h"
#include "run/test_agent.h"
#include "sys/clock.h"
#include "sys/descriptor.h"
#include "sys/test_directory.h"

namespace trainyard::run {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class RemoteMachines : public TestAgent {};

TEST_F(RemoteMachines, SayWhatIsThereWhenTheyAreAsked) {
  make();
  machine_->look({.directory = "/run"});
  wait_until([this] { return heard_lines_.size() == 1; });
  EXPECT_THAT(heard_lines_, ElementsAre(R"({"number":1,"look":{"directory":"/run"}})"));
  EXPECT_EQ(machine_->seen(), nullptr);
  const wire::AgentSeen seen{.disk_free = gb(1), .programs = {{.why_not = "it is not there"}}};
  say(seen, /*numbered=*/true);
  wait_until([this] { return machine_->seen() != nullptr; });
  EXPECT_EQ(*machine_->seen(), seen);
}

TEST_F(RemoteMachines, SayHowMuchTheirClocksAreAhead) {
  hello_->unix_ms = sys::unix_milliseconds() + 3'600'000;
  make();
  wait_until([this] { return machine_->hello() != nullptr; });
  EXPECT_LE(machine_->clock_ahead(), Duration(3'600'000));
  EXPECT_GT(machine_->clock_ahead(), Duration(3'000'000));
}

TEST_F(RemoteMachines, SayWhatASetupHasPrintedThatFailed) {
  RemoteMachine::Options failing = options();
  failing.command = {"sh", "-c", "echo one >&2; echo two >&2; exit 97"};
  machine_ = std::make_unique<RemoteMachine>(loop_, failing);
  machine_->connect();
  wait_until([this] { return !machine_->failure().empty(); });
  EXPECT_EQ(machine_->failure(), "its setup failed: one\ntwo");
}

TEST_F(RemoteMachines, JoinTheRunAndTellWhatHappensThere) {
  join();
  EXPECT_EQ(begin_->key, "k");
  EXPECT_EQ(begin_->after, "");
  start(kOne);
  wait_until([this] { return heard_lines_.size() == 1; });
  tell(model::AttemptStarted{.key = kOne, .pid = 7});
  tell(model::Sampled{.memory_available = gb(1),
                      .tasks = {{.key = kOne, .memory = gb(2)}, {.key = {.task = {9}}}}});
  tell(model::AttemptEnded{.key = kOne, .end = model::ExitedWith{3}});
  wait_until([this] { return count<model::AttemptEnded>() == 1; });
  ASSERT_EQ(told_.size(), 4U);
  EXPECT_TRUE(told_[0] == model::What(model::MachineJoined{
                              .machine = {2}, .name = "lab1", .capacity = hello_->capacity}));
  EXPECT_TRUE(told_[1] == model::What(model::AttemptStarted{.key = kOne, .pid = 7}));
  EXPECT_TRUE(told_[2] == model::What(model::Sampled{.memory_available = gb(1),
                                                     .tasks = {{.key = kOne, .memory = gb(2)}},
                                                     .machine = {2}}))
      << "the other one does not run there";
  EXPECT_TRUE(told_[3] ==
              model::What(model::AttemptEnded{.key = kOne, .end = model::ExitedWith{3}}));
  EXPECT_EQ(notes_, "");
}

TEST_F(RemoteMachines, TellWhenTheyAreTakenAway) {
  until_ = sys::EventLoop::now() + Duration{60'000};
  join();
  const auto& joined = std::get<model::MachineJoined>(told_[0]);
  ASSERT_TRUE(joined.until);
  const Instant at_most{Duration{60'500}};
  EXPECT_LE(*joined.until, at_most);
  EXPECT_LT(at_most - *joined.until, sys::kLongEnough);
}

TEST_F(RemoteMachines, TellNothingOfAttemptsThatAreNotTheirs) {
  join();
  start(kOne);
  tell(model::AttemptEnded{.key = {.task = {1}, .attempt = 2}, .end = model::ExitedWith{0}});
  tell(model::AttemptStarted{.key = {.task = {5}}, .pid = 7});
  tell(model::InterruptAsked{});
  tell(model::BatchAdded{});
  tell(model::GpusSampled{.gpus = {{}, {}}, .uses = {}, .found = {}});
  tell(model::AttemptEnded{.key = kOne, .end = model::ExitedWith{0}});
  tell(model::AttemptEnded{.key = kOne, .end = model::ExitedWith{1}});
  tell(model::Sampled{});
  wait_until([this] { return count<model::Sampled>() == 1; });
  EXPECT_EQ(told_.size(), 3U) << "that it joins, one end and the last reading";
  EXPECT_EQ(count<model::AttemptEnded>(), 1U);
}

TEST_F(RemoteMachines, GrantWithWhetherAllGpusAnswer) {
  hello_->capacity.gpus = {{.number = 0, .uuid = "GPU-a"}, {.number = 1, .uuid = "GPU-b"}};
  join();
  EXPECT_TRUE(machine_->grant().gpus_answer);
  tell(model::GpusSampled{.gpus = {{}, {.present = false}}, .uses = {}, .found = {}});
  wait_until([this] { return count<model::GpusSampled>() == 1; });
  EXPECT_FALSE(machine_->grant().gpus_answer);
  tell(model::GpusSampled{.gpus = {{}, {}}, .uses = {}, .found = {}});
  wait_until([this] { return count<model::GpusSampled>() == 2; });
  EXPECT_TRUE(machine_->grant().gpus_answer);
}

TEST_F(RemoteMachines, SayWhatWasNotHeardAgainWhenTheStreamWasCut) {
  join();
  start(kOne);
  wait_until([this] { return heard_lines_.size() == 1; });
  // Lines from now on are lost with the stream.
  stream_.reset();
  start({.task = {2}});
  wait_until([this] { return heard_lines_.size() == 2; });
  wait_until([this] { return count<model::KeeperSilent>() == 2; });
  EXPECT_THAT(heard_lines_[1], HasSubstr(R"("number":3)"));
  EXPECT_THAT(notes_, HasSubstr("lab1: is unreachable"));
  EXPECT_THAT(notes_, HasSubstr("lab1: answers again\n"));
  // A report from before the cut that is sent again is received once.
  --said_;
  tell(model::AttemptEnded{.key = kOne, .end = model::ExitedWith{0}});
  tell(model::AttemptEnded{.key = {.task = {2}}, .end = model::ExitedWith{0}});
  wait_until([this] { return count<model::AttemptEnded>() == 1; });
  EXPECT_EQ(count<model::MachineGone>(), 0U);
}

TEST_F(RemoteMachines, SayHowLongTheyAreWaitedForWhereTheyAreNotReached) {
  join();
  start(kOne);
  wait_until([this] { return heard_lines_.size() == 1; });
  machine_->say_what_is_waited_for();
  EXPECT_EQ(notes_, "") << "it hears what it is told";
  hello_.reset();
  stream_.reset();
  wait_until([this] { return count<model::KeeperSilent>() == 1; });
  machine_->say_what_is_waited_for();
  EXPECT_THAT(notes_, HasSubstr("lab1: is unreachable: its tasks end by themselves; "
                                "waiting for at most 1m5"))
      << "a minute of the lease, and one for the ends";
}

TEST_F(RemoteMachines, LoseWhatRanWhereAnotherAgentHasBegun) {
  join();
  start(kOne);
  wait_until([this] { return heard_lines_.size() == 1; });
  begin_anew();
  gets_ready_ = false;
  stream_.reset();
  wait_until([this] { return begin_->after == "k"; });
  EXPECT_EQ(count<model::KeeperSilent>(), 1U);
  EXPECT_EQ(count<model::AttemptEnded>(), 0U) << "what is left there has not been ended yet";
  say(wire::AgentReady{}, /*numbered=*/true);
  wait_until([this] { return count<model::MachineJoined>() == 2; });
  std::vector<std::size_t> kinds;
  for (const model::What& what : told_) kinds.push_back(what.index());
  const auto index = [](const model::What& what) { return what.index(); };
  EXPECT_THAT(kinds, ElementsAre(index(model::MachineJoined{}), index(model::KeeperSilent{}),
                                 index(model::AttemptEnded{}), index(model::MachineGone{}),
                                 index(model::MachineJoined{})));
  EXPECT_EQ(std::get<model::AttemptEnded>(told_[2]).end,
            model::End(model::Vanished{"lab1: its agent is gone"}));
  start({.task = {3}});
  wait_until([this] { return heard_lines_.size() == 2; });
  EXPECT_THAT(heard_lines_[1], HasSubstr(R"("number":2)")) << "behind that it begins";
}

TEST_F(RemoteMachines, JoinARunAtWorkWhenTheyAreReady) {
  make();
  machine_->begin({.run_directory = "/run", .after = "k"});
  std::uint32_t next = 7;
  machine_->join_when_ready([&] { return model::MachineIndex{next++}; }, ears());
  wait_until([this] { return machine_->is_ready(); });
  EXPECT_THAT(told_, ElementsAre()) << "nobody knows what is free there";
  tell(model::Sampled{.memory_available = gb(1)});
  wait_until([this] { return count<model::Sampled>() == 1; });
  EXPECT_EQ(std::get<model::MachineJoined>(told_[0]).machine, model::MachineIndex{7});
  EXPECT_EQ(std::get<model::Sampled>(told_[1]).machine, model::MachineIndex{7});
  EXPECT_EQ(next, 8U);
}

TEST_F(RemoteMachines, AreLostAtOnceWhenItIsCertainThatNothingRunsThere) {
  join();
  start(kOne);
  wait_until([this] { return heard_lines_.size() == 1; });
  machine_->rest();
  EXPECT_EQ(count<model::KeeperSilent>(), 1U);
  EXPECT_EQ(count<model::AttemptEnded>(), 0U);
  machine_->lose("its allocation has ended");
  EXPECT_EQ(count<model::AttemptEnded>(), 1U);
  EXPECT_EQ(std::get<model::MachineGone>(told_.back()).why, "its allocation has ended");
  EXPECT_THAT(notes_, HasSubstr("lab1: is gone: its allocation has ended"));
}

TEST_F(RemoteMachines, AreToldToBeSilentBeforeTheyAreLost) {
  join();
  start(kOne);
  told_.clear();
  machine_->lose("nothing runs there");
  ASSERT_EQ(told_.size(), 3U);
  EXPECT_EQ(told_[0], model::What(model::KeeperSilent{.silent = true, .machine = {2}}));
  EXPECT_EQ(told_[1], model::What(model::AttemptEnded{
                          .key = kOne, .end = model::Vanished{"lab1: nothing runs there"}}));
  EXPECT_EQ(told_[2], model::What(model::MachineGone{.machine = {2}, .why = "nothing runs there"}));
}

TEST_F(RemoteMachines, AreLedToAnotherAgentThatEndsWhatTheOneBeforeHasLeft) {
  join();
  start(kOne);
  wait_until([this] { return heard_lines_.size() == 1; });
  machine_->rest();
  begin_anew();
  RemoteMachine::Options other = options();
  other.key = "k2";
  machine_->lead_by(std::move(other));
  wait_until([this] { return count<model::MachineJoined>() == 2; });
  EXPECT_EQ(begin_->key, "k2");
  EXPECT_EQ(begin_->after, "k");
  EXPECT_EQ(count<model::AttemptEnded>(), 1U);
}

TEST_F(RemoteMachines, WaitForTheLeaseWhereTheNextAgentRefuses) {
  run_one_under_a_lease();
  begin_anew();
  gets_ready_ = false;
  const Duration cut = sys::EventLoop::now();
  stream_.reset();
  wait_until([this] { return begin_->after == "k"; });
  say(wire::AgentRefuses{.why = "something is left"}, /*numbered=*/true);
  hello_->instance = "third";
  said_ = heard_ = 0;
  wait_until([this] { return count<model::MachineGone>() == 1; });
  EXPECT_GE(sys::EventLoop::now() - cut, Duration(1'000)) << "what ran there may run so long";
  EXPECT_THAT(notes_, HasSubstr("lab1: cannot be used: something is left"));
  EXPECT_EQ(count<model::MachineJoined>(), 1U);
  gets_ready_ = true;
  hello_->instance = "fourth";
  said_ = heard_ = 0;
  stream_.reset();
  wait_until([this] { return count<model::MachineJoined>() == 2; });
}

TEST_F(RemoteMachines, WaitForTheLeaseWhereWhatAnswersIsAnotherMachine) {
  run_one_under_a_lease();
  begin_anew();
  hello_->place = "another boot";
  const Duration cut = sys::EventLoop::now();
  stream_.reset();
  wait_until([this] { return count<model::MachineJoined>() == 2; });
  EXPECT_GE(sys::EventLoop::now() - cut, Duration(1'000)) << "what ran there may run so long";
  EXPECT_THAT(
      notes_,
      HasSubstr(
          "another machine answers, or it was rebooted: tasks that ran there keep their lease"));
  EXPECT_EQ(count<model::AttemptEnded>(), 1U);
}

TEST_F(RemoteMachines, GiveNoMoreTimeThanTheClockThatWasHeardAllows) {
  make(Duration(1'200));
  wait_until([this] { return machine_->hello() != nullptr; });
  wait_until([this] { return told_until_ == Duration(101'200); });
  clock_ = Duration(150'000);
  wait_until([this] { return told_until_ == Duration(151'200); });
  answers_ = false;
  wait_until([this] { return !machine_->failure().empty(); });
  EXPECT_EQ(told_until_, Duration(151'200)) << "no answer has come since";
  EXPECT_EQ(machine_->failure(), "no response");
}

TEST_F(RemoteMachines, AreGoneWhenTheLeaseIsOverAndTheyHaveHadTheTimeToEndWhatRan) {
  run_one_under_a_lease();
  hello_.reset();  // Each stream is accepted, and gets no answer.
  const Duration cut = sys::EventLoop::now();
  stream_.reset();
  wait_until([this] { return count<model::MachineGone>() == 1; });
  EXPECT_GE(sys::EventLoop::now() - cut, Duration(1'000));
  EXPECT_EQ(count<model::AttemptEnded>(), 1U);
  EXPECT_THAT(notes_, HasSubstr("lab1: is gone: no response for"));
}

TEST_F(RemoteMachines, TellNothingMoreOnceTheyAreLeft) {
  join();
  start(kOne);
  wait_until([this] { return heard_lines_.size() == 1; });
  machine_->leave();
  EXPECT_FALSE(machine_->has_left()) << "the agent ends what runs there first";
  tell(model::AttemptEnded{.key = kOne, .end = model::ExitedWith{0}});
  tell(model::Sampled{});
  wait_until([this] { return stream_->unsent() == 0; });
  stream_.reset();
  wait_until([this] { return machine_->has_left(); });
  EXPECT_EQ(told_.size(), 1U) << "that it has joined";
  EXPECT_EQ(notes_, "");
}

TEST_F(RemoteMachines, SayWhatSshSaidWhereTheyCannotBeReached) {
  machine_ = std::make_unique<RemoteMachine>(
      loop_, RemoteMachine::Options{.name = "lab1",
                                    .key = "k",
                                    .command = {"/bin/sh", "-c", "echo no route >&2; exit 255"},
                                    .program = "trainyard 0"});
  machine_->connect();
  wait_until([this] { return !machine_->failure().empty(); });
  EXPECT_EQ(machine_->failure(), "no route");
}

TEST_F(RemoteMachines, AreRefusedWhereTheirAgentSpeaksAnotherLanguage) {
  hello_->protocol = 9;
  make();
  wait_until([this] { return !machine_->failure().empty(); });
  EXPECT_THAT(machine_->failure(), HasSubstr("are incompatible: install the same version on both"));
}

}  // namespace
}  // namespace trainyard::run
