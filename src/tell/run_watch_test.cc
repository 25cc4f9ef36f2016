#include "tell/run_watch.h"

#include <memory>
#include <utility>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/plan.h"

namespace trainyard::tell {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr Duration kMinute{60'000};

/// Groups with so many tasks each, of which the first so many have ended before.
struct WatchedGroup {
  int tasks = 1;
  int ended_before = 0;
  model::Verdict before = model::Verdict::Finished;
};

model::BatchAdded batch_of(const std::vector<WatchedGroup>& groups) {
  auto plan = std::make_shared<model::Plan>();
  for (std::uint32_t i = 0; i < groups.size(); ++i) {
    plan->groups.push_back({.name = fmt::format("g{}", i)});
    plan->shapes.push_back({.group = {i}, .terms = {}});
    for (int task = 0; task < groups[i].tasks; ++task) {
      plan->tasks.push_back(
          {.shape = {i},
           .before = task < groups[i].ended_before ? groups[i].before : model::Verdict::None});
    }
  }
  return {.number = 1, .plan = std::move(plan)};
}

using Groups = std::vector<WatchedGroup>;

/// A watch, and turns made of few words, each a minute after the one before.
class Watched {
 public:
  explicit Watched(const std::vector<WatchedGroup>& groups)
      : watch_([](model::TaskIndex task) { return fmt::format("t{}", task.value); }) {
    EXPECT_THAT(see(batch_of(groups)), IsEmpty());
  }

  std::vector<Sight> see(model::What what, std::vector<model::Change> changes = {},
                         Duration later = kMinute) {
    now_ = now_ + later;
    model::Turn turn;
    turn.events.push_back({.at = now_, .what = std::move(what)});
    turn.decisions.push_back({.changes = std::move(changes), .commands = {}});
    return watch_.see(turn);
  }
  std::vector<Sight> wait(Duration time) { return see(model::TimePassed{}, {}, time); }

  void start(std::uint32_t task) {
    EXPECT_THAT(see(model::AttemptStarted{.key = {.task = {task}}, .pid = 1, .capped_by = {}}),
                IsEmpty());
  }
  std::vector<Sight> end(std::uint32_t task, model::Verdict verdict,
                         std::vector<model::Change> more = {}) {
    const bool failed = verdict == model::Verdict::Failed;
    std::vector<model::Change> changes{
        model::TaskChanged{.key = {.task = {task}},
                           .status = failed ? Status::Exception : Status::Exited,
                           .verdict = verdict,
                           .failure = failed ? model::Failure::Exit : model::Failure::None,
                           .exit_code = failed ? 3 : 0,
                           .message = failed ? "why" : ""}};
    changes.insert(changes.end(), more.begin(), more.end());
    return see(model::AttemptEnded{.key = {.task = {task}}, .end = model::ExitedWith{}},
               std::move(changes));
  }

  [[nodiscard]] Counts counts() const { return watch_.counts(); }

