// Journals that a trainyard of before has left: its tables are here as it made them.
#include "journal/upgrade.h"

#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/bytes.h"
#include "journal/journal.h"
#include "journal/reader.h"
#include "journal/sqlite.h"
#include "journal/test_run.h"
#include "sys/files.h"

namespace trainyard::journal {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr const char* kVersion4 = R"sql(
PRAGMA application_id = 0x54726E79;
PRAGMA user_version = 4;

CREATE TABLE run (
  job_name TEXT NOT NULL,
  sample_gap_ms INTEGER NOT NULL
);
CREATE TABLE executions (
  number INTEGER PRIMARY KEY,
  started_ms INTEGER NOT NULL,
  ended_ms INTEGER,
  how TEXT NOT NULL DEFAULT '',
  started_unix_ms INTEGER NOT NULL,
  host TEXT NOT NULL, yard_pid INTEGER NOT NULL, keeper_pid INTEGER NOT NULL,
  socket_path TEXT NOT NULL, command_line TEXT NOT NULL, version TEXT NOT NULL,
  job_file TEXT NOT NULL, git_commit TEXT NOT NULL,
  config_file TEXT NOT NULL,
  settings TEXT NOT NULL,
  configuration TEXT NOT NULL, job_text TEXT NOT NULL, git_diff TEXT NOT NULL
);
CREATE TABLE gpus (
  execution INTEGER NOT NULL, position INTEGER NOT NULL, label TEXT NOT NULL,
  uuid TEXT NOT NULL, name TEXT NOT NULL, pci TEXT NOT NULL, memory INTEGER NOT NULL,
  PRIMARY KEY (execution, position)
) WITHOUT ROWID;
CREATE TABLE groups (
  number INTEGER PRIMARY KEY,
  position INTEGER,
  name TEXT NOT NULL, needs TEXT NOT NULL, parallel_max INTEGER NOT NULL,
  fail_fast INTEGER NOT NULL,
  phase INTEGER NOT NULL DEFAULT 0, message TEXT NOT NULL DEFAULT ''
);
CREATE TABLE shapes (
  number INTEGER PRIMARY KEY, group_number INTEGER NOT NULL,
  memory INTEGER NOT NULL, cpus_milli INTEGER NOT NULL, gpus INTEGER NOT NULL,
  gpu_memory INTEGER NOT NULL, time_limit_ms INTEGER NOT NULL,
  waiting INTEGER NOT NULL DEFAULT 0, running INTEGER NOT NULL DEFAULT 0,
  retrying INTEGER NOT NULL DEFAULT 0, finished INTEGER NOT NULL DEFAULT 0,
  failed INTEGER NOT NULL DEFAULT 0, skipped INTEGER NOT NULL DEFAULT 0,
  stopped INTEGER NOT NULL DEFAULT 0,
  reason TEXT NOT NULL DEFAULT ''
);
CREATE TABLE tasks (
  number INTEGER PRIMARY KEY,
  position INTEGER,
  group_number INTEGER NOT NULL,
  shape INTEGER,
  fingerprint INTEGER NOT NULL,
  attempt_before INTEGER NOT NULL,
  id TEXT NOT NULL,
  matrix TEXT
);
CREATE INDEX tasks_by_position ON tasks (position);
CREATE TABLE live (
  task INTEGER PRIMARY KEY, status INTEGER NOT NULL, stage INTEGER NOT NULL,
  attempt INTEGER NOT NULL, failure INTEGER NOT NULL, exit_code INTEGER NOT NULL,
  pid INTEGER NOT NULL, started_ms INTEGER NOT NULL, ended_ms INTEGER,
  memory_requested INTEGER NOT NULL, memory_now INTEGER NOT NULL, memory_peak INTEGER NOT NULL,
  cpu_ms INTEGER NOT NULL, message TEXT NOT NULL, warning TEXT NOT NULL, result TEXT NOT NULL,
  load_numbers INTEGER NOT NULL, train_numbers INTEGER NOT NULL, load_ms INTEGER, train_ms INTEGER,
  gpus TEXT NOT NULL,
  gpu_memory_requested INTEGER NOT NULL, gpu_memory_now INTEGER NOT NULL,
  gpu_memory_peak INTEGER NOT NULL
);
CREATE TABLE ended (
  task INTEGER PRIMARY KEY, verdict INTEGER NOT NULL, status INTEGER NOT NULL,
  stage INTEGER NOT NULL, attempt INTEGER NOT NULL, failure INTEGER NOT NULL,
  exit_code INTEGER NOT NULL, started_ms INTEGER, ended_ms INTEGER,
  memory_requested INTEGER NOT NULL, memory_peak INTEGER NOT NULL, cpu_ms INTEGER NOT NULL,
  message TEXT NOT NULL, warning TEXT NOT NULL, result TEXT NOT NULL,
  load_numbers INTEGER NOT NULL, train_numbers INTEGER NOT NULL, load_ms INTEGER, train_ms INTEGER,
  gpus TEXT NOT NULL, gpu_memory_requested INTEGER NOT NULL, gpu_memory_peak INTEGER NOT NULL
);
CREATE INDEX ended_failed ON ended (task) WHERE verdict = 2;
CREATE INDEX ended_warned ON ended (task) WHERE warning <> '';
CREATE TABLE attempts (
  task INTEGER NOT NULL, attempt INTEGER NOT NULL, stage INTEGER NOT NULL,
  failure INTEGER NOT NULL, exit_code INTEGER NOT NULL,
  started_ms INTEGER NOT NULL, ended_ms INTEGER, memory_requested INTEGER NOT NULL,
  memory_peak INTEGER NOT NULL, cpu_ms INTEGER NOT NULL, message TEXT NOT NULL,
  gpus TEXT NOT NULL, gpu_memory_requested INTEGER NOT NULL, gpu_memory_peak INTEGER NOT NULL,
  PRIMARY KEY (task, attempt)
) WITHOUT ROWID;
CREATE TABLE events (
  seq INTEGER PRIMARY KEY, execution INTEGER NOT NULL, at_ms INTEGER NOT NULL,
  kind TEXT NOT NULL, task INTEGER, attempt INTEGER,
  data TEXT NOT NULL
);
CREATE TABLE tracebacks (
  task INTEGER NOT NULL, attempt INTEGER NOT NULL, text TEXT NOT NULL,
  PRIMARY KEY (task, attempt)
) WITHOUT ROWID;
CREATE TABLE progress (
  task INTEGER NOT NULL, attempt INTEGER NOT NULL, at_ms INTEGER NOT NULL,
  fraction REAL,
  "values" TEXT NOT NULL,
  PRIMARY KEY (task, attempt, at_ms)
) WITHOUT ROWID;
CREATE TABLE samples (
  number INTEGER PRIMARY KEY, at_ms INTEGER NOT NULL, memory_available INTEGER NOT NULL,
  memory_of_tasks INTEGER NOT NULL, cpu_used_by_others REAL NOT NULL
);

CREATE VIEW group_list AS
  SELECT g.position, g.name,
    CASE g.phase WHEN 0 THEN 'BLOCKED' WHEN 1 THEN 'RUNNING' WHEN 2 THEN 'FINISHED'
      WHEN 3 THEN 'FAILED' WHEN 4 THEN 'SKIPPED' ELSE 'STOPPED' END AS phase,
    sum(s.waiting) AS waiting, sum(s.running) AS running, sum(s.retrying) AS retrying,
    sum(s.finished) AS finished, sum(s.failed) AS failed, sum(s.skipped) AS skipped,
    sum(s.stopped) AS stopped, g.message
  FROM groups g LEFT JOIN shapes s ON s.group_number = g.number
  WHERE g.position IS NOT NULL GROUP BY g.number ORDER BY g.position;
CREATE VIEW task_list AS
  SELECT t.number AS task, t.position, g.name AS "group", t.id,
    CASE coalesce(e.verdict, 0) WHEN 1 THEN 'FINISHED' WHEN 2 THEN 'FAILED' WHEN 3 THEN 'SKIPPED'
      WHEN 4 THEN 'STOPPED' ELSE CASE coalesce(l.status, 1) WHEN 1 THEN 'WAITING'
      WHEN 4 THEN 'WAITING' WHEN 9 THEN 'RETRYING' ELSE 'RUNNING' END END AS state,
    CASE coalesce(e.failure, l.failure, 0) WHEN 0 THEN '' WHEN 1 THEN 'OUT_OF_MEMORY'
      WHEN 2 THEN 'TIMEOUT' WHEN 3 THEN 'KILLED' WHEN 4 THEN 'EXIT ' || coalesce(e.exit_code,
      l.exit_code) WHEN 5 THEN 'CANNOT_START' WHEN 6 THEN 'LOST' ELSE 'ERROR' END AS failure,
    coalesce(e.attempt, l.attempt, t.attempt_before) AS attempt,
    coalesce(e.started_ms, l.started_ms) / 1000.0 AS started_s,
    coalesce(e.ended_ms, l.ended_ms) / 1000.0 AS ended_s,
    coalesce(e.memory_peak, l.memory_peak) AS memory_peak,
    coalesce(e.gpus, l.gpus) AS gpus,
    coalesce(e.gpu_memory_peak, l.gpu_memory_peak) AS gpu_memory_peak,
    coalesce(e.cpu_ms, l.cpu_ms) / 1000.0 AS cpu_s,
    coalesce(e.message, l.message, '') AS message, t.matrix,
    coalesce(e.load_ms, l.load_ms) / 1000.0 AS load_s,
    coalesce(e.train_ms, l.train_ms) / 1000.0 AS train_s,
    CASE WHEN json_valid(e.result) THEN e.result END AS result
  FROM tasks t JOIN groups g ON g.number = t.group_number
    LEFT JOIN ended e ON e.task = t.number LEFT JOIN live l ON l.task = t.number
  WHERE t.position IS NOT NULL ORDER BY t.position;
)sql";

