// A run that grows: batches that are written down beside turns, and taken over when it goes on.
#include <filesystem>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/result.h"
#include "base/time.h"
#include "journal/journal.h"
#include "journal/reader.h"
#include "journal/test_run.h"
#include "model/command.h"
#include "model/event.h"
#include "model/ids.h"
#include "model/status.h"
#include "model/turn.h"
#include "model/waiting.h"

namespace trainyard::journal {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

model::Turn added(Instant when, const Batch& batch) {
  return turn_of(
      {.at = when,
       .what = model::BatchAdded{.number = batch.number, .plan = batch.plan, .is_promised = true}});
}

/// Writes a batch down whole, and makes it count.
void add(Journal& journal, Instant when, const Batch& batch) {
  must(journal.begin_batch(batch));
  while (!must(journal.write_more())) continue;
  must(journal.commit(added(when, batch)));
}

std::vector<std::string> groups_of(const std::string& path) {
  JournalReader reader = must(JournalReader::open(path));
  std::vector<std::string> texts;
  for (const GroupRow& group : must(reader.groups())) {
    texts.push_back(fmt::format("{}: {} of {}", group.name, group.finished, group.tasks));
  }
  return texts;
}

std::vector<std::string> tasks_of(const std::string& path) {
  JournalReader reader = must(JournalReader::open(path));
  std::vector<std::string> texts;
  for (const TaskRow& row : all_tasks(reader)) {
    texts.push_back(fmt::format("{} {}.{} {} {}", row.index.value, row.batch, row.directory,
                                row.group_name, model::word_for(row.standing)));
  }
  return texts;
}

TEST(Batches, CountWhenTheTurnThatAddsThemIsCommitted) {
  const JournalDirectory directory;
  const TestJob first{{.name = "train", .ids = {"a"}}};
  const TestJob second{{.name = "eval", .ids = {"b", "c"}}};
  auto journal = must(Journal::create(directory.journal(), "sweep", first.batch(), {}));
  const Batch batch = second.batch(2);
  must(journal->begin_batch(batch));
  EXPECT_TRUE(must(journal->write_more()));
  EXPECT_THAT(groups_of(directory.journal()), ElementsAre("train: 0 of 1"));
  EXPECT_THAT(tasks_of(directory.journal()), ElementsAre("0 1.train/a train WAITING"));
  must(journal->commit(added(at(10), batch)));
  EXPECT_THAT(groups_of(directory.journal()), ElementsAre("train: 0 of 1", "eval: 0 of 2"));
  must(journal->commit(granted(at(20), {key(2)}) + started(at(21), key(2), 7) +
                       finished(at(30), key(2), "{}")));
  EXPECT_THAT(tasks_of(directory.journal()),
              ElementsAre("0 1.train/a train WAITING", "1 2.eval/b eval WAITING",
                          "2 2.eval/c eval FINISHED"));
  EXPECT_THAT(groups_of(directory.journal()), ElementsAre("train: 0 of 1", "eval: 1 of 2"));
}

TEST(Batches, AreHelpedByNoKeyOfAJobFileButTheFirst) {
  const JournalDirectory directory;
  const TestJob first{{.name = "train", .ids = {"a"}}};
  const TestJob second{{.name = "eval", .ids = {"b"}}};
  auto journal = must(Journal::create(directory.journal(), "sweep", first.batch(), {}));
  const Batch batch = second.batch(2);
  add(*journal, at(10), batch);
  const model::Reason parallel{.cause = model::Cause::Parallel, .needs = {}, .parallel_max = 1};
  must(journal->commit(turn_of({.at = at(11), .what = model::TimePassed{}},
                               {.changes = {model::ReasonChanged{.shape = {0}, .reason = parallel},
                                            model::ReasonChanged{.shape = {1}, .reason = parallel},
                                            model::HeadroomSeen{}}})));
  JournalReader reader = must(JournalReader::open(directory.journal()));
  std::vector<std::string> helps;
  for (const WaitingReason& row : must(reader.waiting())) {
    helps.push_back(fmt::format("{}: '{}'", row.group_name, row.help.line));
  }
  EXPECT_THAT(helps, ElementsAre("train: 'max-parallel: 2'", "eval: ''"));
}

TEST(Batches, AreWrittenAFewThousandTasksAtATimeBesideTurns) {
  const JournalDirectory directory;
  const TestJob first{{.name = "train", .ids = {"a"}}};
  const TestJob large{numbered(2 * static_cast<int>(Journal::kTasksAtOnce) + 1)};
  auto journal = must(Journal::create(directory.journal(), "sweep", first.batch(), {}));
  const Batch batch = large.batch(2, "train (2)");
  must(journal->begin_batch(batch));
  EXPECT_FALSE(must(journal->write_more()));
  must(journal->commit(granted(at(10), {key(0)})));
  EXPECT_FALSE(must(journal->write_more()));
  must(journal->commit(started(at(11), key(0), 7) + finished(at(12), key(0), "{}")));
  EXPECT_TRUE(must(journal->write_more()));
  must(journal->commit(added(at(20), batch)));
  EXPECT_THAT(groups_of(directory.journal()),
              ElementsAre("train: 1 of 1", "train (2): 0 of 10001"));
}

TEST(Batches, AreForgottenWhenTheYardDiesBeforeTheyCount) {
  const JournalDirectory directory;
  const TestJob first{{.name = "train", .ids = {"a"}}};
  const TestJob second{{.name = "eval", .ids = {"b"}}};
  const TestJob third{{.name = "more", .ids = {"c"}}};
  {
    auto journal = must(Journal::create(directory.journal(), "sweep", first.batch(), {}));
    const Batch batch = second.batch(2);
    must(journal->begin_batch(batch));
    EXPECT_TRUE(must(journal->write_more()));
  }  // It is gone without a turn about it.
  {
    JournalReader reader = must(JournalReader::open(directory.journal()));
    ASSERT_EQ(must(reader.batches()).size(), 1U);
  }
  auto resumed = must(Journal::resume(directory.journal(), {first.batch()}, {}));
  const Batch batch = third.batch(2);
  add(*resumed.journal, at(20), batch);
  EXPECT_THAT(tasks_of(directory.journal()),
              ElementsAre("0 1.train/a train WAITING", "1 2.more/c more WAITING"));
}

TEST(Batches, AreTakenOverEachByItsOwnPlan) {
  const JournalDirectory directory;
  const TestJob first{{.name = "train", .ids = {"a", "b"}}};
  const TestJob second{{.name = "train", .ids = {"a", "b"}}, {.name = "eval", .ids = {"a"}}};
  {
    auto journal = must(Journal::create(directory.journal(), "sweep", first.batch(), {}));
    add(*journal, at(5), second.batch(2, "train (2)"));
    must(journal->commit(granted(at(10), {key(0), key(3)}) + started(at(11), key(0), 7) +
                         started(at(11), key(3), 8) + finished(at(12), key(3), R"({"x":1})")));
  }
  // The job file has lost a task, and the submission is as it was.
  const TestJob edited{{.name = "train", .ids = {"b"}}};
  auto resumed = must(
      Journal::resume(directory.journal(), {edited.batch(), second.batch(2, "train (2)")}, {}));
  EXPECT_EQ(resumed.finished, 1);
  EXPECT_THAT(resumed.changes, ElementsAre("task 'train/a' is no longer in the job file"));
  ASSERT_EQ(resumed.plans.size(), 2U);
  EXPECT_EQ(resumed.plans[0]->tasks.size(), 1U);
  EXPECT_FALSE(resumed.plans[1]->tasks[0].finished_before());
  EXPECT_TRUE(resumed.plans[1]->tasks[1].finished_before()) << "'b' of the submission";
  EXPECT_THAT(tasks_of(directory.journal()),
              ElementsAre("1 1.train/b train WAITING", "2 2.train/a train (2) WAITING",
                          "3 2.train/b train (2) FINISHED", "4 2.eval/a eval WAITING"))
      << "numbers stay";
  // Numbered over both: 'eval/a' is the fourth now.
  must(resumed.journal->commit(granted(at(20), {key(3)}) + started(at(21), key(3), 9) +
                               finished(at(22), key(3), "{}")));
  EXPECT_THAT(groups_of(directory.journal()),
              ElementsAre("train: 0 of 1", "train (2): 1 of 2", "eval: 1 of 1"));
}

TEST(Batches, LeaveNothingBehindThatIsGivenUp) {
  const JournalDirectory directory;
  const TestJob first{{.name = "train", .ids = {"a"}}};
  const TestJob large{numbered(static_cast<int>(Journal::kTasksAtOnce) + 1)};
  const TestJob small{{.name = "eval", .ids = {"b"}}};
  auto journal = must(Journal::create(directory.journal(), "sweep", first.batch(), {}));
  const Batch given_up = large.batch(2);
  must(journal->begin_batch(given_up));
  EXPECT_FALSE(must(journal->write_more()));
  must(journal->give_up_batch());
  add(*journal, at(5), small.batch(2));
  must(journal->commit(granted(at(10), {key(1)})));
  EXPECT_THAT(tasks_of(directory.journal()),
              ElementsAre("0 1.train/a train WAITING", "1 2.eval/b eval RUNNING"));
}

TEST(Batches, LoseNothingElseWhenTheDiskIsFull) {
  const JournalDirectory directory;
  const TestJob first{{.name = "train", .ids = {"a"}}};
  const TestJob large{numbered(4'000)};
  const TestJob small{{.name = "eval", .ids = {"b"}}};
  {
    auto journal =
        must(Journal::create(directory.journal(), "sweep", first.batch(), {}, {.pages_max = 200}));
    const Batch batch = large.batch(2);
    must(journal->begin_batch(batch));
    const Result<bool> written = journal->write_more();
    ASSERT_FALSE(written.has_value());
    EXPECT_THAT(written.error().message, HasSubstr("full"));
    must(journal->give_up_batch());
    add(*journal, at(5), small.batch(2));
    must(journal->commit(granted(at(10), {key(0), key(1)})));
  }
  EXPECT_THAT(tasks_of(directory.journal()),
              ElementsAre("0 1.train/a train RUNNING", "1 2.eval/b eval RUNNING"));
}

TEST(Batches, KeepWhereTheyCameFrom) {
  const JournalDirectory directory;
  const TestJob first{{.name = "train", .ids = {"a"}}};
  const TestJob second{{.name = "eval", .ids = {"b"}}};
  Batch batch = second.batch(2);
  batch.source = {.command_line = "trainyard submit more.yaml",
                  .job_file = "/home/me/more.yaml",
                  .job_text = "groups: []\n",
                  .config_file = {},
                  .settings = {"task.allow-duplicate-id=true"},
                  .environment = {"TOKEN=secret", "PATH=/bin"}};
  auto journal = must(Journal::create(directory.journal(), "sweep", first.batch(), {}));
  add(*journal, at(5), batch);
  JournalReader reader = must(JournalReader::open(directory.journal()));
  const std::vector<BatchRow> rows = must(reader.batches());
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[1].number, 2U);
  EXPECT_EQ(rows[1].added, at(5));
  EXPECT_EQ(rows[1].source.command_line, batch.source.command_line);
  EXPECT_EQ(rows[1].source.job_file, batch.source.job_file);
  EXPECT_EQ(rows[1].source.job_text, batch.source.job_text);
  EXPECT_EQ(rows[1].source.settings, batch.source.settings);
  EXPECT_EQ(rows[1].source.environment, batch.source.environment);
  must(journal->commit(added(at(9), batch)));
  must(reader.refresh());
  EXPECT_EQ(must(reader.batches())[1].added, at(5)) << "a resumed run adds it again";
  EXPECT_THAT(rows[0].source.environment, IsEmpty());
  using std::filesystem::perms;
  EXPECT_EQ(std::filesystem::status(directory.journal()).permissions(),
            perms::owner_read | perms::owner_write)
      << "an environment may hold secrets";
}

}  // namespace
}  // namespace trainyard::journal
