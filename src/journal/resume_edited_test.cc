// The state that a resumed run takes over when the job file was edited since.

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "journal/changes.h"
#include "journal/journal.h"
#include "journal/options.h"
#include "journal/reader.h"
#include "journal/test_resume.h"
#include "journal/test_run.h"
#include "model/plan.h"
#include "model/status.h"

namespace trainyard::journal {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

/// A task that needs another task of a group that its own group needs; both have finished.
struct Behind {
  JournalDirectory directory;
  TestJob job{{.name = "train", .ids = {"1", "2"}}, {.name = "eval", .ids = {"1", "2"}}};

  Behind() {
    job.plan.groups[1].needs.clear();
    job.plan.groups[1].needs_by_task = {{0}};
    job.plan.task_needs = {{.task = {2}, .needed = {0}}, {.task = {3}, .needed = {1}}};
    auto journal = must(Journal::create(directory.journal(), "sweep", job.batch(), {}));
    for (std::uint32_t i = 0; i < 4; ++i) {
      const std::int64_t begun = std::int64_t{10} * i;
      must(journal->commit(granted(at(begun), {key(i)})));
      must(journal->commit(finished(at(begun + 5), key(i), "{}")));
    }
    must(journal->close(at(60), "ended"));
    job.fingerprints.front() = 99;
  }
};

TEST(ResumeEdited, SaysWhatWasMadeFromThatWhichBeginsAnewAndRunsItAgainWhereThatIsAsked) {
  Behind of;
  Journal::Resumed resumed = must(Journal::resume(of.directory.journal(), {of.job.batch()},
                                                  {.host = "again"}, {.edited = Edited::RunAgain}));
  EXPECT_THAT(attempts_of(*resumed.plans.at(0)), ElementsAre("2", "2+", "2", "2+"));
  EXPECT_EQ(resumed.not_kept, (Journal::NotKept{.run_again = 2}));
  EXPECT_THAT(
      resumed.changes,
      ElementsAre("task 'train/1' was changed after it had finished; it is run again",
                  "group 'eval': 1 task had finished before a task that it needs was run again; "
                  "run again"));
}

TEST(ResumeEdited, KnowsInEveryLaterExecutionWhatWasMadeFromThatWhichHasRunAgainSince) {
  Behind of;
  {
    const Journal::Resumed resumed =
        must(Journal::resume(of.directory.journal(), {of.job.batch()}, {.host = "again"},
                             {.edited = Edited::RunAgain, .again = std::set<std::uint32_t>{0}}));
    EXPECT_THAT(attempts_of(*resumed.plans.at(0)), ElementsAre("2", "2+", "2+", "2+"));
    must(resumed.journal->commit(granted(at(100), {key(0, 2)})));
    must(resumed.journal->commit(finished(at(110), key(0, 2), "{}")));
    must(resumed.journal->close(at(120), "ended"));
  }
  const std::string had =
      "group 'eval': 1 task had finished before a task that it needs was run again; ";
  for (int i = 0; i < 2; ++i) {
    const Journal::Resumed resumed = resume(of.directory, of.job);
    EXPECT_THAT(resumed.changes,
                ElementsAre(had + "kept as it is (--rerun-changed runs such again)"));
  }
  {
    const Journal::Resumed resumed = must(Journal::resume(
        of.directory.journal(), {of.job.batch()}, {.host = "again"}, {.edited = Edited::RunAgain}));
    EXPECT_THAT(resumed.changes, ElementsAre(had + "run again"));
    EXPECT_THAT(attempts_of(*resumed.plans.at(0)), ElementsAre("3+", "2+", "2", "2+"));
    must(resumed.journal->commit(granted(at(200), {key(2, 2)})));
    must(resumed.journal->commit(finished(at(210), key(2, 2), "{}")));
    must(resumed.journal->close(at(220), "ended"));
  }
  EXPECT_THAT(resume(of.directory, of.job).changes, IsEmpty());
}

TEST(ResumeEdited, RunsAgainWhatIsNamedThoughNothingOfItWasEdited) {
  Behind of;
  of.job.fingerprints.front() = of.job.fingerprints.back();
  const Journal::Resumed resumed =
      must(Journal::resume(of.directory.journal(), {of.job.batch()}, {.host = "again"},
                           {.edited = Edited::RunAgain, .again = std::set<std::uint32_t>{0}}));
  EXPECT_THAT(attempts_of(*resumed.plans.at(0)), ElementsAre("2", "2+", "2+", "2+"));
  EXPECT_EQ(resumed.not_kept, (Journal::NotKept{.run_again = 1}));
  EXPECT_THAT(
      resumed.changes,
      ElementsAre("group 'eval': 1 task had finished before a task that it needs was run again; "
                  "kept as it is (--rerun-changed runs such again)"));
}

TEST(ResumeEdited, KeepsWhatIsBehindOthersWhereTheseAreKept) {
  Behind of;
  const Journal::Resumed resumed = resume(of.directory, of.job);
  EXPECT_EQ(resumed.finished, 4);
  EXPECT_EQ(resumed.not_kept, Journal::NotKept{});
  EXPECT_THAT(resumed.changes,
              ElementsAre("1 task was changed after it had finished; its result is kept "
                          "(--rerun-changed runs it again)"));
}

TEST(ResumeEdited, LeavesOutWhatIsNewInTheJobFileWhereTheOthersStayAsTheyEnded) {
  const JournalDirectory directory;
  const TestJob job{{.name = "a", .ids = {"failed"}}};
  {
    auto journal = must(Journal::create(directory.journal(), "sweep", job.batch(), {}));
    must(journal->commit(granted(at(10), {key(0)})));
    must(journal->commit(failed(at(30), key(0), 2)));
    must(journal->close(at(60), "ended"));
  }
  const TestJob edited{{.name = "a", .ids = {"new", "failed"}}, {.name = "b", .ids = {"too"}}};
  const JournalOptions stay{.unfinished = Unfinished::Stay};
  {
    const Journal::Resumed resumed =
        must(Journal::resume(directory.journal(), {edited.batch()}, {.host = "again"}, stay));
    std::vector<model::Verdict> before;
    for (const model::PlannedTask& it : resumed.plans.at(0)->tasks) before.push_back(it.before);
    EXPECT_THAT(before, ElementsAre(model::Verdict::NotSelected, model::Verdict::Failed,
                                    model::Verdict::NotSelected));
    EXPECT_THAT(resumed.changes,
                ElementsAre("group 'b' is new", "task 'a/new' is new; a resumed run runs it"));
    must(resumed.journal->close(at(70), "ended"));
  }
  {
    // Once more: what was left out stays so.
    const Journal::Resumed resumed =
        must(Journal::resume(directory.journal(), {edited.batch()}, {.host = "again"}, stay));
    JournalReader reader = must(JournalReader::open(directory.journal()));
    EXPECT_THAT(words(all_tasks(reader)),
                UnorderedElementsAre("new NOT_SELECTED", "failed EXIT 2", "too NOT_SELECTED"));
    must(resumed.journal->close(at(80), "ended"));
  }
  const Journal::Resumed resumed = resume(directory, edited);
  JournalReader reader = must(JournalReader::open(directory.journal()));
  EXPECT_THAT(words(all_tasks(reader)),
              UnorderedElementsAre("new WAITING", "failed WAITING", "too WAITING"));
}

TEST(ResumeEdited, SaysWhatAnEditChanged) {
  const JournalDirectory directory;
  TestJob job{{.name = "a", .ids = {"1", "2"}, .parallel_max = 2}};
  must(must(Journal::create(directory.journal(), "sweep", job.batch(), {}))
           ->commit(granted(at(1), {key(0)}) + finished(at(2), key(0), "{}")));
  job.plan.groups[0].parallel_max = 0;
  job.plan.groups[0].fail_fast = true;
  job.plan.groups[0].try_first = true;
  job.fingerprints = {8, 9};
  const std::vector<std::string> wanted{
      "1 task was changed after it had finished; its result is kept (--rerun-changed runs it "
      "again)"};
  EXPECT_THAT(
      resume(directory, job).changes,
      ElementsAre(wanted[0], "group 'a': max-parallel changed from 2 to no limit",
                  "group 'a': try-first changed from 0 to 1",
                  "group 'a': fail-fast changed from false to true", "task 'a/2' was changed"));
  // It still has the result of the other command; the rest is known by now.
  EXPECT_EQ(resume(directory, job).changes, wanted);
  job.fingerprints = {1, 9};
  EXPECT_THAT(resume(directory, job).changes, IsEmpty());
}

TEST(ResumeEdited, RunsAgainWhatAnEditChangedWhereThatIsAskedFor) {
  const JournalDirectory directory;
  TestJob job{{.name = "a", .ids = {"1", "2"}}};
  must(must(Journal::create(directory.journal(), "sweep", job.batch(), {}))
           ->commit(granted(at(1), {key(0), key(1)}) + finished(at(2), key(0), "{}") +
                    finished(at(3), key(1), "{}")));
  const auto edited = [&] {
    JournalReader reader = must(JournalReader::open(directory.journal()));
    std::vector<bool> rows;
    for (const TaskRow& row : all_tasks(reader)) rows.push_back(row.edited);
    return rows;
  };
  job.fingerprints = {8, 1};
  EXPECT_THAT(attempts_of(*resume(directory, job).plans.at(0)), ElementsAre("2+", "2+"));
  EXPECT_THAT(edited(), ElementsAre(true, false));
  const JournalOptions again{.edited = Edited::RunAgain};
  const Journal::Preview ahead = must(Journal::preview(directory.journal(), {job.batch()}, again));
  EXPECT_THAT(attempts_of(*ahead.plans.at(0)), ElementsAre("2", "2+"));
  const Journal::Resumed resumed =
      must(Journal::resume(directory.journal(), {job.batch()}, {}, again));
  EXPECT_THAT(attempts_of(*resumed.plans.at(0)), ElementsAre("2", "2+"));
  EXPECT_EQ(resumed.finished, 1);
  EXPECT_THAT(resumed.changes,
              ElementsAre("task 'a/1' was changed after it had finished; it is run again"));
  EXPECT_THAT(edited(), ElementsAre(false, false));
  must(resumed.journal->commit(granted(at(5), {key(0, 2)}) + finished(at(6), key(0, 2), "[2]")));
  JournalReader reader = must(JournalReader::open(directory.journal()));
  EXPECT_EQ(all_tasks(reader)[0].result, "[2]");
  EXPECT_EQ(must(reader.attempts({0})).size(), 2U);
}

TEST(ResumeEdited, SaysAtMostEightLines) {
  const JournalDirectory directory;
  TestJob job{numbered(50)};
  must(Journal::create(directory.journal(), "sweep", job.batch(), {}));
  job.fingerprints.assign(50, 2);
  const std::vector<std::string> changes = resume(directory, job).changes;
  ASSERT_EQ(changes.size(), kChangeLinesMax);
  EXPECT_EQ(changes[6], "task 'train/6' was changed");
  EXPECT_EQ(changes[7], "and 43 more");
  job.fingerprints.assign(8, 3);
  job.fingerprints.resize(50, 2);
  EXPECT_EQ(resume(directory, job).changes.back(), "task 'train/7' was changed");
}

TEST(ResumeEdited, CountsInTheFirstLineTheFinishedTasksThatKeepTheirResults) {
  const JournalDirectory directory;
  TestJob job{numbered(22)};
  must(must(Journal::create(directory.journal(), "sweep", job.batch(), {}))
           ->commit(granted(at(1), {key(0), key(1)}) + finished(at(2), key(0), "{}") +
                    finished(at(3), key(1), "{}")));
  job.fingerprints.assign(22, 2);
  const std::vector<std::string> changes = resume(directory, job).changes;
  ASSERT_EQ(changes.size(), kChangeLinesMax);
  EXPECT_EQ(changes[0],
            "2 tasks were changed after they had finished; their results are kept (--rerun-changed "
            "runs them again)");
  EXPECT_EQ(changes[1], "task 'train/2' was changed");
  EXPECT_EQ(changes[6], "task 'train/7' was changed");
  EXPECT_EQ(changes[7], "and 14 more");
}

}  // namespace
}  // namespace trainyard::journal