/// A run that died: 'a' has finished, 'b' was running its second attempt, 'c' waits.
constexpr const char* kRows = R"sql(
INSERT INTO run VALUES ('sweep', 0);
INSERT INTO executions (number, started_ms, started_unix_ms, host, yard_pid, keeper_pid,
  socket_path, command_line, version, job_file, git_commit, config_file, settings, configuration,
  job_text, git_diff) VALUES (1, 0, 1700000000000, 'here', 10, 11, '/run/s',
  'trainyard run sweep.yaml', '0.1.0', '/home/me/sweep.yaml', '', '', '[]', '', 'groups: []', '');
INSERT INTO groups (number, position, name, needs, parallel_max, fail_fast, phase, message)
  VALUES (0, 0, 'train', '[]', 0, 0, 1, '');
INSERT INTO shapes (number, group_number, memory, cpus_milli, gpus, gpu_memory, time_limit_ms,
  waiting, running, finished, reason) VALUES (0, 0, 500000000, 1000, 0, 0, 0, 1, 1, 1, 'no room');
INSERT INTO tasks (number, position, group_number, shape, fingerprint, attempt_before, id, matrix)
  VALUES (0, 0, 0, 0, 1, 0, 'a', NULL), (1, 1, 0, 0, 1, 0, 'b', NULL), (2, 2, 0, 0, 1, 0, 'c', NULL);
