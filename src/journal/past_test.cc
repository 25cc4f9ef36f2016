#include "journal/past.h"

#include <memory>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "journal/journal.h"
#include "journal/reader.h"
#include "journal/test_resume.h"
#include "journal/test_run.h"
#include "model/command.h"
#include "model/event.h"
#include "model/resources.h"
#include "model/status.h"
#include "model/turn.h"

namespace trainyard::journal {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::shared_ptr<const model::Plan> resumed_plan(const JournalDirectory& directory,
                                                const TestJob& job, JournalOptions options = {}) {
  return must(Journal::resume(directory.journal(), {job.batch()}, {}, options)).plans.at(0);
}

/// An attempt ran out of memory, and its task waits to be tried again with what it reached.
model::Turn ran_out(Instant when, model::AttemptKey key, const model::Reached& reached) {
  return turn_of(
      {.at = when, .what = model::AttemptEnded{.key = key, .end = model::KilledBy{.signal = 9}}},
      {.changes = {model::TaskChanged{.key = key,
                                      .status = Status::Interrupt,
                                      .failure = model::Failure::OutOfMemory,
                                      .message = "oom"},
                   reached}});
}

model::Turn took(Instant when, model::AttemptKey key, const model::Usage& usage) {
  return turn_of(
      {.at = when,
       .what = model::AttemptEnded{.key = key, .end = model::ExitedWith{0}, .usage = usage}},
      {.changes = {
           model::TaskChanged{.key = key, .status = Status::Finished},
           model::TaskChanged{
               .key = key, .status = Status::Exited, .verdict = model::Verdict::Finished}}});
}

model::Reached reached(std::uint32_t task, Bytes memory, Bytes gpu_memory = {}) {
  return {.task = {task},
          .memory = memory,
          .gpu_memory = gpu_memory,
          .largest = true,
          .tries = {.load = 1, .train = 2, .preempted = 3, .crowded = 4}};
}

TEST(Past, IsWhatATaskHadReachedThatWaitedOrRanWhenTheYardDied) {
  const JournalDirectory directory;
  const TestJob job{numbered(3)};
  {
    auto journal = must(Journal::create(directory.journal(), "sweep", job.batch(), {}));
    must(journal->commit(granted(at(1), {key(0), key(1), key(2)})));
    must(journal->commit(ran_out(at(2), key(1), reached(1, gb(2), gb(5)))));
    must(journal->commit(ran_out(at(3), key(2), reached(2, gb(1)))));
    must(journal->commit(ran_out(at(4), key(2), reached(2, gb(3)))));
    must(journal->commit(granted(at(5), {key(2, 2)})));
  }
  const std::vector<model::Reached> expected{reached(1, gb(2), gb(5)), reached(2, gb(3))};
  EXPECT_EQ(resumed_plan(directory, job)->reached, expected);
  EXPECT_EQ(resumed_plan(directory, job)->reached, expected) << "and once more";
}

TEST(Past, IsAlsoHowATaskFailedThatWaitedOrRanWhenTheYardDied) {
  const JournalDirectory directory;
  const TestJob job{numbered(4)};
  const std::string message = "retry 1 of 2: exited with code 3";
  const auto retried = [&message](Instant when, model::AttemptKey key) {
    return turn_of(
        {.at = when, .what = model::AttemptEnded{.key = key, .end = model::ExitedWith{3}}},
        {.changes = {model::TaskChanged{.key = key,
                                        .status = Status::Interrupt,
                                        .failure = model::Failure::Exit,
                                        .exit_code = 3,
                                        .message = message}}});
  };
  {
    auto journal = must(Journal::create(directory.journal(), "sweep", job.batch(), {}));
    must(journal->commit(granted(at(1), {key(0), key(1), key(2), key(3)})));
    for (const std::uint32_t task : {0U, 1U, 3U}) must(journal->commit(retried(at(2), key(task))));
    must(journal->commit(granted(at(3), {key(1, 2), key(3, 2)})));
    must(journal->commit(took(at(4), key(3, 2), {})));
  }
  const std::vector<model::FailedBefore> expected{{.task = {0}, .message = message},
                                                  {.task = {1}, .message = message}};
  EXPECT_EQ(resumed_plan(directory, job)->failed, expected);
  EXPECT_EQ(resumed_plan(directory, job)->failed, expected) << "and once more";
}

TEST(Past, IsHowATaskFailedByItselfBeforeItWasKilled) {
  const JournalDirectory directory;
  const TestJob job{numbered(1)};
  const auto ended = [](Instant when, model::AttemptKey key, const model::End& end,
                        model::TaskChanged change) {
    change.key = key;
    return turn_of({.at = when, .what = model::AttemptEnded{.key = key, .end = end}},
                   {.changes = {std::move(change)}});
  };
  {
    auto journal = must(Journal::create(directory.journal(), "sweep", job.batch(), {}));
    must(journal->commit(granted(at(1), {key(0)})));
    must(journal->commit(ended(at(2), key(0), model::ExitedWith{3},
                               {.status = Status::Interrupt,
                                .failure = model::Failure::Exit,
                                .exit_code = 3,
                                .message = "exited with code 3"})));
    must(journal->commit(granted(at(3), {key(0, 2)})));
    must(journal->commit(ended(at(4), key(0, 2), model::KilledBy{.signal = 15},
                               {.status = Status::Exception,
                                .verdict = model::Verdict::Failed,
                                .failure = model::Failure::Killed,
                                .message = "killed on request"})));
  }
  const std::vector<model::FailedBefore> expected{{.task = {0}, .message = "exited with code 3"}};
  EXPECT_EQ(resumed_plan(directory, job)->failed, expected);
}

TEST(Past, IsAlsoWhatSharingWasMeasuredToCost) {
  const JournalDirectory directory;
  TestJob job{{.name = "one", .ids = {"a", "b"}}, {.name = "other", .ids = {"c"}}};
  const model::SharingMeasured measured{
      .shape = {1}, .to_a_gpu = 2, .factor = 1.5, .tasks = 9, .to_a_gpu_max = 3};
  {
    auto journal = must(Journal::create(directory.journal(), "sweep", job.batch(), {}));
    model::Turn turn = granted(at(1), {key(0)});
    turn.decisions.front().changes.emplace_back(measured);
    must(journal->commit(turn));
  }
  // An earlier run knew of both: what this one has measured counts first.
  const model::SharingMeasured of_one{.shape = {0}, .to_a_gpu_max = 4};
  job.plan.sharing = {of_one, {.shape = {1}, .to_a_gpu = 7, .factor = 3, .tasks = 3}};
  EXPECT_THAT(resumed_plan(directory, job)->sharing, ElementsAre(of_one, measured));
  EXPECT_THAT(resumed_plan(directory, job)->sharing, ElementsAre(of_one, measured))
      << "and once more";
  JournalReader reader = must(JournalReader::open(directory.journal()));
  const std::vector<SharingRow> rows = must(reader.sharing());
  ASSERT_EQ(rows.size(), 1U) << "what another run has measured is not this one's";
  EXPECT_EQ(rows[0].group_name, "other");
}

TEST(Past, GivesAllItsTriesToATaskThatHadFailed) {
  const JournalDirectory directory;
  const TestJob job{numbered(1)};
  {
    auto journal = must(Journal::create(directory.journal(), "sweep", job.batch(), {}));
    must(journal->commit(granted(at(1), {key(0)})));
    must(journal->commit(ran_out(at(2), key(0), reached(0, gb(2), gb(5)))));
    must(journal->commit(granted(at(3), {key(0, 2)}) + failed(at(4), key(0, 2), 1)));
  }
  const model::Reached anew{.task = {0}, .memory = gb(2), .gpu_memory = gb(5), .tries = {}};
  EXPECT_THAT(resumed_plan(directory, job)->reached, ElementsAre(anew));
  EXPECT_THAT(resumed_plan(directory, job)->reached, ElementsAre(anew)) << "killed at once";
}

TEST(Past, GivesWayToANumberThatWasChangedInTheJobFile) {
  const JournalDirectory directory;
  TestJob job{{.name = "host", .ids = {"a"}}, {.name = "card", .ids = {"b"}}};
  job.plan.shapes[1].terms.request.gpus = 1;
  job.plan.shapes[1].terms.request.gpu_memory = gb(4);
  {
    auto journal = must(Journal::create(directory.journal(), "sweep", job.batch(), {}));
    must(journal->commit(granted(at(1), {key(0), key(1)})));
    must(journal->commit(ran_out(at(2), key(0), reached(0, gb(2)))));
    must(journal->commit(ran_out(at(3), key(1), reached(1, gb(1), gb(6)))));
  }
  TestJob edited = job;
  edited.plan.shapes[1].terms.request.gpu_memory = gb(3);
  EXPECT_THAT(resumed_plan(directory, edited)->reached, ElementsAre(reached(0, gb(2))));
  edited.plan.shapes[0].terms.request.memory = gb(1);
  EXPECT_THAT(resumed_plan(directory, edited)->reached, IsEmpty());
  EXPECT_THAT(resumed_plan(directory, edited)->reached, IsEmpty()) << "it does not come back";
}

TEST(Past, StaysWhereTheNumberIsOneThatIsLearned) {
  const JournalDirectory directory;
  TestJob job{numbered(1)};
  job.plan.shapes[0].terms.learns_memory = true;
  {
    auto journal = must(Journal::create(directory.journal(), "sweep", job.batch(), {}));
    must(journal->commit(granted(at(1), {key(0)})));
    must(journal->commit(ran_out(at(2), key(0), reached(0, gb(2)))));
  }
  job.plan.shapes[0].terms.request.memory = mb(700);
  EXPECT_THAT(resumed_plan(directory, job)->reached, ElementsAre(reached(0, gb(2))));
}

TEST(Past, IsForgottenOfATaskThatWasEdited) {
  const JournalDirectory directory;
  TestJob job{numbered(2)};
  {
    auto journal = must(Journal::create(directory.journal(), "sweep", job.batch(), {}));
    must(journal->commit(granted(at(1), {key(0), key(1)})));
    must(journal->commit(ran_out(at(2), key(0), reached(0, gb(2)))));
    must(journal->commit(took(at(3), key(1), {.memory_peak = gb(1)})));
  }
  const TestJob before = job;
  job.fingerprints = {5, 5};
  const auto plan = resumed_plan(directory, job);
  EXPECT_THAT(plan->reached, IsEmpty());
  EXPECT_THAT(plan->taken, IsEmpty()) << "its result is kept, what it took is of another command";
  EXPECT_THAT(resumed_plan(directory, before)->reached, IsEmpty());
}

TEST(Past, IsWhatFinishedTasksTookInTheOrderOfTheirEnds) {
  const JournalDirectory directory;
  TestJob job{{.name = "a", .ids = {"0", "1", "2", "3", "4"}}};
  job.plan.shapes[0].terms.request.gpus = 1;
  job.plan.shapes[0].terms.request.gpu_memory = gb(4);
  {
    auto journal = must(Journal::create(directory.journal(), "sweep", job.batch(), {}));
    must(journal->commit(granted(at(1), {key(0), key(1), key(2), key(3)})));
    must(journal->commit(took(at(2), key(2), {.memory_peak = gb(2), .gpu_memory_peak = gb(6)})));
    must(journal->commit(took(at(3), key(0), {.memory_peak = gb(1), .gpu_memory_peak = gb(3)})));
    must(journal->commit(
        took(at(4), key(1), {.memory_peak = gb(1), .gpu_memory_peak = gb(3), .gpu_capped = true})));
    must(journal->commit(failed(at(5), key(3), 1)));
  }
  const auto plan = resumed_plan(directory, job);
  const auto by = [](std::uint32_t task, Bytes memory, Bytes gpu_memory) {
    return model::TakenBefore{
        .task = {task}, .memory = memory, .gpu_memory = gpu_memory, .gpu_memory_written = gb(4)};
  };
  EXPECT_THAT(plan->taken, ElementsAre(by(2, gb(2), gb(6)), by(0, gb(1), gb(3)), by(1, gb(1), {})))
      << "what a capped one had is not what it needs";
}

TEST(Past, IsOfTheLastTasksOfAShapeOnly) {
  const JournalDirectory directory;
  const int count = static_cast<int>(Past::kTakenMax) + 2;
  const TestJob job{numbered(count)};
  {
    auto journal = must(Journal::create(directory.journal(), "sweep", job.batch(), {}));
    for (int i = 0; i < count; ++i) {
      const auto task = static_cast<std::uint32_t>(i);
      must(journal->commit(granted(at(i), {key(task)}) +
                           took(at(i), key(task), {.memory_peak = mb(100 + i)})));
    }
  }
  const auto plan = resumed_plan(directory, job);
  ASSERT_EQ(plan->taken.size(), Past::kTakenMax);
  EXPECT_EQ(plan->taken.front().memory, mb(102));
  EXPECT_EQ(plan->taken.back().memory, mb(100 + count - 1));
}

TEST(Past, IsLookedAtWithoutAChangeBeforeARunIsResumed) {
  const JournalDirectory directory;
  const TestJob job{numbered(1)};
  {
    auto journal = must(Journal::create(directory.journal(), "sweep", job.batch(), {}));
    must(journal->commit(granted(at(1), {key(0)})));
    must(journal->commit(ran_out(at(2), key(0), reached(0, gb(2)))));
  }
  TestJob edited = job;
  edited.fingerprints = {9};
  EXPECT_THAT(must(Journal::preview(directory.journal(), {edited.batch()})).plans.at(0)->reached,
              IsEmpty());
  EXPECT_THAT(must(Journal::preview(directory.journal(), {job.batch()})).plans.at(0)->reached,
              ElementsAre(reached(0, gb(2))));
}

Journal::Resumed resumed_with(const JournalDirectory& directory, const TestJob& job,
                              const std::vector<FoundAttempt>& found) {
  JournalOptions options;
  options.found = found;
  return must(Journal::resume(directory.journal(), {job.batch()}, {}, options));
}

/// Three tasks that run when their yard dies.
void run_three(const JournalDirectory& directory, const TestJob& job) {
  auto journal = must(Journal::create(directory.journal(), "job", job.batch(), {}));
  must(journal->commit(granted(at(10), {key(0), key(1), key(2)}) + started(at(20), key(0), 100) +
                       started(at(30), key(1), 101) + started(at(40), key(2), 102)));
}

TEST(GoingOn, IsNoOtherTry) {
  const JournalDirectory directory;
  const TestJob job{{.ids = {"a", "b", "c"}}};
  run_three(directory, job);
  Journal::Resumed resumed = resumed_with(directory, job, {{.row = 1, .key = key(1)}});
  EXPECT_THAT(resumed.goes_on, ElementsAre(key(1)));
  EXPECT_THAT(attempts_of(*resumed.plans.at(0)), ElementsAre("2", "1", "2"));
  {
    auto reader = must(JournalReader::open(directory.journal()));
    EXPECT_THAT(words(all_tasks(reader)), ElementsAre("a WAITING", "b WAITING", "c WAITING"));
    EXPECT_EQ(must(reader.attempts({0})).at(0).failure, model::Failure::Lost);
    const std::vector<AttemptRow> same = must(reader.attempts({1}));
    ASSERT_EQ(same.size(), 1U);
    EXPECT_EQ(same[0].failure, model::Failure::None);
    EXPECT_FALSE(same[0].ended);
  }
  model::Turn found = granted(at(50), {key(1)});
  must(resumed.journal->commit(found + started(at(50), key(1), 101) +
                               finished(at(90), key(1), "{}")));
  auto reader = must(JournalReader::open(directory.journal()));
  const std::vector<TaskRow> rows = all_tasks(reader);
  EXPECT_THAT(words(rows), ElementsAre("a WAITING", "b FINISHED", "c WAITING"));
  EXPECT_EQ(rows[1].attempt, 1U);
  EXPECT_EQ(must(reader.attempts({1})).size(), 1U);
}

TEST(GoingOn, LetsTheTimeOfTheRunGoOn) {
  const TestJob job{{.ids = {"a", "b", "c"}}};
  const auto resumed_at = [&job](const std::vector<FoundAttempt>& found, std::int64_t unix_ms) {
    const JournalDirectory directory;
    run_three(directory, job);
    JournalOptions options;
    options.found = found;
    return must(Journal::resume(directory.journal(), {job.batch()}, {.started_unix_ms = unix_ms},
                                options))
        .at;
  };
  EXPECT_EQ(resumed_at({{.row = 1, .key = key(1)}}, 5'000), at(5'000));
  EXPECT_EQ(resumed_at({{.row = 1, .key = key(1)}}, 7), at(40)) << "it never goes back";
  EXPECT_EQ(resumed_at({{.row = 1, .key = key(1, 9)}}, 5'000), at(40)) << "none has run on";
  EXPECT_EQ(resumed_at({}, 5'000), at(40));
}

TEST(GoingOn, IsAsGoodAfterTheNextYardHasDiedBeforeItWasTold) {
  const JournalDirectory directory;
  const TestJob job{{.ids = {"a", "b", "c"}}};
  run_three(directory, job);
  EXPECT_THAT(resumed_with(directory, job, {{.row = 2, .key = key(2)}}).goes_on,
              ElementsAre(key(2)));
  const Journal::Resumed again = resumed_with(directory, job, {{.row = 2, .key = key(2)}});
  EXPECT_THAT(again.goes_on, ElementsAre(key(2)));
  EXPECT_THAT(attempts_of(*again.plans.at(0)), ElementsAre("2", "2", "1"));
}

TEST(GoingOn, IsLostWhenNobodyHasItTheNextTime) {
  const JournalDirectory directory;
  const TestJob job{{.ids = {"a", "b", "c"}}};
  run_three(directory, job);
  EXPECT_THAT(resumed_with(directory, job, {{.row = 0, .key = key(0)}}).goes_on,
              ElementsAre(key(0)));
  const Journal::Resumed again = resumed_with(directory, job, {});
  EXPECT_THAT(again.goes_on, IsEmpty());
  EXPECT_THAT(attempts_of(*again.plans.at(0)), ElementsAre("2", "2", "2"));
}

TEST(GoingOn, IsOfNoAttemptThatHasEndedOrIsAnOlderOne) {
  const JournalDirectory directory;
  const TestJob job{{.ids = {"a", "b", "c"}}};
  {
    auto journal = must(Journal::create(directory.journal(), "job", job.batch(), {}));
    must(journal->commit(granted(at(10), {key(0), key(1), key(2)}) + started(at(20), key(0), 100) +
                         finished(at(30), key(0), "{}")));
  }
  const Journal::Resumed resumed = resumed_with(
      directory, job,
      {{.row = 0, .key = key(0)}, {.row = 1, .key = key(1, 2)}, {.row = 9, .key = key(2)}});
  EXPECT_THAT(resumed.goes_on, IsEmpty());
  EXPECT_THAT(attempts_of(*resumed.plans.at(0)), ElementsAre("2+", "2", "2"));
}

TEST(GoingOn, IsNotOfATaskThatWasEditedOrStandsElsewhereOrWhoseGroupWasEdited) {
  const TestJob job{{.ids = {"a", "b", "c"}}};
  const auto found_in = [&job](const TestJob& edited) {
    const JournalDirectory directory;
    run_three(directory, job);
    return resumed_with(directory, edited, {{.row = 1, .key = key(1)}}).goes_on;
  };
  EXPECT_THAT(found_in({{.ids = {"a", "b", "c", "d"}}}), ElementsAre(key(1)));
  EXPECT_THAT(found_in({{.ids = {"a", "b", "c"}, .fingerprint = 2}}), IsEmpty());
  EXPECT_THAT(found_in({{.ids = {"a", "z", "b", "c"}}}), IsEmpty());
  EXPECT_THAT(found_in({{.ids = {"a", "b", "c"}, .parallel_max = 1}}), IsEmpty());
}

}  // namespace

}  // namespace trainyard::journal
