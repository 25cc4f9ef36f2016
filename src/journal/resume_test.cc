// The state that a resumed run takes over, also from a job file that was edited.

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/bytes.h"
#include "base/time.h"
#include "journal/journal.h"
#include "journal/options.h"
#include "journal/reader.h"
#include "journal/sqlite.h"
#include "journal/test_resume.h"
#include "journal/test_run.h"
#include "model/command.h"
#include "model/event.h"
#include "model/ids.h"
#include "model/plan.h"
#include "model/status.h"
#include "model/turn.h"

namespace trainyard::journal {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

model::Turn stopped(Instant when, const std::vector<model::AttemptKey>& keys) {
  model::Decision decision;
  for (const model::AttemptKey& key : keys) {
    decision.changes.emplace_back(model::TaskChanged{
        .key = key, .status = Status::Exception, .verdict = model::Verdict::Stopped});
  }
  return turn_of({.at = when, .what = model::InterruptAsked{}}, decision);
}

TEST(Resume, KeepsFinishedTasksAndRunsTheOthersAgain) {
  const JournalDirectory directory;
  const TestJob job{{.name = "a",
                     .ids = {"finished", "failed", "skipped", "stopped", "waiting", "running",
                             "retrying", "stopped-running"}}};
  {
    auto journal = must(Journal::create(directory.journal(), "sweep", job.batch(), {}));
    must(journal->commit(granted(at(10), {key(0), key(1), key(5), key(6), key(7)})));
    must(journal->commit(finished(at(20), key(0), R"({"acc":1})") + failed(at(30), key(1), 2)));
    must(journal->commit(turn_of(
        {.at = at(40),
         .what = model::AttemptEnded{.key = key(6), .end = model::KilledBy{.signal = 9}}},
        {.changes = {model::TaskChanged{.key = key(2, 0), .verdict = model::Verdict::Skipped},
                     model::TaskChanged{.key = key(6),
                                        .status = Status::Interrupt,
                                        .failure = model::Failure::OutOfMemory,
                                        .message = "oom"}}})));
    must(journal->commit(stopped(at(50), {key(3, 0), key(7)})));
  }  // It is gone without close(): it died.
  const Journal::Resumed resumed = resume(directory, job);
  EXPECT_THAT(attempts_of(*resumed.plans.at(0)),
              ElementsAre("2+", "2", "1", "1", "1", "2", "2", "2"));
  EXPECT_EQ(resumed.finished, 1);
  EXPECT_EQ(resumed.at, at(50));
  EXPECT_THAT(resumed.changes, IsEmpty());

  JournalReader reader = must(JournalReader::open(directory.journal()));
  EXPECT_THAT(words(all_tasks(reader)),
              ElementsAre("finished FINISHED", "failed WAITING", "skipped WAITING",
                          "stopped WAITING", "waiting WAITING", "running WAITING",
                          "retrying WAITING", "stopped-running WAITING"));
  EXPECT_EQ(all_tasks(reader)[0].result, R"({"acc":1})");
  EXPECT_EQ(all_tasks(reader)[1].attempt, 1U);
  const GroupRow group = must(reader.groups()).at(0);
  EXPECT_EQ(group.tasks, 8);
  EXPECT_EQ(group.finished, 1);
  EXPECT_EQ(group.waiting, 7);

  const AttemptRow lost = must(reader.attempts({5})).at(0);
  EXPECT_EQ(lost.failure, model::Failure::Lost);
  EXPECT_EQ(lost.ended, at(50));
  EXPECT_EQ(lost.message, "trainyard died while the task ran");
  const AttemptRow retried = must(reader.attempts({6})).at(0);
  EXPECT_EQ(retried.failure, model::Failure::OutOfMemory);
  EXPECT_EQ(retried.ended, at(40));
  EXPECT_EQ(retried.message, "oom");
  EXPECT_EQ(must(reader.attempts({1})).at(0).exit_code, 2);
  EXPECT_THAT(must(reader.attempts({4})), IsEmpty());

  const std::vector<ExecutionRow> executions = must(reader.executions());
  ASSERT_EQ(executions.size(), 2U);
  EXPECT_EQ(executions[0].ended, at(50));
  EXPECT_EQ(executions[0].how, "died");
  EXPECT_EQ(executions[1].number, 2);
  EXPECT_EQ(executions[1].host, "again");
  EXPECT_EQ(executions[1].started, at(50));
  EXPECT_EQ(executions[1].ended, std::nullopt);
}

TEST(Resume, LeavesThoseAsTheyEndedOfWhomNobodyAsks) {
  const JournalDirectory directory;
  const TestJob job{{.name = "a", .ids = {"finished", "failed", "skipped", "stopped", "other"}}};
  {
    auto journal = must(Journal::create(directory.journal(), "sweep", job.batch(), {}));
    must(journal->commit(granted(at(10), {key(0), key(1), key(4)})));
    must(journal->commit(finished(at(20), key(0), R"({"acc":1})") + failed(at(30), key(1), 2) +
                         failed(at(30), key(4), 5)));
    must(journal->commit(turn_of(
        {.at = at(40), .what = model::TimePassed{}},
        {.changes = {model::TaskChanged{.key = key(2, 0), .verdict = model::Verdict::Skipped}}})));
    must(journal->commit(stopped(at(50), {key(3, 0)})));
    must(journal->close(at(60), "interrupted"));
  }
  const Journal::Resumed resumed = must(Journal::resume(
      directory.journal(), {job.batch()}, {.host = "again"}, {.unfinished = Unfinished::Stay}));
  std::vector<model::Verdict> before;
  for (const model::PlannedTask& task : resumed.plans.at(0)->tasks) before.push_back(task.before);
  EXPECT_THAT(before,
              ElementsAre(model::Verdict::Finished, model::Verdict::Failed, model::Verdict::Skipped,
                          model::Verdict::Stopped, model::Verdict::Failed));
  EXPECT_EQ(resumed.plans.at(0)->tasks[1].first_attempt, 2);

  // One of them begins anew, and fails again.
  must(resumed.journal->commit(
      turn_of({.at = at(70), .what = model::RetryAsked{.task = {1}, .request = 1}},
              {.changes = {model::TaskChanged{.key = key(1, 0)}}})));
  JournalReader reader = must(JournalReader::open(directory.journal()));
  EXPECT_THAT(words(all_tasks(reader)),
              ElementsAre("finished FINISHED", "failed WAITING", "skipped SKIPPED",
                          "stopped STOPPED", "other EXIT 5"));
  must(resumed.journal->commit(granted(at(80), {key(1, 2)}) + failed(at(90), key(1, 2), 7)));
  must(reader.refresh());
  EXPECT_EQ(words(all_tasks(reader))[1], "failed EXIT 7");
  const GroupRow group = must(reader.groups()).at(0);
  EXPECT_EQ(std::tuple(group.tasks, group.finished, group.failed, group.skipped, group.stopped,
                       group.waiting),
            std::tuple(5, 1, 2, 1, 1, 0));
  const std::vector<AttemptRow> attempts = must(reader.attempts({1}));
  ASSERT_EQ(attempts.size(), 2U);
  EXPECT_EQ(attempts[0].exit_code, 2);
  EXPECT_EQ(attempts[1].exit_code, 7);
}

TEST(Resume, LeavesTheBatchesAloneThatItIsNotGiven) {
  const JournalDirectory directory;
  const TestJob first{{.name = "data", .ids = {"a", "b", "c"}}};
  const TestJob second{{.name = "train", .ids = {"d", "e"}}};
  const TestJob third{{.name = "eval", .ids = {"f"}, .memory = mb(7)}};
  {
    auto journal = must(Journal::create(directory.journal(), "sweep", first.batch(), {}));
    must(journal->commit(granted(at(10), {key(0), key(1), key(2)}) + started(at(11), key(2), 7)));
    must(journal->commit(finished(at(20), key(0), "{}") + failed(at(30), key(1), 2)));
  }
  const JournalOptions others_stay{.others = OtherBatches::Stay};
  {
    auto resumed = must(Journal::resume(directory.journal(), {second.batch(2)}, {}, others_stay));
    EXPECT_THAT(resumed.changes, IsEmpty());
    must(resumed.journal->commit(granted(at(40), {key(0), key(1)}) + started(at(41), key(1), 8) +
                                 finished(at(50), key(0), "{}")));
  }
  {
    JournalReader reader = must(JournalReader::open(directory.journal()));
    EXPECT_THAT(words(all_tasks(reader)),
                ElementsAre("a FINISHED", "b EXIT 2", "c WAITING", "d FINISHED", "e RUNNING"));
  }
  // The first again, and one that is new.
  auto resumed =
      must(Journal::resume(directory.journal(), {first.batch(), third.batch(3)}, {}, others_stay));
  EXPECT_EQ(resumed.finished, 1);
  EXPECT_THAT(attempts_of(*resumed.plans.at(0)), ElementsAre("2+", "2", "2"));
  must(resumed.journal->commit(granted(at(60), {key(1, 2), key(3)}) +
                               finished(at(70), key(1, 2), "{}") + finished(at(71), key(3), "{}")));
  JournalReader reader = must(JournalReader::open(directory.journal()));
  EXPECT_THAT(words(all_tasks(reader)), ElementsAre("a FINISHED", "b FINISHED", "c WAITING",
                                                    "d FINISHED", "e WAITING", "f FINISHED"));
  const std::vector<GroupRow> groups = must(reader.groups());
  ASSERT_EQ(groups.size(), 3U);
  EXPECT_EQ(groups[0].finished, 2);
  EXPECT_EQ(groups[0].waiting, 1);
  EXPECT_EQ(groups[1].finished, 1);
  EXPECT_EQ(groups[1].waiting, 1) << "it was lost, and does not run";
  EXPECT_EQ(groups[1].running, 0);
  EXPECT_EQ(groups[2].finished, 1);
}

TEST(Resume, CanBeLookedAtBeforeItIsDone) {
  const JournalDirectory directory;
  const TestJob job{{.name = "a", .ids = {"finished", "failed", "gone"}}};
  {
    auto journal = must(Journal::create(directory.journal(), "sweep", job.batch(), {}));
    must(journal->commit(granted(at(10), {key(0), key(1)})));
    must(journal->commit(finished(at(20), key(0), "{}") + failed(at(30), key(1), 2)));
  }
  const TestJob edited{{.name = "a", .ids = {"finished", "failed", "new"}}};
  const Journal::Preview preview = must(Journal::preview(directory.journal(), {edited.batch()}));
  EXPECT_THAT(attempts_of(*preview.plans.at(0)), ElementsAre("2+", "2", "1"));
  EXPECT_EQ(preview.finished, 1);
  {
    JournalReader reader = must(JournalReader::open(directory.journal()));
    EXPECT_THAT(words(all_tasks(reader)),
                ElementsAre("finished FINISHED", "failed EXIT 2", "gone WAITING"));
    EXPECT_EQ(must(reader.executions()).size(), 1U);
    EXPECT_EQ(must(reader.executions()).at(0).ended, std::nullopt);
  }
  const Journal::Resumed resumed = resume(directory, edited);
  EXPECT_EQ(attempts_of(*resumed.plans.at(0)), attempts_of(*preview.plans.at(0)));
  EXPECT_EQ(resumed.changes, preview.changes);
}

TEST(Resume, KnowsHowTasksFailedUnlessTheyStartWithoutTheirCheckpoints) {
  const JournalDirectory directory;
  const TestJob job{{.name = "a", .ids = {"finished", "failed"}}};
  {
    auto journal = must(Journal::create(directory.journal(), "sweep", job.batch(), {}));
    must(journal->commit(granted(at(10), {key(0), key(1)})));
    must(journal->commit(finished(at(20), key(0), R"({"acc":1})") + failed(at(30), key(1), 2)));
    must(journal->close(at(40), "ended"));
  }
  const std::vector<model::FailedBefore> known{{.task = {1}, .message = "exit code 2"}};
  for (const bool fresh : {true, false}) {
    const Journal::Preview ahead = must(
        Journal::preview(directory.journal(), {job.batch()}, {.retried = {1}, .fresh = fresh}, {}));
    EXPECT_EQ(ahead.plans.at(0)->failed, fresh ? std::vector<model::FailedBefore>() : known);
  }
}

TEST(Resume, CountsAnAttemptThatWasOnlyPromised) {
  const JournalDirectory directory;
  const TestJob job{numbered(1)};
  for (std::uint32_t attempt = 1; attempt <= 3; ++attempt) {
    std::unique_ptr<Journal> journal;
    if (attempt == 1) {
      journal = must(Journal::create(directory.journal(), "sweep", job.batch(), {}));
    } else {
      Journal::Resumed resumed = resume(directory, job);
      EXPECT_EQ(resumed.plans.at(0)->tasks[0].first_attempt, attempt);
      journal = std::move(resumed.journal);
    }
    must(journal->commit(granted(at(attempt), {key(0, attempt)})));
  }
  JournalReader reader = must(JournalReader::open(directory.journal()));
  EXPECT_THAT(must(reader.attempts({0})).size(), 3U);
  EXPECT_EQ(all_tasks(reader)[0].attempt, 3U);
}

TEST(Resume, KeepsTheNumberOfATaskThatWasSkippedOrStoppedSince) {
  const JournalDirectory directory;
  const TestJob job{numbered(1)};
  must(must(Journal::create(directory.journal(), "sweep", job.batch(), {}))
           ->commit(granted(at(1), {key(0)}) + failed(at(2), key(0), 1)));
  must(resume(directory, job).journal->commit(stopped(at(3), {key(0, 1)})));
  JournalReader reader = must(JournalReader::open(directory.journal()));
  EXPECT_THAT(words(all_tasks(reader)), ElementsAre("0 STOPPED"));
  EXPECT_EQ(all_tasks(reader)[0].attempt, 1U);
  EXPECT_THAT(must(reader.attempts({0})).size(), 1U);
  EXPECT_THAT(attempts_of(*resume(directory, job).plans.at(0)), ElementsAre("2"));
}

TEST(Resume, GoesOnWithTheTimeOfTheRun) {
  const JournalDirectory directory;
  const TestJob job{numbered(1)};
  {
    auto journal = must(Journal::create(directory.journal(), "sweep", job.batch(), {}));
    must(journal->commit(turn_of({.at = at(9'000), .what = model::Sampled{}})));
  }
  EXPECT_EQ(resume(directory, job).at, at(9'000));
  must(resume(directory, job).journal->close(at(12'000), "interrupted"));
  EXPECT_EQ(resume(directory, job).at, at(12'000));
  JournalReader reader = must(JournalReader::open(directory.journal()));
  std::vector<std::string> how;
  for (const ExecutionRow& row : must(reader.executions())) how.push_back(row.how);
  EXPECT_THAT(how, ElementsAre("died", "died", "interrupted", ""));
}

TEST(Resume, KnowsTasksAgainWhereverTheyStand) {
  const JournalDirectory directory;
  const TestJob before{{.name = "a", .ids = {"1", "2", "3"}}, {.name = "b", .ids = {"1"}}};
  must(must(Journal::create(directory.journal(), "sweep", before.batch(), {}))
           ->commit(granted(at(1), {key(0), key(2), key(3)}) + finished(at(2), key(0), "{}") +
                    failed(at(3), key(2), 1) + finished(at(4), key(3), "[b]")));
  const TestJob after{{.name = "b", .ids = {"0", "1"}}, {.name = "a", .ids = {"3", "4", "1"}}};
  Journal::Resumed resumed = resume(directory, after);
  EXPECT_THAT(attempts_of(*resumed.plans.at(0)), ElementsAre("1", "2+", "2", "1", "2+"));
  EXPECT_THAT(
      resumed.changes,
      ElementsAre("group 'b': needs changed from [\"a\"] to []",
                  "group 'a': needs changed from [] to [\"b\"]",
                  "task 'a/2' is no longer in the job file", "task 'b/0' is new",
                  "task 'a/4' is new",
                  "group 'a': 1 task had finished before a task that it needs was run again; "
                  "kept as it is (--rerun-changed runs such again)"));
  must(resumed.journal->commit(granted(at(5), {key(0), key(2, 2)}) + failed(at(6), key(0), 7) +
                               finished(at(7), key(2, 2), "")));
  JournalReader reader = must(JournalReader::open(directory.journal()));
  EXPECT_THAT(words(all_tasks(reader)),
              ElementsAre("0 EXIT 7", "1 FINISHED", "3 FINISHED", "4 WAITING", "1 FINISHED"));
  EXPECT_EQ(all_tasks(reader)[1].result, "[b]");
  EXPECT_EQ(all_tasks(reader)[2].attempt, 2U);
  EXPECT_EQ(must(reader.attempts({2})).size(), 2U);
  const std::vector<GroupRow> groups = must(reader.groups());
  ASSERT_EQ(groups.size(), 2U);
  EXPECT_EQ(groups[0].name, "b");
  EXPECT_EQ(groups[0].failed, 1);
  EXPECT_EQ(groups[0].finished, 1);
  EXPECT_EQ(groups[1].finished, 2);
  EXPECT_EQ(groups[1].waiting, 1);
  // The same row through both executions, so that events can be followed.
  Database database = must(Database::open(directory.journal(), Database::Access::Read));
  EXPECT_EQ(must(database.number("SELECT count(DISTINCT task) FROM events WHERE task = (SELECT "
                                 "number FROM tasks WHERE id = '3') AND kind = 'ended'")),
            1);
}

TestJob train_and_report() {
  return {{.name = "train", .ids = {"0", "1"}}, {.name = "report", .ids = {"all"}}};
}

/// Task 1 of 'train' fails; the task of 'report' finishes all the same.
std::unique_ptr<Journal> run_past_a_failure(const JournalDirectory& directory, const TestJob& job) {
  auto journal = must(Journal::create(directory.journal(), "sweep", job.batch(), {}));
  must(journal->commit(granted(at(1), {key(0), key(1)}) + finished(at(2), key(0), "{}") +
                       failed(at(3), key(1), 1)));
  must(journal->commit(granted(at(4), {key(2)}) + finished(at(5), key(2), "{}")));
  return journal;
}

TEST(Resume, NamesWhatHadFinishedBeforeATaskThatARetryRunsAgain) {
  const JournalDirectory directory;
  const TestJob job = train_and_report();
  must(run_past_a_failure(directory, job)->close(at(6), "ended"));
  const auto changes_with = [&](std::set<std::uint32_t> retried) {
    return must(Journal::resume(directory.journal(), {job.batch()}, {.host = "again"},
                                {.unfinished = Unfinished::Stay, .retried = std::move(retried)}))
        .changes;
  };
  EXPECT_THAT(changes_with({}), IsEmpty());
  EXPECT_THAT(
      changes_with({1}),
      ElementsAre("group 'report': 1 task had finished before a task that it needs was run again; "
                  "kept as it is (--resume --rerun-changed runs such again)"));
}

TEST(Resume, CountsAsStoppedWhatARetryRunsAgainBehindAnUnfinishedTask) {
  const JournalDirectory directory;
  const TestJob job = train_and_report();
  must(run_past_a_failure(directory, job)->close(at(6), "ended"));
  Journal::Resumed resumed =
      must(Journal::resume(directory.journal(), {job.batch()}, {.host = "again"},
                           {.edited = Edited::RunAgain,
                            .again = std::set<std::uint32_t>{2},
                            .unfinished = Unfinished::Stay,
                            .retried = {1},
                            .by_request = true}));
  EXPECT_THAT(resumed.changes,
              ElementsAre("group 'report': 1 task had finished before a task that it needs was "
                          "run again; run again"));
  // Its group would start it at once otherwise, as all tasks of 'train' have ended.
  EXPECT_EQ(resumed.plans.at(0)->tasks.at(2).before, model::Verdict::Stopped);
  JournalReader reader = must(JournalReader::open(directory.journal()));
  EXPECT_THAT(words(all_tasks(reader)), ElementsAre("0 FINISHED", "1 EXIT 1", "all STOPPED"));
  must(resumed.journal->commit(turn_of({.at = at(7), .what = model::RetryAsked{.task = {2}}},
                                       {.changes = {model::TaskChanged{.key = key(2, 0)}}})));
  must(reader.refresh());
  EXPECT_THAT(words(all_tasks(reader)), ElementsAre("0 FINISHED", "1 EXIT 1", "all WAITING"));
  EXPECT_EQ(must(reader.groups()).at(1).waiting, 1);
}

TEST(Resume, LeavesOutOfDateWhatHadFinishedBeforeATaskThatARetryRanAgain) {
  const JournalDirectory directory;
  const TestJob job = train_and_report();
  const std::unique_ptr<Journal> journal = run_past_a_failure(directory, job);
  JournalReader reader = must(JournalReader::open(directory.journal()));
  const auto out_of_date = [&reader] {
    must(reader.refresh());
    std::vector<bool> of_tasks;
    for (const TaskRow& row : all_tasks(reader)) of_tasks.push_back(row.out_of_date);
    return of_tasks;
  };
  EXPECT_THAT(out_of_date(), ElementsAre(false, false, false));
  must(journal->commit(turn_of({.at = at(6), .what = model::RetryAsked{.task = {1}}},
                               {.changes = {model::TaskChanged{.key = key(1, 0)}}})));
  EXPECT_THAT(out_of_date(), ElementsAre(false, false, false));
  must(journal->commit(granted(at(7), {key(1, 2)})));
  EXPECT_THAT(out_of_date(), ElementsAre(false, false, true)) << "it runs again";
  must(journal->commit(finished(at(8), key(1, 2), "{}")));
  EXPECT_THAT(out_of_date(), ElementsAre(false, false, true));
  const std::vector<GroupRow> groups = must(reader.groups());
  EXPECT_EQ(groups.at(0).out_of_date, 0);
  EXPECT_EQ(groups.at(1).out_of_date, 1);
}

TEST(Resume, RunsNothingAgainBehindATaskThatIsNotNeeded) {
  const JournalDirectory directory;
  const TestJob job{{.name = "train", .ids = {"all"}},
                    {.name = "alarm", .ids = {"ring"}},
                    {.name = "after", .ids = {"all"}}};
  auto journal = must(Journal::create(directory.journal(), "sweep", job.batch(), {}));
  // The alarm has run, and was not needed when the training was retried.
  must(journal->commit(granted(at(1), {key(0)}) + failed(at(2), key(0), 1)));
  must(journal->commit(granted(at(3), {key(1)}) + finished(at(4), key(1), "{}")));
  must(journal->commit(turn_of({.at = at(5), .what = model::RetryAsked{.task = {0}}},
                               {.changes = {model::TaskChanged{.key = key(0)}}})));
  must(journal->commit(granted(at(5), {key(0, 2)}) + finished(at(6), key(0, 2), "{}")));
  must(journal->commit(turn_of(
      {.at = at(7), .what = model::RetryAsked{.task = {1}}},
      {.changes = {
           model::TaskChanged{.key = key(1)},
           model::TaskChanged{
               .key = key(1), .status = Status::Exited, .verdict = model::Verdict::NotNeeded}}})));
  must(journal->commit(granted(at(8), {key(2)}) + finished(at(9), key(2), "{}")));
  JournalReader reader = must(JournalReader::open(directory.journal()));
  for (const TaskRow& row : all_tasks(reader)) EXPECT_FALSE(row.out_of_date) << row.group_name;
  must(journal->close(at(10), "ended"));
  const Journal::Resumed resumed = must(Journal::resume(
      directory.journal(), {job.batch()}, {.host = "again"}, {.edited = Edited::RunAgain}));
  EXPECT_THAT(resumed.changes, IsEmpty());
  EXPECT_EQ(resumed.not_kept, Journal::NotKept{});
  EXPECT_EQ(resumed.finished, 2);
  must(reader.refresh());
  EXPECT_THAT(words(all_tasks(reader)),
              ElementsAre("all FINISHED", "ring WAITING", "all FINISHED"));
}

TEST(Resume, KeepsWhatWasTakenOutForTheDayItComesBack) {
  const JournalDirectory directory;
  const TestJob whole{{.name = "a", .ids = {"1", "2"}}, {.name = "b", .ids = {"1"}}};
  const TestJob part{{.name = "a", .ids = {"2"}}};
  must(must(Journal::create(directory.journal(), "sweep", whole.batch(), {}))
           ->commit(granted(at(1), {key(0), key(2)}) + finished(at(2), key(0), "{}") +
                    finished(at(3), key(2), "{}")));
  for (const bool is_first : {true, false}) {
    const Journal::Resumed resumed = resume(directory, part);
    EXPECT_EQ(resumed.finished, 0);
    EXPECT_EQ(resumed.not_kept, (Journal::NotKept{.gone = 2}));
    if (!is_first) continue;
    EXPECT_THAT(
        resumed.changes,
        ElementsAre("group 'b' is no longer in the job file; its results are not shown, and "
                    "come back with the group",
                    "task 'a/1' is no longer in the job file; its result is not shown, and "
                    "comes back with the task"));
  }
  {
    JournalReader reader = must(JournalReader::open(directory.journal()));
    EXPECT_THAT(words(all_tasks(reader)), ElementsAre("2 WAITING"));
    EXPECT_EQ(must(reader.groups()).size(), 1U);
    EXPECT_EQ(must(reader.groups())[0].tasks, 1);
    EXPECT_EQ(must(reader.find("a", "1")), std::nullopt);
    EXPECT_THAT(must(reader.attempts_of({0})), IsEmpty());
  }
  const Journal::Resumed resumed = resume(directory, whole);
  EXPECT_THAT(attempts_of(*resumed.plans.at(0)), ElementsAre("2+", "1", "2+"));
  EXPECT_THAT(
      resumed.changes,
      ElementsAre("group 'b' is new", "task 'a/1' is in the job file again",
                  "group 'b': 1 task had finished before a task that it needs was run again; "
                  "kept as it is (--rerun-changed runs such again)"));
}

TEST(Resume, TellsTasksWithOneIdApartByTheirOrder) {
  const JournalDirectory directory;
  const TestJob job{{.name = "a", .ids = {"x", "x", "x"}}};
  must(must(Journal::create(directory.journal(), "sweep", job.batch(), {}))
           ->commit(granted(at(1), {key(1)}) + finished(at(2), key(1), "{}")));
  EXPECT_THAT(attempts_of(*resume(directory, job).plans.at(0)), ElementsAre("1", "2+", "1"));
  const TestJob moved{{.name = "a", .ids = {"new", "x", "x", "x"}}};
  const Journal::Resumed resumed = resume(directory, moved);
  EXPECT_EQ(resumed.finished, 1);
  EXPECT_THAT(resumed.changes, ElementsAre("task 'a/new' is new"));
}

TEST(Resume, RunsAFinishedTaskAgainThatSomebodyMarkedStopped) {
  const JournalDirectory directory;
  const TestJob job{numbered(2)};
  must(must(Journal::create(directory.journal(), "sweep", job.batch(), {}))
           ->commit(granted(at(1), {key(0)}) + finished(at(2), key(0), "{}")));
  must(must(Database::open(directory.journal(), Database::Access::Write))
           .run("UPDATE ended SET verdict = 4 WHERE task = (SELECT number FROM tasks WHERE id = "
                "'0')"));
  EXPECT_THAT(attempts_of(*resume(directory, job).plans.at(0)), ElementsAre("2", "1"));
}

TEST(Resume, LeavesEverythingAsItWasWhenItFails) {
  const JournalDirectory directory;
  const TestJob job{numbered(2)};
  must(must(Journal::create(directory.journal(), "sweep", job.batch(), {}))
           ->commit(granted(at(1), {key(0)})));
  must(must(Database::open(directory.journal(), Database::Access::Write))
           .run("CREATE TRIGGER broken BEFORE INSERT ON executions "
                "BEGIN SELECT raise(ABORT, 'made to fail'); END"));
  const auto resumed = Journal::resume(directory.journal(), {job.batch()}, {});
  ASSERT_FALSE(resumed.has_value());
  EXPECT_THAT(resumed.error().message, HasSubstr("made to fail"));
  JournalReader reader = must(JournalReader::open(directory.journal()));
  EXPECT_THAT(words(all_tasks(reader)), ElementsAre("0 RUNNING", "1 WAITING"));
  EXPECT_EQ(must(reader.executions()).at(0).how, "");
}

}  // namespace
}  // namespace trainyard::journal