INSERT INTO ended VALUES (0, 1, 7, 1, 1, 0, 0, 10, 20, 500000000, 7, 5, '', '', '{"acc":1}', 0, 1,
  NULL, 10, '', 0, 0);
INSERT INTO live VALUES (1, 5, 1, 2, 0, 0, 77, 30, NULL, 500000000, 8, 9, 6, '', '', '', 0, 2, NULL,
  NULL, '', 0, 0, 0);
INSERT INTO attempts VALUES (1, 1, 1, 4, 3, 20, 29, 500000000, 8, 6, 'ended with exit code 3', '',
  0, 0);
INSERT INTO events VALUES (1, 1, 30, 'started', 1, 2, '{"pid":77}');
)sql";

constexpr const char* kVersion6 = R"sql(
PRAGMA application_id = 0x54726E79;
PRAGMA user_version = 6;

CREATE TABLE run (
  job_name TEXT NOT NULL,
  sample_gap_ms INTEGER NOT NULL
);
CREATE TABLE executions (
  number INTEGER PRIMARY KEY,
  started_ms INTEGER NOT NULL,
  ended_ms INTEGER,
  how TEXT NOT NULL DEFAULT '',
  started_unix_ms INTEGER NOT NULL,
  host TEXT NOT NULL, yard_pid INTEGER NOT NULL, keeper_pid INTEGER NOT NULL,
  socket_path TEXT NOT NULL, command_line TEXT NOT NULL, version TEXT NOT NULL,
  job_file TEXT NOT NULL, git_commit TEXT NOT NULL,
  config_file TEXT NOT NULL,
  settings TEXT NOT NULL,
  configuration TEXT NOT NULL, job_text TEXT NOT NULL, git_diff TEXT NOT NULL
);
CREATE TABLE gpus (
  execution INTEGER NOT NULL, position INTEGER NOT NULL, label TEXT NOT NULL,
  uuid TEXT NOT NULL, name TEXT NOT NULL, pci TEXT NOT NULL, memory INTEGER NOT NULL,
  PRIMARY KEY (execution, position)
) WITHOUT ROWID;
CREATE TABLE batches (
  number INTEGER PRIMARY KEY,
  complete INTEGER NOT NULL,
  added_ms INTEGER NOT NULL, command_line TEXT NOT NULL, job_file TEXT NOT NULL,
  job_text TEXT NOT NULL,
  config_file TEXT NOT NULL, settings TEXT NOT NULL,
  environment TEXT NOT NULL
);
CREATE TABLE groups (
  number INTEGER PRIMARY KEY,
  batch INTEGER NOT NULL,
  position INTEGER,
  directory TEXT NOT NULL,
  name TEXT NOT NULL,
  called TEXT NOT NULL,
  needs TEXT NOT NULL, parallel_max INTEGER NOT NULL,
  fail_fast INTEGER NOT NULL,
  phase INTEGER NOT NULL DEFAULT 0, message TEXT NOT NULL DEFAULT ''
);
CREATE TABLE shapes (
  number INTEGER PRIMARY KEY, group_number INTEGER NOT NULL,
  memory INTEGER NOT NULL, cpus_milli INTEGER NOT NULL, gpus INTEGER NOT NULL,
  gpu_memory INTEGER NOT NULL, time_limit_ms INTEGER NOT NULL,
  waiting INTEGER NOT NULL DEFAULT 0, running INTEGER NOT NULL DEFAULT 0,
  retrying INTEGER NOT NULL DEFAULT 0, finished INTEGER NOT NULL DEFAULT 0,
  failed INTEGER NOT NULL DEFAULT 0, skipped INTEGER NOT NULL DEFAULT 0,
  stopped INTEGER NOT NULL DEFAULT 0,
  cause TEXT NOT NULL DEFAULT '',
  needs_memory INTEGER NOT NULL DEFAULT 0, needs_cpus_milli INTEGER NOT NULL DEFAULT 0,
  needs_gpus INTEGER NOT NULL DEFAULT 0, needs_gpu_memory INTEGER NOT NULL DEFAULT 0,
  needs_gpu INTEGER, needs_parallel INTEGER NOT NULL DEFAULT 0,
  needs_groups TEXT NOT NULL DEFAULT ''
);
CREATE TABLE headroom (
  number INTEGER PRIMARY KEY CHECK (number = 1),
  memory_free INTEGER NOT NULL, memory_held INTEGER NOT NULL, memory_of_others INTEGER NOT NULL,
  holders INTEGER NOT NULL, cpus_milli INTEGER NOT NULL, cpus_free_milli INTEGER NOT NULL,
  cpu_holders INTEGER NOT NULL, cpu_used_by_others REAL NOT NULL, cpu_utilization_max REAL NOT NULL,
  processes_max INTEGER NOT NULL, processes_reason TEXT NOT NULL,
  ahead INTEGER NOT NULL, waiting_max INTEGER NOT NULL
);
CREATE TABLE headroom_gpus (
  position INTEGER PRIMARY KEY, label TEXT NOT NULL, present INTEGER NOT NULL,
  whole INTEGER NOT NULL,
  holders INTEGER NOT NULL, free INTEGER NOT NULL, of_others INTEGER NOT NULL,
  lingering INTEGER NOT NULL,
  avoided_for INTEGER
);
CREATE TABLE tasks (
  number INTEGER PRIMARY KEY,
  batch INTEGER NOT NULL,
  position INTEGER,
  group_number INTEGER NOT NULL,
  shape INTEGER,
  fingerprint INTEGER NOT NULL,
  attempt_before INTEGER NOT NULL,
  id TEXT NOT NULL,
  matrix TEXT,
  edited INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE live (
  task INTEGER PRIMARY KEY, status INTEGER NOT NULL, stage INTEGER NOT NULL,
  attempt INTEGER NOT NULL, failure INTEGER NOT NULL, exit_code INTEGER NOT NULL,
  pid INTEGER NOT NULL, started_ms INTEGER NOT NULL, ended_ms INTEGER,
  memory_requested INTEGER NOT NULL, memory_now INTEGER NOT NULL, memory_peak INTEGER NOT NULL,
  cpu_ms INTEGER NOT NULL, message TEXT NOT NULL, warning TEXT NOT NULL, result TEXT NOT NULL,
  load_numbers INTEGER NOT NULL, train_numbers INTEGER NOT NULL, load_ms INTEGER, train_ms INTEGER,
  gpus TEXT NOT NULL,
  gpu_memory_requested INTEGER NOT NULL, gpu_memory_now INTEGER NOT NULL,
  gpu_memory_peak INTEGER NOT NULL
);
CREATE TABLE ended (
  task INTEGER PRIMARY KEY, verdict INTEGER NOT NULL, status INTEGER NOT NULL,
  stage INTEGER NOT NULL, attempt INTEGER NOT NULL, failure INTEGER NOT NULL,
  exit_code INTEGER NOT NULL, started_ms INTEGER, ended_ms INTEGER,
  memory_requested INTEGER NOT NULL, memory_peak INTEGER NOT NULL, cpu_ms INTEGER NOT NULL,
  message TEXT NOT NULL, warning TEXT NOT NULL, result TEXT NOT NULL,
  load_numbers INTEGER NOT NULL, train_numbers INTEGER NOT NULL, load_ms INTEGER, train_ms INTEGER,
  gpus TEXT NOT NULL, gpu_memory_requested INTEGER NOT NULL, gpu_memory_peak INTEGER NOT NULL
);
CREATE INDEX ended_failed ON ended (task) WHERE verdict = 2;
CREATE INDEX ended_warned ON ended (task) WHERE warning <> '';
CREATE TABLE attempts (
  task INTEGER NOT NULL, attempt INTEGER NOT NULL, stage INTEGER NOT NULL,
  failure INTEGER NOT NULL, exit_code INTEGER NOT NULL,
  started_ms INTEGER NOT NULL, ended_ms INTEGER, memory_requested INTEGER NOT NULL,
  memory_peak INTEGER NOT NULL, cpu_ms INTEGER NOT NULL, message TEXT NOT NULL,
  gpus TEXT NOT NULL, gpu_memory_requested INTEGER NOT NULL, gpu_memory_peak INTEGER NOT NULL,
  PRIMARY KEY (task, attempt)
) WITHOUT ROWID;
CREATE TABLE events (
  seq INTEGER PRIMARY KEY, execution INTEGER NOT NULL, at_ms INTEGER NOT NULL,
  kind TEXT NOT NULL, task INTEGER, attempt INTEGER,
  data TEXT NOT NULL
);
CREATE TABLE tracebacks (
  task INTEGER NOT NULL, attempt INTEGER NOT NULL, text TEXT NOT NULL,
  PRIMARY KEY (task, attempt)
) WITHOUT ROWID;
CREATE TABLE progress (
  task INTEGER NOT NULL, attempt INTEGER NOT NULL, at_ms INTEGER NOT NULL,
  fraction REAL,
  "values" TEXT NOT NULL,
  PRIMARY KEY (task, attempt, at_ms)
) WITHOUT ROWID;
CREATE TABLE samples (
  number INTEGER PRIMARY KEY, at_ms INTEGER NOT NULL, memory_available INTEGER NOT NULL,
  memory_of_tasks INTEGER NOT NULL, cpu_used_by_others REAL NOT NULL
);

CREATE VIEW group_list AS
  SELECT g.number AS "group", g.batch AS submission, g.position, g.called AS name,
    CASE g.phase WHEN 0 THEN 'BLOCKED' WHEN 1 THEN 'RUNNING' WHEN 2 THEN 'FINISHED'
      WHEN 3 THEN 'FAILED' WHEN 4 THEN 'SKIPPED' ELSE 'STOPPED' END AS phase,
    sum(s.waiting) AS waiting, sum(s.running) AS running, sum(s.retrying) AS retrying,
    sum(s.finished) AS finished, sum(s.failed) AS failed, sum(s.skipped) AS skipped,
    sum(s.stopped) AS stopped, g.message
  FROM groups g LEFT JOIN shapes s ON s.group_number = g.number
  WHERE g.position IS NOT NULL GROUP BY g.number ORDER BY g.batch, g.position;
CREATE VIEW task_list AS
  SELECT t.number AS task, t.batch AS submission, t.position, g.called AS "group", t.id,
    CASE g.directory WHEN '' THEN t.id ELSE g.directory || '/' || t.id END AS directory,
    CASE coalesce(e.verdict, 0) WHEN 1 THEN 'FINISHED' WHEN 2 THEN 'FAILED' WHEN 3 THEN 'SKIPPED'
      WHEN 4 THEN 'STOPPED' ELSE CASE coalesce(l.status, 1) WHEN 1 THEN 'WAITING'
      WHEN 4 THEN 'WAITING' WHEN 9 THEN 'RETRYING' ELSE 'RUNNING' END END AS state,
    CASE coalesce(e.failure, l.failure, 0) WHEN 0 THEN '' WHEN 1 THEN 'OUT_OF_MEMORY'
      WHEN 2 THEN 'TIMEOUT' WHEN 3 THEN 'KILLED' WHEN 4 THEN 'EXIT ' || coalesce(e.exit_code,
      l.exit_code) WHEN 5 THEN 'CANNOT_START' WHEN 6 THEN 'LOST' ELSE 'ERROR' END AS failure,
    coalesce(e.attempt, l.attempt, t.attempt_before) AS attempt,
    coalesce(e.started_ms, l.started_ms) / 1000.0 AS started_s,
    coalesce(e.ended_ms, l.ended_ms) / 1000.0 AS ended_s,
    coalesce(e.memory_peak, l.memory_peak) AS memory_peak,
    coalesce(e.gpus, l.gpus) AS gpus,
    coalesce(e.gpu_memory_peak, l.gpu_memory_peak) AS gpu_memory_peak,
    coalesce(e.cpu_ms, l.cpu_ms) / 1000.0 AS cpu_s,
    coalesce(e.message, l.message, '') AS message, t.matrix,
    coalesce(e.load_ms, l.load_ms) / 1000.0 AS load_s,
    coalesce(e.train_ms, l.train_ms) / 1000.0 AS train_s,
    CASE WHEN json_valid(e.result) THEN e.result END AS result
  FROM tasks t JOIN groups g ON g.number = t.group_number
    LEFT JOIN ended e ON e.task = t.number LEFT JOIN live l ON l.task = t.number
  WHERE t.position IS NOT NULL ORDER BY t.batch, t.position;
)sql";

