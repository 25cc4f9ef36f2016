// The promises of the loop, on a machine and a journal that are lists in memory.
#include "run/drive.h"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <expected>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/bytes.h"
#include "base/check.h"
#include "base/match.h"
#include "base/result.h"
#include "base/time.h"
#include "journal/recorder.h"
#include "model/command.h"
#include "model/event.h"
#include "model/ids.h"
#include "model/plan.h"
#include "model/resources.h"
#include "model/turn.h"
#include "run/machine.h"
#include "schedule/scheduler.h"

namespace trainyard {
namespace {

using ::testing::ElementsAre;

Instant at(int seconds) { return {Duration{seconds * 1000}}; }

/// What the machine was told and the journal was given, in one list, so that their order shows.
using Story = std::vector<std::string>;

class ScriptedMachine final : public Machine {
 public:
  ScriptedMachine(Story& story, std::deque<std::vector<Event>> script)
      : story_(story), script_(std::move(script)) {}

  [[nodiscard]] Capacity capacity() const override { return {.memory = gb(10), .cpus = cpus(4)}; }
  FirstLook look() override {
    return {.at = at(0), .machine = {.memory_available = gb(10)}, .gpus = {}};
  }
  void carry_out(const Command& command) override {
    story_.push_back(match(
        command, [](const StartAttempt& it) { return fmt::format("start {}", it.key.task.value); },
        [](const GrantDevice& it) { return fmt::format("train {}", it.key.task.value); },
        [](const SignalAttempt& it) { return fmt::format("signal {}", it.key.task.value); },
        [](const StopAttempt& it) { return fmt::format("stop {}", it.key.task.value); },
        [](const AnswerKill& it) { return fmt::format("answer {}", it.request); }));
  }
  std::vector<Event> wait(std::optional<Instant> until) override {
    check(!script_.empty(), "the script is long enough");
    waited_until = until;
    std::vector<Event> events = std::move(script_.front());
    script_.pop_front();
    return events;
  }

  std::optional<Instant> waited_until;

 private:
  Story& story_;
  std::deque<std::vector<Event>> script_;
};

class ScriptedRecorder final : public Recorder {
 public:
  ScriptedRecorder(Story& story, std::deque<bool> works)
      : story_(story), works_(std::move(works)) {}

  Result<void> commit(const Turn& turn) override {
    const bool works = works_.empty() || works_.front();
    if (!works_.empty()) works_.pop_front();
    story_.push_back(fmt::format("{} {}", works ? "wrote" : "could not write", turn.events.size()));
    if (works) return {};
    return std::unexpected(Error{"disk full"});
  }

 private:
  Story& story_;
  std::deque<bool> works_;
};

Scheduler scheduler_of(int tasks) {
  const Plan plan{.groups = {{.name = "g"}},
                  .shapes = {{.group = {0}, .request = {.memory = gb(6)}}},
                  .tasks = std::vector<PlannedTask>(static_cast<std::size_t>(tasks))};
  return {plan, Limits{}, {.memory = gb(10), .cpus = cpus(4)}};
}

Event started(std::uint32_t task, int second) {
  return {.at = at(second), .what = AttemptStarted{.key = {{task}, 1}, .pid = 1}};
}
Event ended(std::uint32_t task, int second) {
  return {.at = at(second), .what = AttemptEnded{.key = {{task}, 1}, .end = ExitedWith{0}}};
}
Event interrupt(int second) { return {.at = at(second), .what = InterruptAsked{}}; }
Event nothing(int second) { return {.at = at(second), .what = TimePassed{}}; }

TEST(Drive, WritesATurnDownBeforeItActsOnIt) {
  Story story;
  ScriptedMachine machine(story, {{started(0, 0)}, {ended(0, 1)}, {started(1, 1), ended(1, 2)}});
  ScriptedRecorder recorder(story, {});
  Scheduler scheduler = scheduler_of(2);
  std::size_t seen = 0;
  std::vector<Observer> observers;
  observers.emplace_back([&](const Turn& turn) { seen += turn.events.size(); });

  EXPECT_TRUE(drive(scheduler, machine, recorder, observers).has_value());
  EXPECT_THAT(story, ElementsAre("wrote 1", "start 0", "wrote 1", "wrote 1", "start 1", "wrote 2"));
  EXPECT_EQ(seen, 5U) << "an observer sees every event once";
}

TEST(Drive, StartsNothingWhileItCannotWriteAndOffersTheTurnAgain) {
  Story story;
  ScriptedMachine machine(
      story, {{started(0, 0)}, {ended(0, 1)}, {nothing(2)}, {started(1, 3), ended(1, 4)}});
  ScriptedRecorder recorder(story, {true, true, false, true});
  Scheduler scheduler = scheduler_of(2);
  std::vector<Observer> observers;

  const auto tell = [&](const std::optional<Error>& why) {
    story.push_back(why ? "told: " + why->message : "told: over");
  };
  EXPECT_TRUE(drive(scheduler, machine, recorder, observers, {.tell = tell}).has_value());
  EXPECT_THAT(story, ElementsAre("wrote 1", "start 0", "wrote 1", "could not write 1",
                                 "told: disk full", "wrote 2", "told: over", "start 1", "wrote 2"));
}

TEST(Drive, GivesUpWhenItCouldNotWriteForTooLong) {
  Story story;
  ScriptedMachine machine(story, {{started(0, 0)}, {nothing(1)}, {nothing(6)}});
  ScriptedRecorder recorder(story, {true, false, false, false});
  Scheduler scheduler = scheduler_of(2);
  std::vector<Observer> observers;

  const Result<void> result =
      drive(scheduler, machine, recorder, observers, {.patience = Duration{5000}, .tell = {}});
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().message, "the journal cannot be written: disk full");
  EXPECT_THAT(story, ElementsAre("wrote 1", "start 0", "could not write 1", "could not write 2",
                                 "could not write 3", "stop 0"))
      << "what runs is told to end";
  EXPECT_EQ(machine.waited_until, at(2)) << "it offers the turn again after a second";
}

TEST(Drive, GivesUpAtOnceWhenInterruptedWhileItCannotWrite) {
  Story story;
  ScriptedMachine machine(story, {{started(0, 0)}, {interrupt(1)}});
  ScriptedRecorder recorder(story, {true, false, false});
  Scheduler scheduler = scheduler_of(1);
  std::vector<Observer> observers;

  EXPECT_FALSE(drive(scheduler, machine, recorder, observers).has_value());
  EXPECT_THAT(
      story, ElementsAre("wrote 1", "start 0", "could not write 1", "could not write 2", "stop 0"));
}

TEST(Drive, TellsWhatRunsToEndEvenWhileItCannotWrite) {
  Story story;
  Plan plan{.groups = {{.name = "g"}},
            .shapes = {{.group = {0}, .request = {.memory = gb(1)}, .time_limit = Duration{5000}}},
            .tasks = {{}}};
  Scheduler scheduler(plan, Limits{}, {.memory = gb(10), .cpus = cpus(4)});
  ScriptedMachine machine(story, {{started(0, 0)}, {nothing(5)}, {ended(0, 6)}});
  ScriptedRecorder recorder(story, {true, true, false, true});
  std::vector<Observer> observers;

  EXPECT_TRUE(drive(scheduler, machine, recorder, observers).has_value());
  EXPECT_THAT(story, ElementsAre("wrote 1", "start 0", "wrote 1", "could not write 1", "stop 0",
                                 "wrote 2"));
}

}  // namespace
}  // namespace trainyard