 private:
  RunWatch watch_;
  Instant now_;
};

model::Change group(std::uint32_t index, model::GroupPhase phase) {
  return model::GroupChanged{.group = {index}, .phase = phase, .message = {}};
}

TEST(RunWatch, TellsTheFirstFailureAndNoOther) {
  Watched run(Groups{{.tasks = 3}});
  for (std::uint32_t task = 0; task < 3; ++task) run.start(task);
  EXPECT_THAT(run.end(0, model::Verdict::Finished), IsEmpty());
  EXPECT_THAT(run.end(1, model::Verdict::Failed),
              ElementsAre(Sight(
                  FirstFailure{.task = "t1", .how = "EXIT 3", .end = "exit", .message = "why"})));
  EXPECT_THAT(run.end(2, model::Verdict::Failed), IsEmpty());
  EXPECT_EQ(run.counts(), (Counts{.tasks = 3, .finished = 1, .failed = 2}));
}

TEST(RunWatch, TellsOnceThatNothingHasRunForAnHourWhileTasksWait) {
  Watched run(Groups{{.tasks = 2}});
  EXPECT_THAT(run.wait(59 * kMinute), IsEmpty());
  const auto sights = run.wait(kMinute);
  EXPECT_THAT(sights,
              ElementsAre(Sight(NothingRuns{.since = kIdleLong, .cause = "", .reason = ""})));
  EXPECT_THAT(run.wait(120 * kMinute), IsEmpty());
  // Something has run, and so it may be told again.
  run.start(0);
  EXPECT_THAT(run.wait(300 * kMinute), IsEmpty());
  EXPECT_THAT(run.end(0, model::Verdict::Finished), IsEmpty());
  EXPECT_THAT(run.wait(59 * kMinute), IsEmpty());
  EXPECT_THAT(run.wait(kMinute),
              ElementsAre(Sight(NothingRuns{.since = kIdleLong, .cause = "", .reason = ""})));
}

TEST(RunWatch, IsSilentWhereNobodyWaits) {
  Watched run(Groups{{.tasks = 1}});
  run.start(0);
  run.end(0, model::Verdict::Finished);
  EXPECT_THAT(run.wait(600 * kMinute), IsEmpty());
}

TEST(RunWatch, SaysWhyTheyWait) {
  Watched run(Groups{{.tasks = 1}});
  const model::Reason reason{.cause = model::Cause::Parallel, .parallel_max = 2};
  run.see(model::TimePassed{}, {model::ReasonChanged{.shape = {0}, .reason = reason}});
  const auto sights = run.wait(kIdleLong);
  ASSERT_EQ(sights.size(), 1U);
  EXPECT_EQ(std::get<NothingRuns>(sights[0]).cause, "parallel");
  EXPECT_EQ(std::get<NothingRuns>(sights[0]).reason, model::reason_text(reason, {}));
  EXPECT_NE(std::get<NothingRuns>(sights[0]).reason, "");
}

TEST(RunWatch, TellsOfEachGroupThatEndsAndOfNoneThatHadEndedBefore) {
  Watched run(Groups{{.tasks = 1, .ended_before = 1}, {.tasks = 1}, {.tasks = 1}, {.tasks = 1}});
  EXPECT_THAT(run.see(model::TimePassed{}, {group(0, model::GroupPhase::Finished)}), IsEmpty());
  EXPECT_THAT(run.see(model::TimePassed{}, {group(1, model::GroupPhase::Running)}), IsEmpty());
  run.start(1);
  EXPECT_THAT(run.end(1, model::Verdict::Finished, {group(1, model::GroupPhase::Finished)}),
              ElementsAre(Sight(GroupEnded{{1}})));
  run.start(2);
  const auto failed =
      run.end(2, model::Verdict::Failed,
              {group(2, model::GroupPhase::Failed), group(3, model::GroupPhase::Skipped)});
  ASSERT_EQ(failed.size(), 2U);
  EXPECT_EQ(failed[1], Sight(GroupEnded{{2}}));
  EXPECT_THAT(run.see(model::TimePassed{}, {group(3, model::GroupPhase::Stopped)}),
              ElementsAre(Sight(GroupEnded{{3}})));
}

TEST(RunWatch, CountsATaskThatBeginsAnewAsOneThatWaits) {
  Watched run(Groups{{.tasks = 2, .ended_before = 1, .before = model::Verdict::Failed},
                     {.tasks = 2, .ended_before = 1, .before = model::Verdict::NotSelected}});
  EXPECT_EQ(run.counts(), (Counts{.tasks = 3, .failed = 1}));
  EXPECT_EQ(run.counts().waiting(), 2);
  run.see(model::RetryAsked{.task = {0}},
          {model::TaskChanged{.key = {.task = {0}, .attempt = 0}, .status = Status::Init}});
  EXPECT_EQ(run.counts(), (Counts{.tasks = 3}));
  run.start(0);
  EXPECT_EQ(run.counts(), (Counts{.tasks = 3, .running = 1}));
  // Its group, which had ended, ends again.
  EXPECT_THAT(run.end(0, model::Verdict::Finished, {group(0, model::GroupPhase::Finished)}),
              ElementsAre(Sight(GroupEnded{{0}})));
  EXPECT_EQ(run.counts(), (Counts{.tasks = 3, .finished = 1}));
}

}  // namespace
}  // namespace trainyard::tell