/// A run of that time which died while 'b' ran; 'c' was submitted, and waits.
constexpr const char* kRows6 = R"sql(
INSERT INTO run VALUES ('sweep', 0);
INSERT INTO executions (number, started_ms, started_unix_ms, host, yard_pid, keeper_pid,
  socket_path, command_line, version, job_file, git_commit, config_file, settings, configuration,
  job_text, git_diff) VALUES (1, 0, 1700000000000, 'here', 10, 11, '/run/s',
  'trainyard run sweep.yaml', '0.1.0', '/home/me/sweep.yaml', '', '', '[]', '', 'groups: []', '');
INSERT INTO batches VALUES (1, 1, 0, 'trainyard run', '/home/me/sweep.yaml', '', '', '[]', '[]'),
  (2, 1, 5, 'trainyard submit', '/home/me/more.yaml', 'groups: []', '', '[]', '["A=1"]');
INSERT INTO groups (number, batch, position, directory, name, called, needs, parallel_max,
  fail_fast, phase) VALUES (0, 1, 0, 'train', 'train', 'train', '[]', 0, 0, 1),
  (1, 2, 0, 'submissions/2/train', 'train', 'train (2)', '[]', 0, 0, 1);
INSERT INTO shapes (number, group_number, memory, cpus_milli, gpus, gpu_memory, time_limit_ms,
  waiting, running, finished) VALUES (0, 0, 500000000, 1000, 0, 0, 0, 0, 1, 1),
  (1, 1, 500000000, 1000, 0, 0, 0, 1, 0, 0);
