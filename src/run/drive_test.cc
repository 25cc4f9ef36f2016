// The promises of the loop, on a machine and a journal that are lists in memory.
#include "run/drive.h"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <expected>
#include <string>
#include <utility>
#include <variant>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/bytes.h"
#include "base/check.h"
#include "base/match.h"
#include "model/event.h"
#include "model/plan.h"
#include "model/resources.h"
#include "model/status.h"

namespace trainyard::run {
namespace {

using ::testing::ElementsAre;

Instant at(int seconds) { return {Duration{seconds * 1000}}; }

/// The calls of the machine and of the journal, in one list, so that their order shows.
using Story = std::vector<std::string>;

class ScriptedMachine final : public Machine {
 public:
  ScriptedMachine(Story& story, std::deque<std::vector<model::Event>> script)
      : story_(story), script_(std::move(script)) {}

  void carry_out(const model::Command& command) override {
    story_.push_back(match(
        command,
        [](const model::StartAttempt& it) { return fmt::format("start {}", it.key.task.value); },
        [](const model::GrantDevice& it) { return fmt::format("train {}", it.key.task.value); },
        [](const model::SignalAttempt& it) { return fmt::format("signal {}", it.key.task.value); },
        [](const model::StopAttempt& it) { return fmt::format("stop {}", it.key.task.value); },
        [](const model::Answer& it) { return fmt::format("answer {}", it.request); }));
  }
  std::vector<model::Event> wait(std::optional<Instant> until) override {
    check(!script_.empty(), "the script is long enough");
    waited_until = until;
    more_after_ -= 1;
    std::vector<model::Event> events = std::move(script_.front());
    script_.pop_front();
    return events;
  }

  [[nodiscard]] bool more_to_come() const override { return more_after_ > 0; }

  /// Claims are refused this number of times, and the last time for this turn.
  void refuse(int times) { refusals_ = times; }
  std::optional<model::ClaimRefused> claim(const Claim& claim) override {
    story_.push_back(fmt::format("claim {}", claim.round));
    if (refusals_-- <= 0) return std::nullopt;
    model::ClaimRefused refused{.no_more = claim.round == kClaimRoundsMax};
    for (const model::Command& command : claim.decided.commands) {
      if (const auto* const start = std::get_if<model::StartAttempt>(&command)) {
        refused.attempts.push_back(start->key);
      }
    }
    return refused;
  }

  /// Something is on its way until it was waited so often.
  void expect_more(int waits) { more_after_ = waits; }

  std::optional<Instant> waited_until;

 private:
  Story& story_;
  std::deque<std::vector<model::Event>> script_;
  int more_after_ = 0;
  int refusals_ = 0;
};

class ScriptedRecorder final : public journal::Recorder {
 public:
  ScriptedRecorder(Story& story, std::deque<bool> works)
      : story_(story), works_(std::move(works)) {}

  Result<void> commit(const model::Turn& turn) override {
    const bool works = works_.empty() || works_.front();
    if (!works_.empty()) works_.pop_front();
    story_.push_back(fmt::format("{} {}", works ? "wrote" : "could not write", turn.events.size()));
    last_statuses.clear();
    for (const model::Decision& decision : turn.decisions) {
      for (const model::Change& change : decision.changes) {
        const auto* const task = std::get_if<model::TaskChanged>(&change);
        if (task == nullptr) continue;
        last_statuses.push_back(fmt::format("{} {}", task->key.task.value, to_text(task->status)));
      }
    }
    if (works) return {};
    return std::unexpected(Error{"disk full"});
  }

  std::vector<std::string> last_statuses;  ///< Those that tasks enter in the last turn.

