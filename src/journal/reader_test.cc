// The view of a reader beside a yard that continues, and the lookup of tasks by name.
#include "journal/reader.h"

#include <tuple>
#include <variant>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "journal/sqlite.h"
#include "journal/test_run.h"
#include "model/event.h"
#include "model/turn.h"

namespace trainyard::journal {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<std::string> ids(const std::vector<TaskRow>& rows) {
  std::vector<std::string> ids;
  ids.reserve(rows.size());
  for (const TaskRow& row : rows) ids.push_back(row.group_name + "/" + row.id);
  return ids;
}

TEST(JournalReader, SeesOneMomentUntilItLooksAgain) {
  const JournalDirectory directory;
  const TestJob job{numbered(2)};
  auto journal = must(Journal::create(directory.journal(), "sweep", job.batch(), {}));
  JournalReader reader = must(JournalReader::open(directory.journal()));
  // The yard goes on under a view that is held, and the view stays as it is.
  for (int i = 0; i < 50; ++i) {
    must(journal->commit(turn_of({.at = at(i), .what = model::KillAsked{.task = {1}}})));
  }
  must(journal->commit(granted(at(60), {key(0)})));
  EXPECT_THAT(words(all_tasks(reader)), ElementsAre("0 WAITING", "1 WAITING"));
  EXPECT_EQ(must(reader.groups()).at(0).running, 0);
  must(reader.refresh());
  EXPECT_THAT(words(all_tasks(reader)), ElementsAre("0 RUNNING", "1 WAITING"));
  EXPECT_EQ(must(reader.groups()).at(0).running, 1);

  must(reader.rest());
  must(journal->commit(started(at(70), key(0), 7) + finished(at(80), key(0), "")));
  EXPECT_THAT(words(all_tasks(reader)), ElementsAre("0 FINISHED", "1 WAITING"));
}

TEST(JournalReader, KnowsWhoseResultIsMissingOrChanged) {
  const JournalDirectory directory;
  const TestJob job{numbered(4)};
  auto journal = must(Journal::create(directory.journal(), "sweep", job.batch(), {}));
  JournalReader reader = must(JournalReader::open(directory.journal()));
  EXPECT_EQ(must(reader.count_warned()), 0);
  must(journal->commit(granted(at(1), {key(0), key(1), key(2)})));
  for (const std::uint32_t task : {0U, 1U, 2U}) {
    model::Turn turn = finished(at(2), key(task), "");
    if (task != 1) std::get<model::AttemptEnded>(turn.events.at(0).what).warning = "it is not JSON";
    must(journal->commit(turn));
  }
  must(reader.refresh());
  EXPECT_EQ(must(reader.count_warned()), 2);
  EXPECT_THAT(ids(all_tasks(reader, {.warned = true})), ElementsAre("train/0", "train/2"));
  EXPECT_THAT(ids(all_tasks(reader, {.warned = true, .at_most = 1})), ElementsAre("train/0"));
}

TEST(JournalReader, KnowsWhatSharingComesToAndHowLongTheRunWasExpectedToTake) {
  const JournalDirectory directory;
  const TestJob job{numbered(2)};
  auto journal = must(
      Journal::create(directory.journal(), "sweep", job.batch(),
                      {.forecast = Duration{1'000}, .forecast_at_the_worst = Duration{2'000}}));
  JournalReader reader = must(JournalReader::open(directory.journal()));
  EXPECT_THAT(must(reader.sharing()), ::testing::IsEmpty());
  const ExecutionRow execution = must(reader.executions()).front();
  EXPECT_EQ(execution.forecast, Duration{1'000});
  EXPECT_EQ(execution.forecast_at_the_worst, Duration{2'000});
  const model::SharingMeasured measured{
      .shape = {0}, .to_a_gpu = 3, .factor = 1.75, .tasks = 9, .to_a_gpu_max = 4};
  model::Turn turn = turn_of({.at = at(1), .what = model::TimePassed{}});
  turn.decisions.front().changes.emplace_back(measured);
  must(journal->commit(turn));
  must(reader.refresh());
  const std::vector<SharingRow> rows = must(reader.sharing());
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows[0].group_name, must(reader.groups()).front().name);
  EXPECT_EQ(rows[0].measured, measured);
}

TEST(JournalReader, KnowsWhyTasksOfAGroupWereSkipped) {
  const JournalDirectory directory;
  const TestJob job{{.name = "a", .ids = {"1", "2", "3"}}, {.name = "b", .ids = {"1"}}};
  auto journal = must(Journal::create(directory.journal(), "sweep", job.batch(), {}));
  must(journal->commit(granted(at(1), {key(0)})));
  model::Turn turn = failed(at(2), key(0), 1);
  for (const std::uint32_t task : {1U, 2U}) {
    turn.decisions.front().changes.emplace_back(
        model::TaskChanged{.key = key(task, 0),
                           .verdict = model::Verdict::Skipped,
                           .message = "fail-fast",
                           .with_group = task == 2});
  }
  must(journal->commit(turn));
  JournalReader reader = must(JournalReader::open(directory.journal()));
  const std::vector<GroupRow> groups = must(reader.groups());
  EXPECT_EQ(groups[0].skipped, 2);
  EXPECT_EQ(groups[0].why_skipped, "fail-fast");
  EXPECT_EQ(groups[1].why_skipped, "");
  std::vector<std::uint32_t> with_group;
  for (const TaskRow& row : all_tasks(reader)) {
    if (row.with_group) with_group.push_back(row.index.value);
  }
  EXPECT_THAT(with_group, ElementsAre(2));
}

TEST(JournalReader, MarksASkippedGroupOfWhichTheNeedsHaveFinishedSince) {
  const JournalDirectory directory;
  const TestJob job{{.name = "a", .ids = {"1"}}, {.name = "b", .ids = {"1"}}};
  auto journal = must(Journal::create(directory.journal(), "sweep", job.batch(), {}));
  const std::string why = "needs group 'a', where a task failed";
  const auto enter = [&](std::uint32_t group, model::GroupPhase phase, const std::string& message) {
    model::Decision decision;
    decision.changes.emplace_back(
        model::GroupChanged{.group = {group}, .phase = phase, .message = message});
    if (!message.empty()) {
      decision.changes.emplace_back(model::TaskChanged{
          .key = key(1, 0), .verdict = model::Verdict::Skipped, .message = message});
    }
    must(journal->commit(
        turn_of({.at = at(1), .what = model::KillAsked{.task = {1}}}, std::move(decision))));
  };
  const auto skipped = [&] {
    JournalReader reader = must(JournalReader::open(directory.journal()));
    return must(reader.groups()).at(1);
  };
  enter(0, model::GroupPhase::Failed, "");
  enter(1, model::GroupPhase::Skipped, why);
  EXPECT_EQ(skipped().message, why);
  EXPECT_FALSE(skipped().needs_finished_since);
  enter(0, model::GroupPhase::Finished, "");
  EXPECT_EQ(skipped().message, why);
  EXPECT_TRUE(skipped().needs_finished_since);
}

TEST(JournalReader, TellsApartWhatWasSkippedAndWhatDidNotHaveToRun) {
  const JournalDirectory directory;
  const TestJob job{{.name = "a", .ids = {"1", "2", "3"}}};
  auto journal = must(Journal::create(directory.journal(), "sweep", job.batch(), {}));
  must(journal->commit(granted(at(1), {key(0)})));
  model::Turn turn = failed(at(2), key(0), 1);
  for (const auto& [task, verdict] :
       {std::pair(1U, model::Verdict::Skipped), std::pair(2U, model::Verdict::NotNeeded)}) {
    turn.decisions.front().changes.emplace_back(
        model::TaskChanged{.key = key(task, 0), .verdict = verdict, .message = "so"});
  }
  must(journal->commit(turn));
  JournalReader reader = must(JournalReader::open(directory.journal()));
  const GroupRow group = must(reader.groups()).at(0);
  EXPECT_EQ(
      std::tuple(group.tasks, group.failed, group.skipped, group.not_needed, group.not_selected),
      std::tuple(3, 1, 1, 1, 0));
}

TEST(JournalReader, FiltersTasks) {
  const JournalDirectory directory;
  const TestJob job{{.name = "a", .ids = {"1", "2", "3"}}, {.name = "b", .ids = {"1", "2"}}};
  auto journal = must(Journal::create(directory.journal(), "sweep", job.batch(), {}));
  must(journal->commit(granted(at(1), {key(4), key(2), key(1), key(0)})));
  must(journal->commit(failed(at(2), key(4), 1) + failed(at(3), key(1), 2)));
  JournalReader reader = must(JournalReader::open(directory.journal()));
  EXPECT_THAT(ids(all_tasks(reader)), ElementsAre("a/1", "a/2", "a/3", "b/1", "b/2"));
  EXPECT_THAT(ids(all_tasks(reader, {.running = true})), ElementsAre("a/1", "a/3"));
  EXPECT_THAT(ids(all_tasks(reader, {.failed = true})), ElementsAre("a/2", "b/2"));
  EXPECT_THAT(ids(all_tasks(reader, {.group = model::GroupIndex{1}})), ElementsAre("b/1", "b/2"));
  EXPECT_THAT(ids(all_tasks(reader, {.group = model::GroupIndex{1}, .failed = true})),
              ElementsAre("b/2"));
  EXPECT_THAT(ids(all_tasks(reader, {.running = true, .at_most = 1})), ElementsAre("a/1"));
  int seen = 0;
  must(reader.tasks({}, [&seen](const TaskRow&) { return ++seen < 2; }));
  EXPECT_EQ(seen, 2);
}

TEST(JournalReader, FindsTasksByIdAndByGroupAndId) {
  const JournalDirectory directory;
  const TestJob job{{.name = "a", .ids = {"x", "y"}}, {.name = "b", .ids = {"x", "a/x"}}};
  must(Journal::create(directory.journal(), "sweep", job.batch(), {}));
  JournalReader reader = must(JournalReader::open(directory.journal()));
  EXPECT_EQ(must(reader.find("b", "x"))->index, model::TaskIndex{2});
  EXPECT_EQ(must(reader.find("a", "z")), std::nullopt);
  EXPECT_THAT(ids(must(reader.look_up("y")).found), ElementsAre("a/y"));
  EXPECT_THAT(ids(must(reader.look_up("x")).found), ElementsAre("a/x", "b/x"));
  EXPECT_THAT(ids(must(reader.look_up("b/x")).found), ElementsAre("b/x"));
  EXPECT_THAT(ids(must(reader.look_up("a/x")).found), ElementsAre("a/x", "b/a/x"));
  EXPECT_THAT(must(reader.look_up("x")).near, IsEmpty());
}

TEST(JournalReader, FindsEachOfVeryManyTasksByItsNumberAtTheSameCost) {
  constexpr int kTasks = 20'000;
  const JournalDirectory directory;
  const TestJob job{numbered(kTasks)};
  must(Journal::create(directory.journal(), "sweep", job.batch(), {}));
  JournalReader reader = must(JournalReader::open(directory.journal()));
  for (std::uint32_t task = 0; task < kTasks; ++task) {
    ASSERT_EQ(must(reader.find(model::TaskIndex{task}))->id, std::to_string(task));
  }
  EXPECT_EQ(must(reader.find(model::TaskIndex{kTasks})), std::nullopt);
}

TEST(JournalReader, FindsTheResultOfEachOfVeryManyTasksByItsPlaceAtTheSameCost) {
  constexpr int kTasks = 20'000;
  const JournalDirectory directory;
  {
    const TestJob job{numbered(kTasks)};
    const auto journal = must(Journal::create(directory.journal(), "sweep", job.batch(), {}));
    must(journal->commit(granted(at(1), {key(7)}) + finished(at(2), key(7), "[7]")));
    must(journal->close(at(3), "ended"));
  }
  // A task has the number that it had when it was added, and the place that it has now.
  TestGroup edited = numbered(kTasks);
  edited.ids.insert(edited.ids.begin(), "new");
  const TestJob job{edited};
  const Journal::Resumed resumed = must(Journal::resume(directory.journal(), {job.batch()}, {}));
  JournalReader reader = must(JournalReader::open(directory.journal()));
  for (std::uint32_t place = 0; place <= kTasks; ++place) {
    ASSERT_EQ(must(reader.find_result(1, {place})), place == 8 ? "[7]" : "");
  }
  EXPECT_EQ(must(reader.find_result(1, {kTasks + 1})), std::nullopt);
  EXPECT_EQ(must(reader.find_result(2, {0})), std::nullopt);
}

TEST(JournalReader, NamesTheNearestWhenThereIsNone) {
  const JournalDirectory directory;
  const TestJob job{{.name = "train", .ids = {"lr=0.1,seed=0", "lr=0.1,seed=1", "lr=0.2,seed=0"}},
                    {.name = "test", .ids = {"all", "lr=0.1,seed=0"}}};
  must(Journal::create(directory.journal(), "sweep", job.batch(), {}));
  JournalReader reader = must(JournalReader::open(directory.journal()));
  EXPECT_THAT(must(reader.look_up("lr=0.1,sed=1")).near,
              ElementsAre("lr=0.1,seed=1", "lr=0.1,seed=0", "lr=0.2,seed=0"));
  EXPECT_THAT(must(reader.look_up("tets/all")).near, ElementsAre("test/all"));
  EXPECT_THAT(must(reader.look_up("lr=0.2")).near, ElementsAre("lr=0.2,seed=0"));
  EXPECT_THAT(must(reader.look_up("something else")).near, IsEmpty());
  EXPECT_THAT(must(reader.look_up("something else")).found, IsEmpty());
}

TEST(JournalReader, ComparesOnlyBeginningsAmongVeryManyTasks) {
  const JournalDirectory directory;
  const TestJob job{numbered(6'000)};
  must(Journal::create(directory.journal(), "sweep", job.batch(), {}));
  JournalReader reader = must(JournalReader::open(directory.journal()));
  EXPECT_THAT(must(reader.look_up("train/599")).found.size(), 1U);
  EXPECT_THAT(must(reader.look_up("train/5990x")).near, IsEmpty());
  EXPECT_THAT(must(reader.look_up("trai")).near, IsEmpty());
  EXPECT_THAT(must(reader.look_up("train/")).near, ElementsAre("train/0", "train/1", "train/2"));
}

TEST(JournalReader, ReadsNumbersThatNobodyWroteAsSomething) {
  const JournalDirectory directory;
  const TestJob job{numbered(1)};
  must(Journal::create(directory.journal(), "sweep", job.batch(), {}));
  must(must(Database::open(directory.journal(), Database::Access::Write))
           .run("INSERT INTO ended VALUES (0, 99, -4, 7, 1, 88, 0, 0, 0, 0, 0, 0, '', '', '', 0, "
                "0, NULL, NULL, '', 0, 0, 0, 0, 0, '', 55, 66, 0); "
                "UPDATE groups SET phase = 77; UPDATE tasks SET matrix = '{broken'"));
  JournalReader reader = must(JournalReader::open(directory.journal()));
  const TaskRow row = all_tasks(reader).at(0);
  EXPECT_EQ(row.standing.status, Status::Unknown);
  EXPECT_EQ(row.standing.verdict, model::Verdict::None);
  EXPECT_EQ(row.standing.failure, model::Failure::None);
  EXPECT_THAT(row.matrix, IsEmpty());
  EXPECT_EQ(row.code, "");
  EXPECT_EQ(row.machine, "");
  EXPECT_EQ(must(reader.groups()).at(0).phase, model::GroupPhase::Stopped);
}

TEST(JournalReader, ReadsACrashWithItsSignal) {
  const JournalDirectory directory;
  const TestJob job{numbered(1)};
  const auto journal = must(Journal::create(directory.journal(), "sweep", job.batch(), {}));
  model::Turn crash = failed(at(5000), key(0), model::kSignalCode + 11);
  std::get<model::TaskChanged>(crash.decisions[0].changes[0]).failure = model::Failure::Crashed;
  must(journal->commit(granted(at(1000), {key(0)}) + started(at(1500), key(0), 7) + crash));
  JournalReader reader = must(JournalReader::open(directory.journal()));
  EXPECT_EQ(model::word_for(all_tasks(reader).at(0).standing), "SIGSEGV");
  Database database = must(Database::open(directory.journal(), Database::Access::Read));
  EXPECT_EQ(must(database.text("SELECT failure FROM task_list")), "CRASHED");
}

TEST(JournalReader, GivesPeopleViewsToQuery) {
  const JournalDirectory directory;
  const TestJob job{{.name = "a", .ids = {"x", "y", "z"}}};
  auto journal = must(Journal::create(directory.journal(), "sweep", job.batch(), {}));
  must(journal->commit(granted(at(1000), {key(0), key(1)}) + started(at(1500), key(0), 7) +
                       finished(at(4000), key(0), R"({"accuracy":0.9})") +
                       failed(at(5000), key(1), 3)));
  Database database = must(Database::open(directory.journal(), Database::Access::Read));
  EXPECT_EQ(must(database.text("SELECT group_concat(id || ' ' || state || ' ' || failure, '; ') "
                               "FROM task_list")),
            "x FINISHED ; y FAILED EXIT 3; z WAITING ");
  EXPECT_EQ(must(database.text("SELECT \"group\" || ' ' || (ended_s - started_s) || ' ' || "
                               "json_extract(result, '$.accuracy') || ' ' || "
                               "json_extract(matrix, '$.lr') FROM task_list WHERE id = 'x'")),
            "a 2.5 0.9 1e-3");
  EXPECT_EQ(must(database.text("SELECT name || ' ' || phase || ' ' || waiting || ' ' || finished "
                               "|| ' ' || failed FROM group_list")),
            "a BLOCKED 1 1 1");
}

}  // namespace
}  // namespace trainyard::journal