INSERT INTO tasks (number, batch, position, group_number, shape, fingerprint, attempt_before, id)
  VALUES (0, 1, 0, 0, 0, 1, 0, 'a'), (1, 1, 1, 0, 0, 1, 0, 'b'), (2, 2, 0, 1, 1, 1, 0, 'c');
INSERT INTO ended VALUES (0, 1, 7, 1, 1, 0, 0, 10, 20, 500000000, 7, 5, '', '', '{"acc":1}', 0, 1,
  NULL, 10, '', 0, 0);
INSERT INTO live VALUES (1, 5, 1, 1, 0, 0, 77, 30, NULL, 500000000, 8, 9, 6, '', '', '', 0, 1, NULL,
  NULL, '', 0, 0, 0);
)sql";

void make_old(const JournalDirectory& directory) {
  Database database = must(Database::open(directory.journal(), Database::Access::Create));
  must(database.run(kVersion4));
  must(database.run(kRows));
}

TEST(Upgrade, GoesOnWithTheRunOfAnOlderTrainyard) {
  const JournalDirectory directory;
  make_old(directory);
  must(bring_up_to_date(directory.journal()));
  const TestJob job{{.name = "train", .ids = {"a", "b", "c"}}};
  auto resumed = must(Journal::resume(directory.journal(), {job.batch()}, {}));
  EXPECT_THAT(resumed.changes, IsEmpty()) << "nobody has changed anything";
  EXPECT_EQ(resumed.finished, 1);
  EXPECT_EQ(resumed.plans.at(0)->tasks[1].first_attempt, 3U);
  must(resumed.journal->commit(granted(at(50), {key(1, 3)}) + finished(at(60), key(1, 3), "{}")));
  JournalReader reader = must(JournalReader::open(directory.journal()));
  const std::vector<TaskRow> tasks = all_tasks(reader);
  EXPECT_THAT(words(tasks), ElementsAre("a FINISHED", "b FINISHED", "c WAITING"));
  EXPECT_EQ(tasks[0].result, R"({"acc":1})");
  EXPECT_EQ(tasks[0].directory, "train/a");
  const std::vector<AttemptRow> attempts = must(reader.attempts(tasks[1].index));
  ASSERT_EQ(attempts.size(), 3U);
  EXPECT_EQ(attempts[0].message, "ended with exit code 3");
  EXPECT_EQ(attempts[1].message, "trainyard died while the task ran");
  EXPECT_EQ(must(reader.batches()).at(0).source.job_file, "/home/me/sweep.yaml");
  EXPECT_EQ(must(reader.executions()).at(0).how, "died");
  EXPECT_EQ(must(reader.executions()).at(0).run_directory, "") << "no older journal has it";
}

