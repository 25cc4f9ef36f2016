// Journals of the time in which a run had one machine, which had no row: the tables are here as
// they were made then.
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "journal/journal.h"
#include "journal/reader.h"
#include "journal/sqlite.h"
#include "journal/test_run.h"
#include "journal/upgrade.h"
#include "model/resources.h"

namespace trainyard::journal {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr const char* kVersion11 = R"sql(
PRAGMA application_id=0x54726E79;
PRAGMA user_version=11;

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
  configuration TEXT NOT NULL, job_text TEXT NOT NULL, git_diff TEXT NOT NULL,
  forecast_ms INTEGER NOT NULL DEFAULT 0,
  forecast_worst_ms INTEGER NOT NULL DEFAULT 0,
  policy TEXT NOT NULL DEFAULT ''
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
  fail_fast INTEGER NOT NULL, try_first INTEGER NOT NULL DEFAULT 0,
  needs_tasks TEXT NOT NULL DEFAULT '[]',
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
  needs_groups TEXT NOT NULL DEFAULT '',
  needs_task INTEGER, needs_since_ms INTEGER,
  needs_time_ms INTEGER,
  needs_largest INTEGER NOT NULL DEFAULT 0,
  needs_utilization INTEGER NOT NULL DEFAULT 0,
  needs_max_per_gpu INTEGER NOT NULL DEFAULT 0,
  needs_measured INTEGER NOT NULL DEFAULT 0,
  needs_until_known INTEGER NOT NULL DEFAULT 0,
  needs_gpu_seen INTEGER NOT NULL DEFAULT 0,
  needs_disk INTEGER NOT NULL DEFAULT 0,
  learned_memory INTEGER NOT NULL DEFAULT 0,
  learned_gpu_memory INTEGER NOT NULL DEFAULT 0,
  learned_tasks INTEGER NOT NULL DEFAULT 0,
  sharing_best INTEGER NOT NULL DEFAULT 0,
  sharing_factor REAL NOT NULL DEFAULT 0,
  sharing_tasks INTEGER NOT NULL DEFAULT 0,
  sharing_max INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE headroom (
  number INTEGER PRIMARY KEY CHECK (number = 1),
  memory_free INTEGER NOT NULL, memory_held INTEGER NOT NULL, memory_of_others INTEGER NOT NULL,
  holders INTEGER NOT NULL, cpus_milli INTEGER NOT NULL, cpus_free_milli INTEGER NOT NULL,
  cpu_holders INTEGER NOT NULL, cpu_used_by_others REAL NOT NULL, cpu_utilization_max REAL NOT NULL,
  processes_max INTEGER NOT NULL, processes_reason TEXT NOT NULL,
  ahead INTEGER NOT NULL, waiting_max INTEGER NOT NULL,
  at_ms INTEGER NOT NULL DEFAULT 0,
  try_first_time_ms INTEGER NOT NULL DEFAULT 0,
  gpu_utilization_max INTEGER NOT NULL DEFAULT 1000,
  neighbours TEXT NOT NULL DEFAULT '',
  gpus_max INTEGER,
  gpus_max_until TEXT NOT NULL DEFAULT '',
  disk_free INTEGER,
  disk_promised INTEGER NOT NULL DEFAULT 0,
  disk_holders INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE headroom_gpus (
  position INTEGER PRIMARY KEY, label TEXT NOT NULL, present INTEGER NOT NULL,
  whole INTEGER NOT NULL,
  holders INTEGER NOT NULL, free INTEGER NOT NULL, of_others INTEGER NOT NULL,
  lingering INTEGER NOT NULL,
  avoided_for INTEGER,
  tasks INTEGER NOT NULL DEFAULT 0,
  utilization INTEGER NOT NULL DEFAULT 0,
  tasks_max INTEGER NOT NULL DEFAULT 0,
  uuid TEXT NOT NULL DEFAULT '',
  drained INTEGER NOT NULL DEFAULT 0
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
  gpu_memory_peak INTEGER NOT NULL,
  memory_at_least INTEGER NOT NULL DEFAULT 0,
  gpu_capped INTEGER NOT NULL DEFAULT 0,
  gpu_memory_max INTEGER NOT NULL DEFAULT 0,
  capped_by TEXT NOT NULL DEFAULT '',
  code INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE ended (
  task INTEGER PRIMARY KEY, verdict INTEGER NOT NULL, status INTEGER NOT NULL,
  stage INTEGER NOT NULL, attempt INTEGER NOT NULL, failure INTEGER NOT NULL,
  exit_code INTEGER NOT NULL, started_ms INTEGER, ended_ms INTEGER,
  memory_requested INTEGER NOT NULL, memory_peak INTEGER NOT NULL, cpu_ms INTEGER NOT NULL,
  message TEXT NOT NULL, warning TEXT NOT NULL, result TEXT NOT NULL,
  load_numbers INTEGER NOT NULL, train_numbers INTEGER NOT NULL, load_ms INTEGER, train_ms INTEGER,
  gpus TEXT NOT NULL, gpu_memory_requested INTEGER NOT NULL, gpu_memory_peak INTEGER NOT NULL,
  memory_at_least INTEGER NOT NULL DEFAULT 0, gpu_capped INTEGER NOT NULL DEFAULT 0,
  gpu_memory_max INTEGER NOT NULL DEFAULT 0, capped_by TEXT NOT NULL DEFAULT '',
  code INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX ended_failed ON ended (task) WHERE verdict = 2;
CREATE INDEX ended_warned ON ended (task) WHERE warning <> '';
CREATE TABLE attempts (
  task INTEGER NOT NULL, attempt INTEGER NOT NULL, stage INTEGER NOT NULL,
  failure INTEGER NOT NULL, exit_code INTEGER NOT NULL,
  started_ms INTEGER NOT NULL, ended_ms INTEGER, memory_requested INTEGER NOT NULL,
  memory_peak INTEGER NOT NULL, cpu_ms INTEGER NOT NULL, message TEXT NOT NULL,
  gpus TEXT NOT NULL, gpu_memory_requested INTEGER NOT NULL, gpu_memory_peak INTEGER NOT NULL,
  memory_at_least INTEGER NOT NULL DEFAULT 0, gpu_capped INTEGER NOT NULL DEFAULT 0,
  gpu_memory_max INTEGER NOT NULL DEFAULT 0, capped_by TEXT NOT NULL DEFAULT '',
  code INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (task, attempt)
) WITHOUT ROWID;
CREATE TABLE codes (
  number INTEGER PRIMARY KEY,
  found_ms INTEGER NOT NULL,
  root TEXT NOT NULL,
  git_commit TEXT NOT NULL,
  changes TEXT NOT NULL,
  git_diff TEXT NOT NULL,
  UNIQUE (root, git_commit, changes)
);
CREATE TABLE reached (
  task INTEGER PRIMARY KEY, memory INTEGER NOT NULL,
  gpu_memory INTEGER NOT NULL,
  largest INTEGER NOT NULL,
  load_tries INTEGER NOT NULL, train_tries INTEGER NOT NULL,
  preempted INTEGER NOT NULL, crowded INTEGER NOT NULL
);
CREATE TABLE said (
  task INTEGER PRIMARY KEY, on_hold INTEGER NOT NULL,
  priority INTEGER
);
CREATE TABLE task_needs (
  task INTEGER NOT NULL, needed INTEGER NOT NULL, PRIMARY KEY (task, needed)
) WITHOUT ROWID;
CREATE TABLE events (
  seq INTEGER PRIMARY KEY, execution INTEGER NOT NULL, at_ms INTEGER NOT NULL,
  kind TEXT NOT NULL, task INTEGER, attempt INTEGER,
  data TEXT NOT NULL
);
CREATE TABLE recorded (
  seq INTEGER PRIMARY KEY, execution INTEGER NOT NULL,
  event TEXT NOT NULL, decision TEXT NOT NULL
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
)sql";

/// Rows of a run that was resumed on another host: 'a' has finished on the first, 'b' died there
/// and runs its second attempt on the other, 'c' waits.
constexpr const char* kRows11 = R"sql(
INSERT INTO run VALUES ('sweep', 0);
INSERT INTO executions (number, started_ms, ended_ms, how, started_unix_ms, host, yard_pid,
  keeper_pid, socket_path, command_line, version, job_file, git_commit, config_file, settings,
  configuration, job_text, git_diff) VALUES
  (1, 0, 100, 'died', 1700000000000, 'here', 10, 11, '', 'trainyard run', '0.1.0',
   '/home/me/sweep.yaml', '', '', '[]', '', 'groups: []', ''),
  (2, 100, NULL, '', 1700000009000, 'there', 20, 21, '', 'trainyard run', '0.1.0',
   '/home/me/sweep.yaml', '', '', '[]', '', 'groups: []', '');
INSERT INTO gpus VALUES (1, 0, '3', 'GPU-a', 'NVIDIA H100', '', 80), (2, 0, '5', 'GPU-b', 'NVIDIA H200', '', 141);
INSERT INTO batches VALUES (1, 1, 0, 'trainyard run', '/home/me/sweep.yaml', '', '', '[]', '[]');
INSERT INTO groups (number, batch, position, directory, name, called, needs, parallel_max,
  fail_fast, phase) VALUES (0, 1, 0, 'train', 'train', 'train', '[]', 0, 0, 1);
INSERT INTO shapes (number, group_number, memory, cpus_milli, gpus, gpu_memory, time_limit_ms,
  waiting, running, finished, cause, needs_gpus) VALUES (0, 0, 500000000, 1000, 1, 0, 0, 1, 1, 1, 'gpus', 1);
INSERT INTO headroom (number, memory_free, memory_held, memory_of_others, holders, cpus_milli,
  cpus_free_milli, cpu_holders, cpu_used_by_others, cpu_utilization_max, processes_max,
  processes_reason, ahead, waiting_max) VALUES (1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, '', 0, 0);
INSERT INTO headroom_gpus (position, label, present, whole, holders, free, of_others, lingering)
  VALUES (0, '5', 1, 1, 1, 0, 0, 0);
INSERT INTO tasks (number, batch, position, group_number, shape, fingerprint, attempt_before, id)
  VALUES (0, 1, 0, 0, 0, 1, 0, 'a'), (1, 1, 1, 0, 0, 1, 1, 'b'), (2, 1, 2, 0, 0, 1, 0, 'c');
INSERT INTO ended VALUES (0, 1, 7, 1, 1, 0, 0, 10, 20, 500000000, 7, 5, '', '', '{"acc":1}', 0, 1,
  NULL, 10, '3', 0, 0, 0, 0, 0, '', 0);
INSERT INTO attempts VALUES (1, 1, 1, 6, 0, 30, 100, 500000000, 8, 6, 'the yard died while it ran',
  '3', 0, 0, 0, 0, 0, '', 0);
INSERT INTO live VALUES (1, 5, 1, 2, 0, 0, 77, 130, NULL, 500000000, 8, 9, 6, '', '', '', 0, 1, NULL,
  NULL, '5', 0, 0, 0, 0, 0, 0, '', 0);
INSERT INTO events VALUES (1, 2, 140, 'started', 1, 2, '{"pid":77}');
)sql";

/// The journal as it is once it was brought up to date.
void make_up_to_date(const JournalDirectory& directory) {
  {
    Database database = must(Database::open(directory.journal(), Database::Access::Create));
    must(database.run(kVersion11));
    must(database.run(kRows11));
  }
  must(bring_up_to_date(directory.journal()));
}

TEST(Upgrade, TakesTheHostOfAnExecutionForItsMachine) {
  const JournalDirectory directory;
  make_up_to_date(directory);
  JournalReader reader = must(JournalReader::open(directory.journal()));
  const std::vector<TaskRow> tasks = all_tasks(reader);
  ASSERT_THAT(words(tasks), ElementsAre("a FINISHED", "b RUNNING", "c WAITING"));
  EXPECT_EQ(tasks[0].machine, "here");
  EXPECT_EQ(tasks[1].machine, "there");
  EXPECT_EQ(tasks[2].machine, "") << "it has not begun";
  EXPECT_EQ(must(reader.attempts(tasks[1].index)).at(0).machine, "here");
  const std::vector<MachineRow> machines = must(reader.machines());
  ASSERT_EQ(machines.size(), 1U);
  EXPECT_EQ(machines[0].name, "there");
  EXPECT_EQ(machines[0].cpus, model::Cpus{}) << "nobody wrote that down then";
  EXPECT_EQ(machines[0].joined, at(100));
  EXPECT_EQ(machines[0].gone, std::nullopt);
  ASSERT_EQ(machines[0].gpus.size(), 1U);
  EXPECT_EQ(machines[0].gpus[0].label, "5");
  EXPECT_EQ(machines[0].gpus[0].name, "NVIDIA H200");
  EXPECT_EQ(must(reader.waiting()).at(0).reason, "needs a whole GPU, 0 of 1 GPU without tasks");
}

TEST(Upgrade, GoesOnWithARunOfTheTimeOfOneMachine) {
  const JournalDirectory directory;
  make_up_to_date(directory);
  const TestJob job{{.name = "train", .ids = {"a", "b", "c"}}};
  const auto resumed = must(Journal::resume(directory.journal(), {job.batch()}, {}));
  EXPECT_THAT(resumed.changes, IsEmpty()) << "nobody has changed anything";
  must(resumed.journal->commit(granted(at(500), {key(1, 3)})));
  JournalReader reader = must(JournalReader::open(directory.journal()));
  const std::vector<AttemptRow> attempts = must(reader.attempts(all_tasks(reader).at(1).index));
  ASSERT_EQ(attempts.size(), 3U);
  EXPECT_EQ(attempts[0].machine, "here");
  EXPECT_EQ(attempts[1].machine, "there");
  EXPECT_EQ(attempts[2].machine, "") << "none has joined yet";
}

}  // namespace
}  // namespace trainyard::journal
