// Ends that were noted when the yard was gone go into the journal before its run goes on.
#include "journal/earlier_ends.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/bytes.h"
#include "base/time.h"
#include "journal/journal.h"
#include "journal/reader.h"
#include "journal/test_run.h"
#include "model/status.h"
#include "model/turn.h"

namespace trainyard::journal {
namespace {

using ::testing::ElementsAre;

/// The end of task `number`, as finished() and failed() of a test say it of task 0.
EarlierEnd earlier(std::uint32_t number, std::uint32_t attempt, const model::Turn& turn) {
  return {.task = number,
          .attempt = attempt,
          .event = turn.events.at(0),
          .decision = turn.decisions.at(0)};
}

Journal::Resumed gone_on(const JournalDirectory& directory, const TestJob& job,
                         const std::vector<EarlierEnd>& ends) {
  return must(Journal::resume(directory.journal(), {job.batch()}, {}, {}, ends));
}

TEST(EarlierEnds, CountAsIfTheyHadBeenWrittenDownInTime) {
  const JournalDirectory directory;
  const TestJob job{{.ids = {"a", "b", "c"}}};
  {
    auto journal = must(Journal::create(directory.journal(), "job", job.batch(), {}));
    must(journal->commit(granted(at(10), {key(0), key(1), key(2)}) + started(at(20), key(0), 100) +
                         started(at(20), key(1), 101) + started(at(20), key(2), 102)));
  }
  model::Turn well = finished(at(500), key(0), R"({"x":1})");
  std::get<model::AttemptEnded>(well.events.at(0).what).ended = at(420);
  const Journal::Resumed resumed =
      gone_on(directory, job, {earlier(1, 1, failed(at(700), key(0), 3)), earlier(0, 1, well)});
  EXPECT_EQ(resumed.ends, (EarlierEndCounts{.own = 2}));
  EXPECT_EQ(resumed.finished, 1);
  EXPECT_TRUE(resumed.plans.at(0)->tasks[0].finished_before());
  EXPECT_EQ(resumed.plans.at(0)->tasks[1].first_attempt, 2U);
  EXPECT_EQ(resumed.at, at(700));

  auto reader = must(JournalReader::open(directory.journal()));
  const std::vector<TaskRow> rows = all_tasks(reader);
  EXPECT_THAT(words(rows), ElementsAre("a FINISHED", "b WAITING", "c WAITING"));
  EXPECT_EQ(rows[0].result, R"({"x":1})");
  EXPECT_EQ(rows[0].started, at(20));
  EXPECT_EQ(rows[0].ended, at(420));
  EXPECT_EQ(rows[0].times.train, Duration(400));
  EXPECT_EQ(rows[0].memory_peak, mb(300));
  const AttemptRow exit = must(reader.attempts({1})).at(0);
  EXPECT_EQ(exit.failure, model::Failure::Exit);
  EXPECT_EQ(exit.exit_code, 3);
  EXPECT_EQ(exit.ended, at(700));
  // The third is lost, as its end was not noted.
  EXPECT_EQ(must(reader.attempts({2})).at(0).failure, model::Failure::Lost);
  const GroupRow group = must(reader.groups()).at(0);
  EXPECT_EQ(group.finished, 1);
  EXPECT_EQ(group.waiting, 2);

  auto database = must(Database::open(directory.journal(), Database::Access::Read));
  EXPECT_EQ(
      must(database.text("SELECT group_concat(execution || ' ' || at_ms || ' ' || kind || ' ' "
                         "|| coalesce(task, '-')) FROM (SELECT * FROM events WHERE at_ms > "
                         "20 ORDER BY seq)")),
      "1 500 ended 0,1 700 ended 1,2 700 resumed -");
}

TEST(EarlierEnds, OfWhatTheJournalDoesNotKnowAsRunningArePassedOver) {
  const JournalDirectory directory;
  const TestJob job{{.ids = {"ended", "waits", "second"}}};
  {
    auto journal = must(Journal::create(directory.journal(), "job", job.batch(), {}));
    must(journal->commit(granted(at(10), {key(0), key(2)}) + finished(at(20), key(0), "{}")));
    // The first attempt is over, and the second one runs.
    must(journal->commit(turn_of(
        {.at = at(30), .what = model::AttemptEnded{.key = key(2), .end = model::ExitedWith{1}}},
        {.changes = {model::TaskChanged{.key = key(2), .status = Status::Interrupt}}})));
    must(journal->commit(granted(at(40), {key(2, 2)})));
  }
  std::vector<EarlierEnd> ends;
  for (const std::uint32_t task : {0U, 1U, 2U, 99U}) {
    ends.push_back(earlier(task, 1, failed(at(50), key(0), 4)));
  }
  const Journal::Resumed resumed = gone_on(directory, job, ends);
  EXPECT_EQ(resumed.ends, EarlierEndCounts{});
  EXPECT_EQ(resumed.finished, 1);
  auto reader = must(JournalReader::open(directory.journal()));
  EXPECT_EQ(all_tasks(reader)[0].result, "{}");
  EXPECT_THAT(must(reader.attempts({1})), ::testing::IsEmpty());
  EXPECT_EQ(must(reader.attempts({2})).size(), 2U);
}

TEST(EarlierEnds, OfAttemptsThatWereStoppedAreCountedApart) {
  const JournalDirectory directory;
  const TestJob job{{.ids = {"a", "b", "c"}}};
  {
    auto journal = must(Journal::create(directory.journal(), "job", job.batch(), {}));
    must(journal->commit(granted(at(10), {key(0), key(1), key(2)})));
  }
  const auto stopped = [](std::uint32_t number) {
    return earlier(
        number, 1,
        turn_of({.at = at(50),
                 .what = model::AttemptEnded{.key = key(0), .end = model::KilledBy{.signal = 15}}},
                {.changes = {model::TaskChanged{.key = key(0),
                                                .status = Status::Interrupt,
                                                .verdict = model::Verdict::Stopped}}}));
  };
  const Journal::Resumed resumed = gone_on(
      directory, job, {earlier(0, 1, finished(at(40), key(0), "{}")), stopped(1), stopped(2)});
  EXPECT_EQ(resumed.ends, (EarlierEndCounts{.own = 1, .stopped = 2}));
}

TEST(EarlierEnds, AreNotCountedTwice) {
  const JournalDirectory directory;
  const TestJob job{{.ids = {"a"}}};
  {
    auto journal = must(Journal::create(directory.journal(), "job", job.batch(), {}));
    must(journal->commit(granted(at(10), {key(0)})));
  }
  const EarlierEnd end = earlier(0, 1, failed(at(50), key(0), 4));
  EXPECT_EQ(gone_on(directory, job, {end, end}).ends, (EarlierEndCounts{.own = 1}));
  // Killed before the notes were removed, it reads them again; and the next attempt is not meant.
  EXPECT_EQ(gone_on(directory, job, {end}).ends, EarlierEndCounts{});
  auto reader = must(JournalReader::open(directory.journal()));
  EXPECT_EQ(must(reader.attempts({0})).size(), 1U);
}

TEST(EarlierEnds, AreShownBeforehandAndChangeNothingThen) {
  const JournalDirectory directory;
  const TestJob job{{.ids = {"a"}}};
  {
    auto journal = must(Journal::create(directory.journal(), "job", job.batch(), {}));
    must(journal->commit(granted(at(10), {key(0)})));
  }
  const EarlierEnd end = earlier(0, 1, finished(at(50), key(0), "{}"));
  for (int i = 0; i < 2; ++i) {
    const auto preview = must(Journal::preview(directory.journal(), {job.batch()}, {}, {end}));
    EXPECT_EQ(preview.finished, 1);
    EXPECT_EQ(preview.ends, (EarlierEndCounts{.own = 1}));
  }
}

TEST(EarlierEnds, OfATwoPhaseTaskKnowSinceWhenItTrained) {
  const JournalDirectory directory;
  const TestJob job{{.ids = {"a"}}};
  const auto changed = [](Instant when, Status status) {
    return turn_of({.at = when, .what = model::StageReported{.key = key(0)}},
                   {.changes = {model::TaskChanged{.key = key(0), .status = status}}});
  };
  {
    auto journal = must(Journal::create(directory.journal(), "job", job.batch(), {}));
    must(journal->commit(granted(at(10), {key(0)}) + changed(at(20), Status::Loading) +
                         changed(at(120), Status::Waiting) + changed(at(200), Status::Training)));
  }
  gone_on(directory, job, {earlier(0, 1, finished(at(900), key(0), "{}"))});
  auto reader = must(JournalReader::open(directory.journal()));
  const TaskRow row = all_tasks(reader).at(0);
  EXPECT_EQ(row.times.load, Duration(110)) << "from the start of its process";
  EXPECT_EQ(row.times.train, Duration(700));
}

}  // namespace
}  // namespace trainyard::journal