TEST(Upgrade, KeepsWhatHadBeenSubmitted) {
  const JournalDirectory directory;
  {
    Database database = must(Database::open(directory.journal(), Database::Access::Create));
    must(database.run(kVersion6));
    must(database.run(kRows6));
  }
  must(bring_up_to_date(directory.journal()));
  const TestJob job{{.name = "train", .ids = {"a", "b"}}};
  const TestJob more{{.name = "train", .ids = {"c"}}};
  const auto resumed =
      must(Journal::resume(directory.journal(), {job.batch(), more.batch(2, "train (2)")}, {}));
  EXPECT_THAT(resumed.changes, IsEmpty()) << "nobody has changed anything";
  EXPECT_EQ(resumed.finished, 1);
  JournalReader reader = must(JournalReader::open(directory.journal()));
  const std::vector<TaskRow> tasks = all_tasks(reader);
  EXPECT_THAT(words(tasks), ElementsAre("a FINISHED", "b WAITING", "c WAITING"));
  EXPECT_FALSE(tasks[0].memory_at_least) << "that was not asked then";
  EXPECT_EQ(tasks[0].code, "") << "nor that";
  EXPECT_EQ(must(reader.batches()).at(1).source.job_file, "/home/me/more.yaml");
  EXPECT_EQ(must(reader.attempts(tasks[1].index)).at(0).memory_peak, Bytes{9});
}