 private:
  Story& story_;
  std::deque<bool> works_;
};

schedule::Scheduler scheduler() {
  schedule::Scheduler core{model::Policy{}};
  static_cast<void>(core.on(
      {.at = at(0),
       .what = model::MachineJoined{.machine = {},
                                    .name = "here",
                                    .capacity = {.memory = gb(10), .cpus = model::cpus(4)}}}));
  return core;
}

model::Event look() { return {.at = at(0), .what = model::Sampled{.memory_available = gb(10)}}; }

model::Event batch(std::uint32_t number, int tasks, model::Terms terms = {}, int second = 0) {
  auto plan = std::make_shared<model::Plan>();
  plan->groups.push_back({.name = "g"});
  terms.request.memory = gb(6);
  plan->shapes.push_back({.group = {0}, .terms = std::move(terms)});
  plan->tasks.resize(static_cast<std::size_t>(tasks));
  return {.at = at(second), .what = model::BatchAdded{.number = number, .plan = std::move(plan)}};
}

model::Event started(std::uint32_t task, int second) {
  return {.at = at(second), .what = model::AttemptStarted{.key = {{task}, 1}, .pid = 1}};
}
model::Event ended(std::uint32_t task, int second) {
  return {.at = at(second),
          .what = model::AttemptEnded{.key = {{task}, 1}, .end = model::ExitedWith{0}}};
}
model::Event says(model::Said said, int second) {
  return {.at = at(second), .what = model::StageReported{.key = {{0}, 1}, .said = said}};
}
model::Event interrupt(int second) { return {.at = at(second), .what = model::InterruptAsked{}}; }
model::Event nothing(int second) { return {.at = at(second), .what = model::TimePassed{}}; }

TEST(Drive, WritesATurnDownBeforeItActsOnIt) {
  Story story;
  ScriptedMachine machine(
      story, {{look(), batch(1, 2)}, {started(0, 0)}, {ended(0, 1)}, {started(1, 1), ended(1, 2)}});
  ScriptedRecorder recorder(story, {});
  schedule::Scheduler core = scheduler();
  std::size_t seen = 0;
  std::vector<Observer> observers;
  observers.emplace_back([&](const model::Turn& turn) { seen += turn.events.size(); });

  EXPECT_TRUE(drive(core, machine, recorder, observers).has_value());
  EXPECT_THAT(story, ElementsAre("claim 1", "wrote 2", "start 0", "wrote 1", "claim 1", "wrote 1",
                                 "start 1", "wrote 2"));
  EXPECT_EQ(seen, 6U) << "an observer sees every event once";
}

TEST(Drive, StartsNothingWhileItCannotWriteAndOffersTheTurnAgain) {
  Story story;
  ScriptedMachine machine(story, {{look(), batch(1, 2)},
                                  {started(0, 0)},
                                  {ended(0, 1)},
                                  {nothing(2)},
                                  {started(1, 3), ended(1, 4)}});
  ScriptedRecorder recorder(story, {true, true, false, true});
  schedule::Scheduler core = scheduler();
  std::vector<Observer> observers;

  const auto tell = [&](const std::optional<Error>& why) {
    story.push_back(why ? "told: " + why->message : "told: over");
  };
  EXPECT_TRUE(drive(core, machine, recorder, observers, {.tell = tell}).has_value());
  EXPECT_THAT(
      story, ElementsAre("claim 1", "wrote 2", "start 0", "wrote 1", "claim 1", "could not write 1",
                         "told: disk full", "wrote 2", "told: over", "start 1", "wrote 2"));
}

TEST(Drive, GivesUpWhenItCouldNotWriteForTooLong) {
  Story story;
  ScriptedMachine machine(story,
                          {{look(), batch(1, 2)}, {started(0, 0)}, {nothing(1)}, {nothing(6)}});
  ScriptedRecorder recorder(story, {true, false, false, false});
  schedule::Scheduler core = scheduler();
  std::vector<Observer> observers;

  const Result<void> result =
      drive(core, machine, recorder, observers, {.patience = Duration{5000}, .tell = {}});
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().message, "the journal cannot be written: disk full");
  EXPECT_THAT(story, ElementsAre("claim 1", "wrote 2", "start 0", "could not write 1",
                                 "could not write 2", "could not write 3", "stop 0"))
      << "what runs is told to end";
  EXPECT_EQ(machine.waited_until, at(2)) << "it offers the turn again after a second";
}

TEST(Drive, MakesRoomForWhatHasHappenedBeforeItGivesUp) {
  Story story;
  ScriptedMachine machine(story,
                          {{look(), batch(1, 2)}, {started(0, 0)}, {ended(0, 1)}, {nothing(6)}});
  ScriptedRecorder recorder(story, {true, false, false, false, true});
  schedule::Scheduler core = scheduler();
  std::vector<Observer> observers;

  const auto make_room = [&story] { story.emplace_back("make room"); };
  EXPECT_FALSE(drive(core, machine, recorder, observers,
                     {.patience = Duration{5000}, .tell = {}, .make_room = make_room})
                   .has_value());
  EXPECT_THAT(story, ElementsAre("claim 1", "wrote 2", "start 0", "could not write 1", "claim 1",
                                 "could not write 2", "could not write 3", "make room", "wrote 3"));
}

TEST(Drive, WritesNoStartThatItDidNotCarryOutBeforeItGaveUp) {
  Story story;
  ScriptedMachine machine(story,
                          {{look(), batch(1, 2)}, {started(0, 0)}, {ended(0, 1)}, {interrupt(2)}});
  ScriptedRecorder recorder(story, {true, true, false, false, true});
  schedule::Scheduler core = scheduler();
  std::vector<Observer> observers;

  EXPECT_FALSE(
      drive(core, machine, recorder, observers, {.tell = {}, .make_room = [] {}}).has_value());
  EXPECT_THAT(story, ElementsAre("claim 1", "wrote 2", "start 0", "wrote 1", "claim 1",
                                 "could not write 1", "could not write 2", "wrote 2"))
      << "the start of the other task was decided";
  EXPECT_THAT(recorder.last_statuses, ElementsAre("0 FINISHED", "0 EXITED"));
}

TEST(Drive, WritesNoRetryThatItDidNotCarryOutBeforeItGaveUp) {
  Story story;
  ScriptedMachine machine(
      story,
      {{look(), batch(1, 1, {.retries = {.failures = 1}})},
       {started(0, 0)},
       {{.at = at(1), .what = model::AttemptEnded{.key = {{0}, 1}, .end = model::ExitedWith{1}}}},
       {interrupt(2)}});
  ScriptedRecorder recorder(story, {true, true, false, false, true});
  schedule::Scheduler core = scheduler();
  std::vector<Observer> observers;

  EXPECT_FALSE(
      drive(core, machine, recorder, observers, {.tell = {}, .make_room = [] {}}).has_value());
  EXPECT_THAT(story, ElementsAre("claim 1", "wrote 2", "start 0", "wrote 1", "claim 1",
                                 "could not write 1", "could not write 2", "wrote 2"))
      << "the start of attempt 2 was decided";
  EXPECT_THAT(recorder.last_statuses, ElementsAre("0 INTERRUPT"));
}

TEST(Drive, WritesNoDeviceThatItDidNotGrantBeforeItGaveUp) {
  Story story;
  ScriptedMachine machine(story, {{look(), batch(1, 1, {.two_phase = true})},
                                  {started(0, 0), says(model::Said::Loading, 0)},
                                  {says(model::Said::Loaded, 1)},
                                  {interrupt(2)}});
  ScriptedRecorder recorder(story, {true, true, false, false, true});
  schedule::Scheduler core = scheduler();
  std::vector<Observer> observers;

  EXPECT_FALSE(
      drive(core, machine, recorder, observers, {.tell = {}, .make_room = [] {}}).has_value());
  EXPECT_THAT(story, ElementsAre("claim 1", "wrote 2", "start 0", "wrote 2", "claim 1",
                                 "could not write 1", "could not write 2", "wrote 2", "stop 0"))
      << "its training was decided";
  EXPECT_THAT(recorder.last_statuses, ElementsAre("0 WAITING"));
}

TEST(Drive, GivesUpAtOnceWhenInterruptedWhileItCannotWrite) {
  Story story;
  ScriptedMachine machine(story, {{look(), batch(1, 1)}, {started(0, 0)}, {interrupt(1)}});
  ScriptedRecorder recorder(story, {true, false, false});
  schedule::Scheduler core = scheduler();
  std::vector<Observer> observers;

  EXPECT_FALSE(drive(core, machine, recorder, observers).has_value());
  EXPECT_THAT(story, ElementsAre("claim 1", "wrote 2", "start 0", "could not write 1",
                                 "could not write 2", "stop 0"));
}

TEST(Drive, TellsWhatRunsToEndEvenWhileItCannotWrite) {
  Story story;
  schedule::Scheduler core = scheduler();
  ScriptedMachine machine(story, {{look(), batch(1, 1, {.time_limit = Duration{5000}})},
                                  {started(0, 0)},
                                  {nothing(5)},
                                  {ended(0, 6)}});
  ScriptedRecorder recorder(story, {true, true, false, true});
  std::vector<Observer> observers;

  EXPECT_TRUE(drive(core, machine, recorder, observers).has_value());
  EXPECT_THAT(story, ElementsAre("claim 1", "wrote 2", "start 0", "wrote 1", "could not write 1",
                                 "stop 0", "wrote 2"));
}

TEST(Drive, NeverStartsWhatWasForAMachineThatIsGoneBeforeTheTurnIsWritten) {
  Story story;
  const auto machine_says = [](model::What what) {
    return model::Event{.at = at(1), .what = std::move(what)};
  };
  ScriptedMachine machine(
      story,
      {{look(), batch(1, 1)},
       {machine_says(model::KeeperSilent{.silent = true}),
        machine_says(model::MachineGone{.machine = {}, .why = "its agent is gone"})},
       {machine_says(model::MachineJoined{
            .machine = {}, .name = "here", .capacity = {.memory = gb(10), .cpus = model::cpus(4)}}),
        machine_says(model::Sampled{.memory_available = gb(10)})},
       {{.at = at(2), .what = model::AttemptEnded{.key = {{0}, 2}, .end = model::ExitedWith{0}}}}});
  ScriptedRecorder recorder(story, {false, false});
  schedule::Scheduler core = scheduler();
  std::vector<Observer> observers;

  EXPECT_TRUE(drive(core, machine, recorder, observers).has_value());
  // The loop reports the end of the first attempt, as the machine cannot, and the second one
  // starts.
  EXPECT_THAT(story, ElementsAre("claim 1", "could not write 2", "could not write 5", "claim 1",
                                 "wrote 7", "start 0", "wrote 1"));
}

TEST(Drive, DecidesAnewInTheSameTurnWhatIsRefusedAndWritesNothingOfIt) {
  Story story;
  ScriptedMachine machine(story, {{look(), batch(1, 1)}, {started(0, 0), ended(0, 1)}});
  machine.refuse(2);
  ScriptedRecorder recorder(story, {});
  schedule::Scheduler core = scheduler();
  int began = 0;
  std::vector<Observer> observers;
  observers.emplace_back([&](const model::Turn& turn) {
    for (const model::Decision& decision : turn.decisions) {
      for (const model::Change& change : decision.changes) {
        const auto* const task = std::get_if<model::TaskChanged>(&change);
        began += task != nullptr && task->status == Status::Available ? 1 : 0;
      }
    }
  });

  EXPECT_TRUE(drive(core, machine, recorder, observers).has_value());
  EXPECT_THAT(story, ElementsAre("claim 1", "claim 2", "claim 3", "wrote 4", "start 0", "wrote 2"));
  EXPECT_EQ(began, 1) << "it began once, when nobody was in its way";
}

TEST(Drive, StartsNothingInATurnInWhichTooMuchWasRefused) {
  Story story;
  ScriptedMachine machine(story,
                          {{look(), batch(1, 1)}, {nothing(1)}, {started(0, 2), ended(0, 3)}});
  machine.refuse(Machine::kClaimRoundsMax);
  ScriptedRecorder recorder(story, {});
  schedule::Scheduler core = scheduler();
  std::vector<Observer> observers;

  EXPECT_TRUE(drive(core, machine, recorder, observers).has_value());
  EXPECT_THAT(story, ElementsAre("claim 1", "claim 2", "claim 3", "claim 4", "wrote 6", "claim 1",
                                 "wrote 1", "start 0", "wrote 2"));
}

TEST(Drive, GoesOnWhenAnIdleRunIsGivenMore) {
  Story story;
  ScriptedMachine machine(story, {{look(), batch(1, 1)},
                                  {started(0, 0), ended(0, 1)},
                                  {nothing(2)},
                                  {batch(2, 1, {}, 3)},
                                  {started(1, 3), ended(1, 4)}});
  machine.expect_more(4);
  ScriptedRecorder recorder(story, {});
  schedule::Scheduler core = scheduler();
  std::vector<Observer> observers;

  EXPECT_TRUE(drive(core, machine, recorder, observers).has_value());
  EXPECT_THAT(story, ElementsAre("claim 1", "wrote 2", "start 0", "wrote 2", "wrote 1", "claim 1",
                                 "wrote 1", "start 1", "wrote 2"));
}

}  // namespace
}  // namespace trainyard::run
