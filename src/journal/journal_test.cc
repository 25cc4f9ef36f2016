// Turns that are written into a journal can be read from it, and whole turns only.
#include "journal/journal.h"

#include <algorithm>
#include <filesystem>
#include <fstream>

#include <unistd.h>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/bytes.h"
#include "journal/reader.h"
#include "journal/sqlite.h"
#include "journal/test_run.h"
#include "model/command.h"
#include "model/event.h"
#include "model/status.h"
#include "model/terms.h"
#include "model/waiting.h"

namespace trainyard::journal {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

TEST(Journal, HoldsTheWholePlanFromTheStart) {
  const JournalDirectory directory;
  const TestJob job{{.name = "fetch", .ids = {"data"}, .memory = gb(1)},
                    {.name = "train", .ids = {"lr=1e-3,\"é\"/\n", "b'c"}, .memory = gb(2)}};
  auto journal = must(Journal::create(directory.journal(), "sweep", job.batch(),
                                      {.command_line = "trainyard run sweep.yaml",
                                       .version = "0.1.0",
                                       .host = "here",
                                       .run_directory = "/job/runs/sweep",
                                       .yard_pid = 10,
                                       .socket_path = "/run/s",
                                       .started_unix_ms = 1'700'000'000'000,
                                       .job_file = "/job/sweep.yaml",
                                       .job_text = "name: sweep\n",
                                       .config_file = "/job/config.yaml",
                                       .settings = {"debug=true", "workdir=\"a\nb\""},
                                       .configuration = "debug: false\n",
                                       .git_commit = "abc",
                                       .git_diff = "+x"}));
  JournalReader reader = must(JournalReader::open(directory.journal()));
  EXPECT_EQ(must(reader.job_name()), "sweep");

  const std::vector<ExecutionRow> executions = must(reader.executions());
  ASSERT_EQ(executions.size(), 1U);
  EXPECT_EQ(executions[0].number, 1);
  EXPECT_EQ(executions[0].command_line, "trainyard run sweep.yaml");
  EXPECT_EQ(executions[0].version, "0.1.0");
  EXPECT_EQ(executions[0].host, "here");
  EXPECT_EQ(executions[0].run_directory, "/job/runs/sweep");
  EXPECT_EQ(executions[0].yard_pid, 10);
  EXPECT_EQ(executions[0].socket_path, "/run/s");
  EXPECT_EQ(executions[0].job_file, "/job/sweep.yaml");
  EXPECT_EQ(executions[0].git_commit, "abc");
  EXPECT_EQ(executions[0].config_file, "/job/config.yaml");
  EXPECT_THAT(executions[0].settings, ElementsAre("debug=true", "workdir=\"a\nb\""));
  EXPECT_EQ(executions[0].started_unix_ms, 1'700'000'000'000);
  EXPECT_EQ(executions[0].started, at(0));
  EXPECT_EQ(executions[0].ended, std::nullopt);

  const std::vector<GroupRow> groups = must(reader.groups());
  ASSERT_EQ(groups.size(), 2U);
  EXPECT_EQ(groups[0].name, "fetch");
  EXPECT_EQ(groups[0].tasks, 1);
  EXPECT_EQ(groups[1].name, "train");
  EXPECT_EQ(groups[1].index, model::GroupIndex{1});
  EXPECT_EQ(groups[1].tasks, 2);
  EXPECT_EQ(groups[1].waiting, 2);

  const std::vector<TaskRow> tasks = all_tasks(reader);
  ASSERT_EQ(tasks.size(), 3U);
  EXPECT_EQ(tasks[1].index, model::TaskIndex{1});
  EXPECT_EQ(tasks[1].group, model::GroupIndex{1});
  EXPECT_EQ(tasks[1].group_name, "train");
  EXPECT_EQ(tasks[1].id, "lr=1e-3,\"é\"/\n");
  EXPECT_EQ(model::word_for(tasks[1].standing), "WAITING");
  EXPECT_EQ(tasks[1].attempt, 0U);
  EXPECT_EQ(tasks[1].started, std::nullopt);
  EXPECT_EQ(tasks[1].memory_requested, gb(2));
  EXPECT_EQ(tasks[1].cpus_requested, model::cpus(1));
  EXPECT_THAT(tasks[1].matrix, ElementsAre(Pair("id", "lr=1e-3,\"é\"/\n"), Pair("lr", "1e-3")));
}

TEST(Journal, KnowsWhatTheJobHasForATaskThatARetryGaveMore) {
  const JournalDirectory directory;
  TestJob job{numbered(1)};
  model::Terms& terms = job.plan.shapes.front().terms;
  terms.request.gpus = 1;
  terms.request.gpu_memory = gb(3);
  terms.time_limit = Duration{5'000};
  auto journal = must(Journal::create(directory.journal(), "sweep", job.batch(), {}));
  must(journal->commit(granted(at(10), {key(0)})));
  JournalReader reader = must(JournalReader::open(directory.journal()));
  const TaskRow row = all_tasks(reader).at(0);
  EXPECT_EQ(row.memory_requested, mb(600));
  EXPECT_EQ(row.memory_planned, mb(500));
  EXPECT_EQ(row.gpu_memory_planned, gb(3));
  EXPECT_EQ(row.time_limit, Duration{5'000});
}

TEST(Journal, KnowsHowLongBeforeTermATaskGetsItsSignal) {
  const JournalDirectory directory;
  TestJob job{numbered(1)};
  job.plan.shapes.front().terms.early_signal = {.number = 10, .before = Duration{40'000}};
  const auto journal = must(Journal::create(directory.journal(), "sweep", job.batch(), {}));
  JournalReader reader = must(JournalReader::open(directory.journal()));
  EXPECT_EQ(all_tasks(reader).at(0).signal_before_term, Duration{40'000});
}

TEST(Journal, KnowsTheLastTimeLimitThatARetryGaveATask) {
  const JournalDirectory directory;
  const TestJob job{numbered(2)};
  auto journal = must(Journal::create(directory.journal(), "sweep", job.batch(), {}));
  std::int64_t now = 10;
  const auto retry = [&](std::uint32_t task, Duration limit) {
    const model::RetryAsked asked{.task = {task}, .time_limit = limit};
    must(journal->commit(turn_of({.at = at(++now), .what = asked})));
  };
  retry(0, Duration{5'000});
  retry(0, Duration{9'000});
  retry(0, Duration{0});
  retry(1, Duration{0});
  JournalReader reader = must(JournalReader::open(directory.journal()));
  const std::vector<TaskRow> tasks = all_tasks(reader);
  EXPECT_EQ(tasks.at(0).retry_time_limit, Duration{9'000});
  EXPECT_EQ(tasks.at(1).retry_time_limit, Duration{0});
}

TEST(Journal, FollowsATaskThroughItsLife) {
  const JournalDirectory directory;
  const TestJob job{numbered(2)};
  auto journal = must(Journal::create(directory.journal(), "sweep", job.batch(), {}));
  JournalReader reader = must(JournalReader::open(directory.journal()));
  const auto task = [&reader] {
    must(reader.refresh());
    return all_tasks(reader).at(0);
  };

  must(journal->commit(granted(at(10), {key(0)})));
  TaskRow row = task();
  EXPECT_EQ(row.standing.status, Status::Available);
  EXPECT_EQ(row.attempt, 1U);
  EXPECT_EQ(row.pid, 0);
  EXPECT_EQ(row.memory_requested, mb(600));

  must(journal->commit(started(at(20), key(0), 77)));
  must(journal->commit(
      turn_of({.at = at(30),
               .what = model::Sampled{.memory_available = gb(7),
                                      .tasks = {{.key = key(0), .memory = mb(250)}}}})));
  row = task();
  EXPECT_EQ(row.standing.status, Status::Training);
  EXPECT_EQ(row.pid, 77);
  EXPECT_EQ(row.started, at(20));
  EXPECT_EQ(row.memory_now, mb(250));
  EXPECT_EQ(row.memory_peak, mb(250));
  EXPECT_EQ(last_sample(reader).memory_of_tasks, mb(250));

  must(journal->commit(finished(at(40), key(0), R"({"accuracy":0.98})")));
  row = task();
  EXPECT_EQ(model::word_for(row.standing), "FINISHED");
  EXPECT_EQ(row.standing.status, Status::Exited);
  EXPECT_EQ(row.pid, 0);
  EXPECT_EQ(row.started, at(20));
  EXPECT_EQ(row.ended, at(40));
  EXPECT_EQ(row.memory_requested, mb(600));
  EXPECT_EQ(row.memory_now, mb(0));
  EXPECT_EQ(row.memory_peak, mb(300));
  EXPECT_EQ(row.cpu_time, Duration(900));
  EXPECT_EQ(row.result, R"({"accuracy":0.98})");
  EXPECT_EQ(row.message, "");

  const std::vector<AttemptRow> attempts = must(reader.attempts({0}));
  ASSERT_EQ(attempts.size(), 1U);
  EXPECT_EQ(attempts[0].key, key(0, 1));
  EXPECT_EQ(attempts[0].started, at(20));
  EXPECT_EQ(attempts[0].ended, at(40));
  EXPECT_EQ(attempts[0].failure, model::Failure::None);
  EXPECT_EQ(model::word_for(all_tasks(reader).at(1).standing), "WAITING");
}

TEST(Journal, HasDurationsAsWhoeverWatchesSawThemAndNotAsTheYardHeard) {
  const JournalDirectory directory;
  const TestJob job{{.ids = {"a", "b"}}};
  auto journal = must(Journal::create(directory.journal(), "job", job.batch(), {}));
  must(journal->commit(granted(at(10), {key(0), key(1)})));
  // All news comes at 30 s. The other task has ended by then, at an unknown time.
  model::Turn turn = started(at(30'000), key(0), 100) + started(at(30'000), key(1), 101) +
                     finished(at(30'000), key(0), "{}") + finished(at(30'000), key(1), "{}");
  std::get<model::AttemptStarted>(turn.events.at(0).what).began = at(20);
  std::get<model::AttemptEnded>(turn.events.at(2).what).ended = at(4'020);
  must(journal->commit(turn));
  auto reader = must(JournalReader::open(directory.journal()));
  const std::vector<TaskRow> rows = all_tasks(reader);
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0].started, at(20));
  EXPECT_EQ(rows[0].ended, at(4'020));
  EXPECT_EQ(rows[0].times.train, Duration(4'000));
  EXPECT_EQ(rows[1].started, at(30'000));
  EXPECT_EQ(rows[1].ended, at(30'000));
  EXPECT_EQ(rows[1].times.train, Duration(0));
}

TEST(Journal, StretchesNoStageBeyondTheEndOfItsProcess) {
  const JournalDirectory directory;
  const TestJob job{{.ids = {"a"}}};
  auto journal = must(Journal::create(directory.journal(), "job", job.batch(), {}));
  must(journal->commit(granted(at(10), {key(0)}) + started(at(20), key(0), 100)));
  // The news of its training and of its end comes at 30 s; both happened at 4 s.
  const auto trained = [](Instant when) {
    return turn_of({.at = when, .what = model::StageReported{.key = key(0)}},
                   {.changes = {model::TaskChanged{.key = key(0), .status = Status::Finished}}});
  };
  model::Turn ended = finished(at(30'001), key(0), "{}");
  std::get<model::AttemptEnded>(ended.events.at(0).what).ended = at(4'020);
  ended.decisions.at(0).changes.erase(ended.decisions.at(0).changes.begin());
  must(journal->commit(trained(at(30'000)) + ended));
  auto reader = must(JournalReader::open(directory.journal()));
  const TaskRow row = all_tasks(reader).at(0);
  EXPECT_EQ(row.standing.verdict, model::Verdict::Finished);
  EXPECT_EQ(row.times.train, Duration(4'000));
}

TEST(Journal, KeepsEveryAttemptOfATaskThatIsRetried) {
  const JournalDirectory directory;
  const TestJob job{numbered(1)};
  auto journal = must(Journal::create(directory.journal(), "sweep", job.batch(), {}));
  JournalReader reader = must(JournalReader::open(directory.journal()));
  const model::TaskChanged interrupt{.key = key(0),
                                     .status = Status::Interrupt,
                                     .failure = model::Failure::OutOfMemory,
                                     .message = "killed by the kernel, out of memory"};
  const model::AttemptEnded killed{.key = key(0),
                                   .end = model::KilledBy{.signal = 9, .out_of_memory = true},
                                   .usage = {.memory_peak = mb(512)},
                                   .result = "{}",
                                   .warning = "odd"};
  must(journal->commit(granted(at(1), {key(0)}) + started(at(2), key(0), 77)));
  must(journal->commit(turn_of({.at = at(3), .what = killed}, {.changes = {interrupt}})));
  must(reader.refresh());
  EXPECT_THAT(words(all_tasks(reader, {.running = true})), ElementsAre("0 RETRYING"));
  EXPECT_EQ(must(reader.groups()).at(0).retrying, 1);
  EXPECT_EQ(all_tasks(reader)[0].message, "killed by the kernel, out of memory");
  EXPECT_EQ(all_tasks(reader)[0].warning, "odd");

  must(journal->commit(granted(at(4), {key(0, 2)})));
  must(journal->commit(started(at(5), key(0, 2), 78)));
  // Later events of the first attempt do not count.
  must(journal->commit(turn_of(
      {.at = at(6), .what = model::AttemptEnded{.key = key(0, 1), .end = model::ExitedWith{9}}})));
  must(reader.refresh());
  EXPECT_EQ(all_tasks(reader)[0].pid, 78);
  EXPECT_EQ(all_tasks(reader)[0].ended, std::nullopt);
  EXPECT_EQ(all_tasks(reader)[0].first_started, at(2));
  must(journal->commit(failed(at(7), key(0, 2), 3)));
  must(reader.refresh());
  const std::vector<AttemptRow> attempts = must(reader.attempts_of({0}));
  ASSERT_EQ(attempts.size(), 2U);
  EXPECT_EQ(attempts[0].key, key(0, 1));
  EXPECT_EQ(attempts[0].started, at(2));
  EXPECT_EQ(attempts[0].ended, at(3));
  EXPECT_EQ(attempts[0].failure, model::Failure::OutOfMemory);
  EXPECT_EQ(attempts[0].memory_peak, mb(512));
  EXPECT_EQ(attempts[0].message, "killed by the kernel, out of memory");
  EXPECT_EQ(attempts[1].key, key(0, 2));
  EXPECT_EQ(attempts[1].ended, at(7));
  EXPECT_EQ(attempts[1].failure, model::Failure::Exit);
  EXPECT_EQ(attempts[1].exit_code, 3);
  const TaskRow row = all_tasks(reader, {.failed = true}).at(0);
  EXPECT_EQ(model::word_for(row.standing), "EXIT 3");
  EXPECT_EQ(row.first_started, at(2));
  EXPECT_EQ(row.started, at(5));
  EXPECT_EQ(row.earlier_attempts, at(3) - at(2)) << "without the time before the retry";
  EXPECT_EQ(row.attempt, 2U);
  EXPECT_EQ(row.warning, "");
  EXPECT_THAT(all_tasks(reader, {.running = true}), IsEmpty());
}

TEST(Journal, KeepsARetryThatIsDecidedInOneTurn) {
  const JournalDirectory directory;
  const TestJob job{numbered(1)};
  auto journal = must(Journal::create(directory.journal(), "sweep", job.batch(), {}));
  must(journal->commit(granted(at(1), {key(0)})));
  const model::Turn turn = turn_of(
      {.at = at(2),
       .what = model::AttemptEnded{.key = key(0), .end = model::KilledBy{.signal = 9}}},
      {.changes = {model::TaskChanged{.key = key(0),
                                      .status = Status::Interrupt,
                                      .failure = model::Failure::OutOfMemory},
                   // Granted before its new attempt has a number: the old one's fate stays.
                   model::TaskChanged{.key = key(0), .status = Status::Available}},
       .commands = {model::StartAttempt{.key = key(0, 2), .promise = {.memory = mb(750)}}}});
  must(journal->commit(turn));
  JournalReader reader = must(JournalReader::open(directory.journal()));
  const std::vector<AttemptRow> attempts = must(reader.attempts({0}));
  ASSERT_EQ(attempts.size(), 2U);
  EXPECT_EQ(attempts[0].failure, model::Failure::OutOfMemory);
  EXPECT_EQ(attempts[0].ended, at(2));
  EXPECT_EQ(attempts[1].failure, model::Failure::None);
  EXPECT_EQ(attempts[1].ended, std::nullopt);
  const TaskRow row = all_tasks(reader).at(0);
  EXPECT_EQ(row.standing.status, Status::Available);
  EXPECT_EQ(row.memory_requested, mb(750));
  EXPECT_EQ(row.attempt, 2U);
}

TEST(Journal, KeepsHowTheLastAttemptEndedOfATaskThatIsKilledBeforeItsRetry) {
  const JournalDirectory directory;
  const TestJob job{numbered(1)};
  auto journal = must(Journal::create(directory.journal(), "sweep", job.batch(), {}));
  must(journal->commit(granted(at(1), {key(0)}) + failed(at(2), key(0), 3)));
  JournalReader reader = must(JournalReader::open(directory.journal()));
  const std::string end = all_tasks(reader).at(0).message;
  for (const int second : {3, 5}) {
    must(journal->commit(turn_of({.at = at(second), .what = model::RetryAsked{.task = {0}}},
                                 {.changes = {model::TaskChanged{.key = key(0, 0)}}})));
    must(journal->commit(
        turn_of({.at = at(second + 1), .what = model::KillAsked{.task = {0}, .request = 1}},
                {.changes = {model::TaskChanged{.key = key(0, 0),
                                                .status = Status::Exception,
                                                .verdict = model::Verdict::Failed,
                                                .failure = model::Failure::Killed,
                                                .message = "killed"}}})));
    must(reader.refresh());
    const TaskRow row = all_tasks(reader).at(0);
    EXPECT_EQ(row.standing.verdict, model::Verdict::Failed);
    EXPECT_EQ(row.attempt, 1U);
    EXPECT_EQ(row.message, "killed; attempt 1: " + end) << "once, however many times it is killed";
    EXPECT_EQ(row.ended, at(2)) << "it has not run since";
  }
}

TEST(Journal, TellsOfATaskOnHoldThatThisIsWhyItWaits) {
  const JournalDirectory directory;
  const TestJob job({{.name = "a", .ids = {"1", "2", "3"}, .memory = gb(6)}});
  auto journal = must(Journal::create(directory.journal(), "sweep", job.batch(), {}));
  JournalReader reader = must(JournalReader::open(directory.journal()));
  const auto waiting_after = [&](int second, std::vector<model::Change> changes) {
    must(journal->commit(
        turn_of({.at = at(second), .what = model::Sampled{}}, {.changes = std::move(changes)})));
    must(reader.refresh());
    std::vector<std::string> lines;
    for (const WaitingReason& row : must(reader.waiting())) {
      lines.push_back(fmt::format("{} {}: {}", row.tasks, model::to_text(row.cause), row.reason));
    }
    return lines;
  };
  const std::string held = "held: on hold until 'trainyard release'";
  const model::Reason queued{.cause = model::Cause::Queued, .needs = {}};
  EXPECT_THAT(waiting_after(1, {model::ReasonChanged{.shape = {0}, .reason = queued},
                                model::SaidOfTask{.task = {1}, .on_hold = true, .priority = {}}}),
              ElementsAre("2 queued: older tasks are considered first", "1 " + held));
  EXPECT_THAT(waiting_after(2, {model::SaidOfTask{.task = {0}, .on_hold = true, .priority = {}},
                                model::SaidOfTask{.task = {2}, .on_hold = true, .priority = {}}}),
              ElementsAre("3 " + held));
  EXPECT_THAT(waiting_after(3, {model::SaidOfTask{.task = {1}, .on_hold = false, .priority = 3}}),
              ElementsAre("1 queued: older tasks are considered first", "2 " + held));
  EXPECT_THAT(waiting_after(4, {model::TaskChanged{.key = key(2, 0),
                                                   .verdict = model::Verdict::Skipped,
                                                   .message = "killed on request"}}),
              ElementsAre("1 queued: older tasks are considered first", "1 " + held));
  // The scheduler has this reason where the others are delayed.
  const model::Reason all_held{.cause = model::Cause::Held, .needs = {}};
  EXPECT_THAT(waiting_after(5, {model::ReasonChanged{.shape = {0}, .reason = all_held}}),
              ElementsAre("1 " + held));
}

TEST(Journal, TellsWhyTasksWaitAndHowGroupsStand) {
  const JournalDirectory directory;
  const TestJob job(
      {{.name = "a", .ids = {"1", "2"}, .memory = gb(6)}, {.name = "b", .ids = {"3"}}});
  auto journal = must(Journal::create(directory.journal(), "sweep", job.batch(), {}));
  JournalReader reader = must(JournalReader::open(directory.journal()));
  must(journal->commit(turn_of(
      {.at = at(1), .what = model::Sampled{}},
      {.changes = {
           model::ReasonChanged{
               .shape = {0}, .reason = {.cause = model::Cause::Memory, .needs = {.memory = gb(6)}}},
           model::GroupChanged{.group = {0}, .phase = model::GroupPhase::Running},
           model::GroupChanged{
               .group = {1}, .phase = model::GroupPhase::Skipped, .message = "a failed"},
           model::TaskChanged{.key = key(2, 0),
                              .verdict = model::Verdict::Skipped,
                              .message = "its group was skipped"},
           model::HeadroomSeen{{.memory_free = gb(3), .memory_held = gb(2), .holders = 1}}}})));
  must(reader.refresh());
  const std::vector<WaitingReason> waiting = must(reader.waiting());
  ASSERT_EQ(waiting.size(), 1U);
  EXPECT_EQ(waiting[0].group_name, "a");
  EXPECT_EQ(waiting[0].tasks, 2);
  EXPECT_EQ(waiting[0].memory, gb(6));
  EXPECT_EQ(waiting[0].cpus, model::cpus(1));
  EXPECT_EQ(waiting[0].cause, model::Cause::Memory);
  EXPECT_EQ(waiting[0].reason,
            "needs 6 GB of memory, 3 GB available, 2 GB reserved or used by 1 task");
  const std::vector<GroupRow> groups = must(reader.groups());
  EXPECT_EQ(groups[0].phase, model::GroupPhase::Running);
  EXPECT_EQ(groups[1].phase, model::GroupPhase::Skipped);
  EXPECT_EQ(groups[1].message, "a failed");
  EXPECT_EQ(groups[1].skipped, 1);
  EXPECT_EQ(groups[1].waiting, 0);
  const TaskRow skipped = all_tasks(reader, {.group = model::GroupIndex{1}}).at(0);
  EXPECT_EQ(model::word_for(skipped.standing), "SKIPPED");
  EXPECT_EQ(skipped.message, "its group was skipped");
  EXPECT_EQ(skipped.attempt, 0U);
  EXPECT_THAT(must(reader.attempts({2})), IsEmpty());

  must(
      journal->commit(turn_of({.at = at(2), .what = model::Sampled{}},
                              {.changes = {model::HeadroomSeen{
                                   {.memory_free = gb(1), .memory_held = gb(4), .holders = 2}}}})));
  must(reader.refresh());
  EXPECT_EQ(must(reader.waiting())[0].reason,
            "needs 6 GB of memory, 1 GB available, 4 GB reserved or used by 2 tasks")
      << "the numbers are those of the last reading";

  must(journal->commit(turn_of({.at = at(3), .what = model::TimePassed{}},
                               {.changes = {model::ReasonChanged{.shape = {0}, .reason = {}}}})));
  must(reader.refresh());
  EXPECT_THAT(must(reader.waiting()), IsEmpty());
}

TEST(Journal, KeepsWhatATaskWasKeptToOfItsGpus) {
  const JournalDirectory directory;
  const TestJob job{numbered(1)};
  auto journal = must(Journal::create(directory.journal(), "sweep", job.batch(), {}));
  must(journal->commit(turn_of(
      {.at = at(1), .what = model::Sampled{}},
      {.changes = {model::TaskChanged{.key = key(0), .status = Status::Available}},
       .commands = {model::StartAttempt{.key = key(0), .promise = {}, .gpu_memory_max = gb(9)}}})));
  must(journal->commit(
      turn_of({.at = at(2),
               .what = model::AttemptStarted{.key = key(0), .pid = 7, .capped_by = "torch 2.10"}},
              {})));
  JournalReader reader = must(JournalReader::open(directory.journal()));
  const auto row = [&reader] {
    must(reader.refresh());
    return all_tasks(reader).at(0);
  };
  EXPECT_EQ(row().gpu_memory_max, gb(9));
  EXPECT_EQ(row().capped_by, "torch 2.10");
  must(journal->commit(finished(at(3), key(0), "{}")));
  EXPECT_EQ(row().gpu_memory_max, gb(9)) << "when it has ended, too";
  EXPECT_EQ(row().capped_by, "torch 2.10");
}

TEST(Journal, TellsWhoIsTriedFirstAndHowLongItHasLived) {
  const JournalDirectory directory;
  const TestJob job{{.name = "a", .ids = {"lr=1", "lr=2"}}};
  auto journal = must(Journal::create(directory.journal(), "sweep", job.batch(), {}));
  JournalReader reader = must(JournalReader::open(directory.journal()));
  const auto waits = [&](std::optional<Instant> since, Instant seen) {
    must(journal->commit(turn_of(
        {.at = seen, .what = model::Sampled{}},
        {.changes = {model::ReasonChanged{.shape = {0},
                                          .reason = {.cause = model::Cause::TriedFirst,
                                                     .needs = {},
                                                     .first = model::TaskIndex{1},
                                                     .first_since = since}},
                     model::HeadroomSeen{{.at = seen, .try_first_time = Duration{120'000}}}}})));
    must(reader.refresh());
    return must(reader.waiting()).at(0).reason;
  };
  EXPECT_EQ(waits({}, at(1'000)), "waits for lr=2, which runs first ('try-first')");
  EXPECT_EQ(waits(at(10'000), at(90'000)),
            "waits for lr=2, which runs first ('try-first'): 1m20s of 2m");
}

TEST(Journal, WritesDownEachEventOnceAndInOrder) {
  const JournalDirectory directory;
  const TestJob job{numbered(2)};
  auto journal = must(Journal::create(directory.journal(), "sweep", job.batch(), {}));
  must(journal->commit(granted(at(1), {key(0)}) + started(at(2), key(0), 77)));
  must(journal->commit(turn_of({.at = at(3), .what = model::Sampled{}})));
  must(journal->commit(turn_of({.at = at(4), .what = model::TimePassed{}})));
  must(journal->commit(turn_of({.at = at(5), .what = model::KillAsked{.task = {1}, .request = 4}},
                               {.commands = {model::Answer{.request = 4, .done = false}}})));
  must(journal->commit(finished(at(6), key(0), "{}")));
  must(journal->close(at(7), "finished"));
  Database database = must(Database::open(directory.journal(), Database::Access::Read));
  EXPECT_EQ(
      must(database.text("SELECT group_concat(seq || ':' || execution || ':' || at_ms || ':' "
                         "|| kind || ':' || ifnull(task, '-') || ':' || ifnull(attempt, '-'), "
                         "' ') FROM events")),
      "1:1:1:sampled:-:- 2:1:2:started:0:1 3:1:5:kill:1:- 4:1:6:ended:0:1 5:1:7:closed:-:-");
  EXPECT_EQ(must(database.number("SELECT min(json_valid(data)) FROM events")), 1);
  JournalReader reader = must(JournalReader::open(directory.journal()));
  EXPECT_EQ(must(reader.executions()).at(0).ended, at(7));
  EXPECT_EQ(must(reader.executions()).at(0).how, "finished");
}

TEST(Journal, SaysThatAnExecutionStopsBeforeItHasEnded) {
  const JournalDirectory directory;
  const TestJob job{{.name = "a", .ids = {"x"}}};
  const auto journal = must(Journal::create(directory.journal(), "sweep", job.batch(), {}));
  must(journal->commit(turn_of({.at = at(5), .what = model::InterruptAsked{}})));
  JournalReader reader = must(JournalReader::open(directory.journal()));
  const ExecutionRow execution = must(reader.executions()).at(0);
  EXPECT_EQ(execution.how, "interrupted");
  EXPECT_EQ(execution.ended, std::nullopt);
}

TEST(Journal, LeavesNothingOfATurnThatFailedAndTakesItLaterWithMore) {
  const JournalDirectory directory;
  const TestJob job{numbered(3)};
  auto journal = must(Journal::create(directory.journal(), "sweep", job.batch(), {}));
  must(journal->commit(granted(at(1), {key(0), key(1)})));
  must(journal->commit(turn_of({.at = at(2), .what = model::Sampled{.memory_available = gb(9)}})));
  Database other = must(Database::open(directory.journal(), Database::Access::Write));
  must(
      other.run("CREATE TRIGGER broken BEFORE INSERT ON ended WHEN NEW.task = 1 "
                "BEGIN SELECT raise(ABORT, 'made to fail'); END"));

  model::Turn turn = finished(at(3), key(0), "{}") +
                     turn_of({.at = at(4), .what = model::Sampled{.memory_available = gb(1)}}) +
                     granted(at(4), {key(2)}) + failed(at(5), key(1), 1);
  const Result<void> refused = journal->commit(turn);
  ASSERT_FALSE(refused.has_value());
  EXPECT_THAT(refused.error().message, HasSubstr("made to fail"));
  JournalReader reader = must(JournalReader::open(directory.journal()));
  EXPECT_THAT(words(all_tasks(reader)), ElementsAre("0 RUNNING", "1 RUNNING", "2 WAITING"));
  EXPECT_EQ(last_sample(reader).memory_available, gb(9));
  EXPECT_EQ(must(reader.groups()).at(0).running, 2);
  EXPECT_EQ(must(other.number("SELECT count(*) FROM events")), 1);

  must(other.run("DROP TRIGGER broken"));
  must(journal->commit(turn + failed(at(6), key(2), 2)));
  must(reader.refresh());
  EXPECT_THAT(words(all_tasks(reader)), ElementsAre("0 FINISHED", "1 EXIT 1", "2 EXIT 2"));
  const GroupRow group = must(reader.groups()).at(0);
  EXPECT_EQ(group.finished, 1);
  EXPECT_EQ(group.failed, 2);
  EXPECT_EQ(group.running, 0);
  EXPECT_EQ(group.waiting, 0);
  EXPECT_EQ(must(other.number("SELECT count(*) FROM events")), 5);
}

TEST(Journal, TakesAResultOfAMebibyte) {
  const JournalDirectory directory;
  const TestJob job{numbered(1)};
  auto journal = must(Journal::create(directory.journal(), "sweep", job.batch(), {}));
  const std::string result = R"({"x":")" + std::string((1U << 20U) - 8, 'y') + R"("})";
  must(journal->commit(granted(at(1), {key(0)}) + finished(at(2), key(0), result)));
  JournalReader reader = must(JournalReader::open(directory.journal()));
  EXPECT_EQ(all_tasks(reader).at(0).result, result);
}

TEST(Journal, KeepsItsLogShortBesideAReaderThatRests) {
  const JournalDirectory directory;
  const TestJob job{numbered(1)};
  auto journal = must(Journal::create(directory.journal(), "sweep", job.batch(), {}));
  JournalReader reader = must(JournalReader::open(directory.journal()));
  std::uintmax_t longest = 0;
  for (int i = 0; i < 30'000; ++i) {
    const model::Turn turn = turn_of({.at = at(i), .what = model::KillAsked{.task = {0}}});
    must(journal->commit(turn));
    if (i % 100 != 0) continue;
    must(reader.refresh());
    must(reader.rest());
    longest = std::max(longest, std::filesystem::file_size(directory.journal() + "-wal"));
  }
  // 16,000 pages of a kibibyte, and what one turn may add.
  EXPECT_LT(longest, 18U << 20U);
  EXPECT_GT(longest, 4U << 20U);
}

TEST(Journal, LeavesOneFileWhenItIsClosed) {
  const JournalDirectory directory;
  const TestJob job{numbered(1)};
  auto journal = must(Journal::create(directory.journal(), "sweep", job.batch(), {}));
  must(journal->close(at(5), "interrupted"));
  EXPECT_FALSE(must(journal->put_back()));
  journal.reset();
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(directory.path())) {
    files.push_back(entry.path().filename().string());
  }
  EXPECT_THAT(files, ElementsAre("journal.db"));
}

TEST(Journal, IsPutBackWhateverATaskHasPutInItsPlace) {
  const JournalDirectory elsewhere;
  const TestJob job{numbered(2)};
  {
    auto other = must(Journal::create(elsewhere.journal(), "other", job.batch(), {}));
    must(other->commit(granted(at(1), {key(0), key(1)}) + finished(at(2), key(0), "") +
                       finished(at(3), key(1), "")));
    must(other->close(at(4), "ended"));
  }
  const auto remove_journal = [](const std::string& path) {
    for (const char* const end : Database::kFileEnds) std::filesystem::remove(path + end);
  };
  const std::vector<std::pair<std::string, std::function<void(const std::string&)>>> replacements{
      {"nothing", remove_journal},
      {"the journal of another run",
       [&](const std::string& path) {
         remove_journal(path);
         std::filesystem::copy_file(elsewhere.journal(), path);
       }},
      {"a link to it",
       [&](const std::string& path) {
         remove_journal(path);
         std::filesystem::create_symlink(elsewhere.journal(), path);
       }},
      {"an empty file",
       [&](const std::string& path) {
         remove_journal(path);
         std::ofstream(path).close();
       }},
      {"a directory",
       [&](const std::string& path) {
         remove_journal(path);
         std::filesystem::create_directories(path + "/full");
       }},
      {"a directory in place of the log",
       [](const std::string& path) {
         std::filesystem::remove(path + "-wal");
         std::filesystem::create_directories(path + "-wal/full");
       }},
      {"an emptied log",
       [](const std::string& path) { std::filesystem::resize_file(path + "-wal", 0); }},
      {"a second name",
       [](const std::string& path) { std::filesystem::create_hard_link(path, path + ".second"); }},
  };
  for (const auto& [name, replace] : replacements) {
    SCOPED_TRACE(name);
    const JournalDirectory directory;
    auto journal = must(Journal::create(directory.journal(), "sweep", job.batch(), {}));
    must(journal->commit(granted(at(1), {key(0), key(1)}) + failed(at(2), key(0), 5)));
    replace(directory.journal());
    must(journal->commit(failed(at(3), key(1), 7)));
    must(journal->close(at(4), "ended"));
    EXPECT_TRUE(must(journal->put_back()));
    journal.reset();
    JournalReader reader = must(JournalReader::open(directory.journal()));
    EXPECT_EQ(must(reader.job_name()), "sweep");
    EXPECT_THAT(words(all_tasks(reader)), ElementsAre("0 EXIT 5", "1 EXIT 7"));
    EXPECT_EQ(must(reader.executions()).at(0).how, "ended");
    EXPECT_EQ(std::filesystem::status(directory.journal()).permissions(),
              std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
  }
  JournalReader other = must(JournalReader::open(elsewhere.journal()));
  EXPECT_THAT(words(all_tasks(other)), ElementsAre("0 FINISHED", "1 FINISHED"));
}

TEST(Journal, GivesTheAccessToItsDirectoryBackBeforeItIsPutBack) {
  const JournalDirectory directory;
  const TestJob job{numbered(1)};
  auto journal = must(Journal::create(directory.journal(), "sweep", job.batch(), {}));
  const std::string around = std::filesystem::path(directory.journal()).parent_path().string();
  std::filesystem::permissions(around, std::filesystem::perms::owner_read);
  EXPECT_FALSE(must(journal->put_back()));
  EXPECT_EQ(std::filesystem::status(around).permissions(), std::filesystem::perms::owner_all);
}

/// Makes the directory of a run that has ended.
std::unique_ptr<Journal> journal_of_ended_run(const std::string& run) {
  const TestJob job{numbered(1)};
  std::filesystem::create_directory(run);
  auto journal = must(Journal::create(run + "/journal.db", "sweep", job.batch(), {}));
  must(journal->close(at(5), "ended"));
  return journal;
}

TEST(Journal, WritesNothingToThePathFromWhichItsDirectoryWasMoved) {
  const std::vector<std::pair<std::string, std::function<void(const JournalDirectory&)>>>
      replacements{
          {"nothing", [](const JournalDirectory&) {}},
          {"an empty directory",
           [](const JournalDirectory& place) {
             std::filesystem::create_directory(place.path() / "run");
           }},
          {"a file",
           [](const JournalDirectory& place) { std::ofstream(place.path() / "run") << "x"; }},
          {"a link to it",
           [](const JournalDirectory& place) {
             std::filesystem::create_symlink(place.path() / "other", place.path() / "run");
           }},
          {"a link to itself",
           [](const JournalDirectory& place) {
             std::filesystem::create_symlink("run", place.path() / "run");
           }},
          {"the run itself",
           [](const JournalDirectory& place) {
             std::filesystem::rename(place.path() / "other", place.path() / "run");
             std::filesystem::create_symlink(place.path() / "run", place.path() / "other");
           }},
      };
  const TestJob job{numbered(1)};
  for (const auto& [name, replace] : replacements) {
    SCOPED_TRACE(name);
    const JournalDirectory place;
    const std::string run = place.path() / "run";
    std::filesystem::create_directory(place.path() / "other");
    const std::string its = place.path() / "other/journal.db";
    must(must(Journal::create(its, "other", job.batch(), {}))->close(at(1), "ended"));
    auto journal = journal_of_ended_run(run);
    std::filesystem::rename(run, run + ".x");
    replace(place);
    std::filesystem::permissions(place.path() / "other", std::filesystem::perms::owner_exec |
                                                             std::filesystem::perms::owner_read);
    std::filesystem::permissions(run + ".x", std::filesystem::perms::owner_read);
    const Result<bool> back = journal->put_back();
    ASSERT_FALSE(back.has_value());
    EXPECT_EQ(back.error().message,
              "the run directory '" + run +
                  "' was moved or removed while the run was active, and nothing is written to that "
                  "path. It is now '" +
                  std::filesystem::canonical(run + ".x").string() +
                  "': move it back, and resume the run");
    EXPECT_EQ(std::filesystem::status(place.path() / "other").permissions(),
              std::filesystem::perms::owner_exec | std::filesystem::perms::owner_read);
    EXPECT_EQ(std::filesystem::status(run + ".x").permissions(), std::filesystem::perms::owner_all);
    std::filesystem::permissions(place.path() / "other", std::filesystem::perms::owner_all);
    EXPECT_EQ(must(must(JournalReader::open(its)).job_name()), "other");
    journal.reset();
    JournalReader own = must(JournalReader::open(run + ".x/journal.db"));
    EXPECT_EQ(must(own.executions()).at(0).how, "ended");
  }
}

TEST(Journal, IsNotPutBackWhereItsDirectoryCannotBeLookedAt) {
  const JournalDirectory place;
  const std::string run = place.path() / "run";
  auto journal = journal_of_ended_run(run);
  std::filesystem::permissions(place.path(), std::filesystem::perms::none);
  EXPECT_EQ(in_child([&]() -> int {
              // Root may look at everything.
              if (::geteuid() == 0 && ::setuid(65534) != 0) return 99;
              const Result<bool> back = journal->put_back();
              return !back && back.error().message ==
                                  "cannot look at the run directory '" + run +
                                      "', and nothing is written to that path: permission denied"
                         ? 0
                         : 1;
            }),
            0);
  std::filesystem::permissions(place.path(), std::filesystem::perms::owner_all);
}

TEST(Journal, IsPutBackIntoADirectoryThatWasMadeAnew) {
  const JournalDirectory place;
  const std::string run = place.path() / "run";
  auto journal = journal_of_ended_run(run);
  std::filesystem::remove_all(run);
  std::filesystem::create_directory(run);
  EXPECT_TRUE(must(journal->put_back()));
  journal.reset();
  EXPECT_EQ(must(must(JournalReader::open(run + "/journal.db")).job_name()), "sweep");
}

TEST(Journal, SaysThatItCannotBePutBackWhereItsDirectoryIsGone) {
  const JournalDirectory directory;
  const TestJob job{numbered(1)};
  auto journal = must(Journal::create(directory.journal(), "sweep", job.batch(), {}));
  std::filesystem::remove_all(directory.path());
  const Result<bool> back = journal->put_back();
  ASSERT_FALSE(back.has_value());
  EXPECT_THAT(back.error().message, HasSubstr(directory.journal()));
}

TEST(Journal, DoesNotEndTheExecutionOfAnotherRunThatWasWrittenOverIts) {
  const JournalDirectory directory;
  const TestJob job{numbered(1)};
  auto journal = must(Journal::create(directory.journal(), "sweep", job.batch(), {.yard_pid = 17}));
  must(must(Database::open(directory.journal(), Database::Access::Write))
           .run("UPDATE executions SET yard_pid = 18"));
  const Result<void> closed = journal->close(at(5), "ended");
  ASSERT_FALSE(closed.has_value());
  EXPECT_THAT(closed.error().message, HasSubstr("is damaged (it contains rows of another run)"));
  EXPECT_EQ(must(must(Database::open(directory.journal(), Database::Access::Read))
                     .text("SELECT how FROM executions")),
            "");
}

TEST(JournalDeathTest, StopsWhenATaskHasAlreadyItsVerdict) {
  const JournalDirectory directory;
  const TestJob job{numbered(1)};
  auto journal = must(Journal::create(directory.journal(), "sweep", job.batch(), {}));
  must(journal->commit(granted(at(1), {key(0)}) + finished(at(2), key(0), "")));
  EXPECT_DEATH(must(journal->commit(failed(at(3), key(0), 1))),
               "a task that has no verdict before it changes");
}

}  // namespace
}  // namespace trainyard::journal