TEST(Upgrade, LeavesAJournalOfThisVersionAndNothingAsItIs) {
  const JournalDirectory directory;
  EXPECT_TRUE(bring_up_to_date(directory.journal()).has_value()) << "there is none";
  const TestJob job{{.name = "train", .ids = {"a"}}};
  {
    auto journal = must(Journal::create(directory.journal(), "sweep", job.batch(), {}));
  }
  const std::string before = must(sys::read_file(directory.journal(), mb(10)));
  must(bring_up_to_date(directory.journal()));
  EXPECT_EQ(must(sys::read_file(directory.journal(), mb(10))), before);
}

TEST(Upgrade, IsSaidToWhoeverOnlyLooks) {
  const JournalDirectory directory;
  make_old(directory);
  const auto reader = JournalReader::open(directory.journal());
  ASSERT_FALSE(reader.has_value());
  EXPECT_THAT(reader.error().message,
              HasSubstr("was made by an older trainyard: 'trainyard run --resume' updates it and "
                        "continues its run"));
}

TEST(Upgrade, LeavesARunAloneInWhichAnOlderYardIsAtWork) {
  const JournalDirectory directory;
  make_old(directory);
  const auto lock = must(sys::RunLock::take(directory.path().string()));
  EXPECT_FALSE(bring_up_to_date(directory.journal()).has_value());
  Database database = must(Database::open(directory.journal(), Database::Access::Write));
  EXPECT_EQ(must(database.number("PRAGMA user_version")), 4);
  EXPECT_EQ(must(database.number("SELECT count(*) FROM tasks")), 3);
}

}  // namespace
}  // namespace trainyard::journal
