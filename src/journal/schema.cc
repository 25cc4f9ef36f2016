#include "journal/schema.h"

namespace trainyard::journal {

const char* const kTasksIndex = "CREATE INDEX tasks_by_position ON tasks (batch, position)";

// A task is one row of `tasks`, which does not change while the yard runs, and from its first start
// one row of `live`, which is replaced by one of `ended` with its verdict. So a turn touches few
// pages: those of the tasks under way are all in one, and those that end are added one after the
// other. Numbers that are read often (`shapes`) are updated in the same transaction.
const char* const kSchema = R"sql(
PRAGMA application_id = 0x54726E79;
PRAGMA user_version = 23;

CREATE TABLE run (
  job_name TEXT NOT NULL,
  sample_gap_ms INTEGER NOT NULL        -- samples closer than this are thinned
);
CREATE TABLE executions (
  number INTEGER PRIMARY KEY,           -- 1, then one more with each resume
  started_ms INTEGER NOT NULL,          -- on the clock of the run, as all times in ms
  ended_ms INTEGER,
  how TEXT NOT NULL DEFAULT '',         -- how it ended; 'interrupted' already while it stops
  started_unix_ms INTEGER NOT NULL,
  host TEXT NOT NULL, yard_pid INTEGER NOT NULL,
  socket_path TEXT NOT NULL, command_line TEXT NOT NULL, version TEXT NOT NULL,
  job_file TEXT NOT NULL, git_commit TEXT NOT NULL,
  config_file TEXT NOT NULL,            -- the one that was read
  settings TEXT NOT NULL,               -- each --set, in order: a JSON list
  configuration TEXT NOT NULL, job_text TEXT NOT NULL, git_diff TEXT NOT NULL,
  forecast_ms INTEGER NOT NULL DEFAULT 0,       -- how long it was expected to take; 0: nobody knew
  forecast_worst_ms INTEGER NOT NULL DEFAULT 0, -- the same if sharing GPUs gains nothing
  policy TEXT NOT NULL DEFAULT '',      -- by which it was decided, of one that is recorded: JSON
  run_directory TEXT NOT NULL           -- absolute, links followed
);
CREATE TABLE machines (                 -- those on which tasks of an execution may run
  execution INTEGER NOT NULL,
  number INTEGER NOT NULL,              -- from 0, in the order in which they first joined
  name TEXT NOT NULL,
  cpus_milli INTEGER NOT NULL, memory INTEGER NOT NULL,
  joined_ms INTEGER NOT NULL,           -- the last time
  gone_ms INTEGER,                      -- NULL: it is there
  why TEXT NOT NULL,                    -- it is gone
  silent_ms INTEGER,                    -- since then nothing is heard of it; NULL: it answers
  until_ms INTEGER,                     -- when it is taken away; NULL: nobody knows
  PRIMARY KEY (execution, number)
) WITHOUT ROWID;
CREATE TABLE gpus (                     -- those that tasks of an execution may have, as they are now
  execution INTEGER NOT NULL, machine INTEGER NOT NULL DEFAULT 0, position INTEGER NOT NULL,
  label TEXT NOT NULL, uuid TEXT NOT NULL, name TEXT NOT NULL, pci TEXT NOT NULL,
  memory INTEGER NOT NULL,
  PRIMARY KEY (execution, machine, position)
) WITHOUT ROWID;
CREATE TABLE batches (                  -- the job file of the run is 1, then one with each 'submit'
  number INTEGER PRIMARY KEY,
  complete INTEGER NOT NULL,            -- 0: its rows are still being written, and it does not count
  added_ms INTEGER NOT NULL, command_line TEXT NOT NULL, job_file TEXT NOT NULL,
  job_text TEXT NOT NULL,               -- of 1 empty: each execution has it as it was then
  config_file TEXT NOT NULL, settings TEXT NOT NULL,
  environment TEXT NOT NULL             -- of who submitted it: a JSON list; of 1 empty
);
CREATE TABLE groups (
  number INTEGER PRIMARY KEY,
  batch INTEGER NOT NULL,
  position INTEGER,                     -- in its batch; NULL when it is no longer in the job file
  directory TEXT NOT NULL,              -- of its tasks' directories, seen from the run directory
  name TEXT NOT NULL,
  called TEXT NOT NULL,                 -- its name; 'train (2)' where an earlier batch has a 'train'
  needs TEXT NOT NULL, parallel_max INTEGER NOT NULL,
  fail_fast INTEGER NOT NULL, try_first INTEGER NOT NULL DEFAULT 0,
  needs_tasks TEXT NOT NULL DEFAULT '[]', -- groups of which its tasks need some each: see task_needs
  phase INTEGER NOT NULL DEFAULT 0, message TEXT NOT NULL DEFAULT ''
);
CREATE TABLE shapes (                   -- the tasks of a group that ask for the same, counted
  number INTEGER PRIMARY KEY, group_number INTEGER NOT NULL,
  memory INTEGER NOT NULL, cpus_milli INTEGER NOT NULL, gpus INTEGER NOT NULL,
  gpu_memory INTEGER NOT NULL, time_limit_ms INTEGER NOT NULL,
  signal_ms INTEGER NOT NULL DEFAULT 0, -- from the signal of a task to TERM; 0: none comes
  waiting INTEGER NOT NULL DEFAULT 0, running INTEGER NOT NULL DEFAULT 0,
  retrying INTEGER NOT NULL DEFAULT 0, finished INTEGER NOT NULL DEFAULT 0,
  failed INTEGER NOT NULL DEFAULT 0, skipped INTEGER NOT NULL DEFAULT 0,
  stopped INTEGER NOT NULL DEFAULT 0,
  cause TEXT NOT NULL DEFAULT '',       -- why they wait: 'memory', 'gpus', ...; '' when none does
  needs_memory INTEGER NOT NULL DEFAULT 0, needs_cpus_milli INTEGER NOT NULL DEFAULT 0,
  needs_gpus INTEGER NOT NULL DEFAULT 0, needs_gpu_memory INTEGER NOT NULL DEFAULT 0,
  needs_gpu INTEGER, needs_parallel INTEGER NOT NULL DEFAULT 0,
  needs_groups TEXT NOT NULL DEFAULT '',
  needs_refusal TEXT NOT NULL DEFAULT '',        -- why the machine cannot start tasks
  needs_task INTEGER, needs_since_ms INTEGER,    -- who is tried first, and since when it trains
  needs_time_ms INTEGER,                         -- when they may start
  needs_largest INTEGER NOT NULL DEFAULT 0,      -- the last try: the largest GPUs, alone
  needs_utilization INTEGER NOT NULL DEFAULT 0,  -- of a GPU, in thousandths
  needs_max_per_gpu INTEGER NOT NULL DEFAULT 0,  -- so many on it; 0: any number
  needs_measured INTEGER NOT NULL DEFAULT 0,     -- that was measured, and nobody wrote it
  needs_until_known INTEGER NOT NULL DEFAULT 0,  -- GPUs of its own until its memory is known, of
  needs_gpu_seen INTEGER NOT NULL DEFAULT 0,     -- which so much was seen
  needs_disk INTEGER NOT NULL DEFAULT 0,
  needs_machine INTEGER NOT NULL DEFAULT 0,      -- where room is lacking, of this execution
  needs_where TEXT NOT NULL DEFAULT '',          -- 'machine=lab*,gpu=H100': on which they may run
  needs_avoids TEXT NOT NULL DEFAULT '',         -- '0,2': GPUs on which they were lost, by position
  learned_memory INTEGER NOT NULL DEFAULT 0,     -- what the next ones are given, as was learned in
  learned_gpu_memory INTEGER NOT NULL DEFAULT 0, -- this run from so many; 0: as they ask
  learned_tasks INTEGER NOT NULL DEFAULT 0,
  sharing_best INTEGER NOT NULL DEFAULT 0,       -- so many to a GPU do the most work: 'factor'
  sharing_factor REAL NOT NULL DEFAULT 0,        -- times that of one, by so many tasks
  sharing_tasks INTEGER NOT NULL DEFAULT 0,
  sharing_max INTEGER NOT NULL DEFAULT 0         -- no more are let onto one; 0: any number
);
CREATE TABLE headroom (                     -- what could be promised at the last reading of each
  machine INTEGER NOT NULL DEFAULT 0 PRIMARY KEY, -- machine of this execution that is there
  memory_free INTEGER NOT NULL, memory_held INTEGER NOT NULL, memory_of_others INTEGER NOT NULL,
  holders INTEGER NOT NULL, cpus_milli INTEGER NOT NULL, cpus_free_milli INTEGER NOT NULL,
  cpu_holders INTEGER NOT NULL, cpu_used_by_others REAL NOT NULL, cpu_utilization_max REAL NOT NULL,
  processes_max INTEGER NOT NULL, processes_reason TEXT NOT NULL,
  ahead INTEGER NOT NULL, waiting_max INTEGER NOT NULL,
  at_ms INTEGER NOT NULL DEFAULT 0,     -- while one is tried before others, which must live so long
  try_first_time_ms INTEGER NOT NULL DEFAULT 0,
  gpu_utilization_max INTEGER NOT NULL DEFAULT 1000, -- in thousandths
  neighbours TEXT NOT NULL DEFAULT '',  -- what other runs here have reserved (wire/promises_text.h)
  gpus_max INTEGER,                     -- limits.gpus, where it says something now,
  gpus_max_until TEXT NOT NULL DEFAULT '', -- and until when
  disk_free INTEGER,                    -- of the run's, where a task asks for some of it,
  disk_promised INTEGER NOT NULL DEFAULT 0, -- and what of that tasks that run may write
  disk_holders INTEGER NOT NULL DEFAULT 0,
  memory_kept_free INTEGER NOT NULL DEFAULT 0, -- not available to tasks, and the setting
  memory_kept_by TEXT NOT NULL DEFAULT ''      -- that keeps it free
) WITHOUT ROWID;
CREATE TABLE headroom_gpus (                -- and of each of its GPUs
  machine INTEGER NOT NULL DEFAULT 0, position INTEGER NOT NULL, label TEXT NOT NULL, present INTEGER NOT NULL,
  whole INTEGER NOT NULL,               -- one task has it for its own
  holders INTEGER NOT NULL, free INTEGER NOT NULL, of_others INTEGER NOT NULL,
  lingering INTEGER NOT NULL,           -- of ended tasks, and not shown to be free yet
  avoided_for INTEGER,                  -- the user whose process there is left alone
  tasks INTEGER NOT NULL DEFAULT 0,     -- of the holders those that run,
  utilization INTEGER NOT NULL DEFAULT 0, -- what they use of it as they say, in thousandths,
  tasks_max INTEGER NOT NULL DEFAULT 0, -- and how many one of them lets be there; 0: any number
  uuid TEXT NOT NULL DEFAULT '',
  drained INTEGER NOT NULL DEFAULT 0,   -- nothing new is given of it: 'trainyard drain'
  name TEXT NOT NULL DEFAULT '',        -- 'NVIDIA H200'
  PRIMARY KEY (machine, position)
) WITHOUT ROWID;
CREATE TABLE tasks (
  number INTEGER PRIMARY KEY,
  batch INTEGER NOT NULL,
  position INTEGER,                     -- in its batch; NULL when it is no longer in the job file
  group_number INTEGER NOT NULL,
  shape INTEGER,
  fingerprint INTEGER NOT NULL,         -- of command, environment and GPUs
  attempt_before INTEGER NOT NULL,      -- the last attempt of earlier executions
  id TEXT NOT NULL,
  matrix TEXT,                          -- a JSON object
  edited INTEGER NOT NULL DEFAULT 0     -- the job file says another command than the one that finished
);
CREATE TABLE live (                     -- tasks that have started and have no verdict yet
  task INTEGER PRIMARY KEY, status INTEGER NOT NULL, stage INTEGER NOT NULL,
  attempt INTEGER NOT NULL, failure INTEGER NOT NULL, exit_code INTEGER NOT NULL,
  pid INTEGER NOT NULL, started_ms INTEGER NOT NULL, ended_ms INTEGER,
  memory_requested INTEGER NOT NULL, memory_now INTEGER NOT NULL, memory_peak INTEGER NOT NULL,
  cpu_ms INTEGER NOT NULL, message TEXT NOT NULL, warning TEXT NOT NULL, result TEXT NOT NULL,
  load_numbers INTEGER NOT NULL, train_numbers INTEGER NOT NULL, load_ms INTEGER, train_ms INTEGER,
  gpus TEXT NOT NULL,                   -- the driver's numbers of those it has or had: "0,2"
  gpu_memory_requested INTEGER NOT NULL, gpu_memory_now INTEGER NOT NULL, -- on each of them
  gpu_memory_peak INTEGER NOT NULL,
  memory_at_least INTEGER NOT NULL DEFAULT 0, -- memory_peak is that of its largest process alone
  gpu_capped INTEGER NOT NULL DEFAULT 0,      -- it could not have more of a GPU than it had
  gpu_memory_max INTEGER NOT NULL DEFAULT 0,  -- what it was to take of each at most; 0: any amount
  capped_by TEXT NOT NULL DEFAULT '',         -- who keeps it to that; '': nobody does
  code INTEGER NOT NULL DEFAULT 0,            -- what it runs, of codes; 0: nobody knows
  machine INTEGER NOT NULL DEFAULT 0,         -- where, by its number in the execution
  retry_at_ms INTEGER                         -- the end of the delay of its retry
);
CREATE TABLE ended (                    -- tasks with a verdict, and their last attempt
  task INTEGER PRIMARY KEY, verdict INTEGER NOT NULL, status INTEGER NOT NULL,
  stage INTEGER NOT NULL, attempt INTEGER NOT NULL, failure INTEGER NOT NULL,
  exit_code INTEGER NOT NULL, started_ms INTEGER, ended_ms INTEGER,
  memory_requested INTEGER NOT NULL, memory_peak INTEGER NOT NULL, cpu_ms INTEGER NOT NULL,
  message TEXT NOT NULL, warning TEXT NOT NULL, result TEXT NOT NULL,
  load_numbers INTEGER NOT NULL, train_numbers INTEGER NOT NULL, load_ms INTEGER, train_ms INTEGER,
  gpus TEXT NOT NULL, gpu_memory_requested INTEGER NOT NULL, gpu_memory_peak INTEGER NOT NULL,
  memory_at_least INTEGER NOT NULL DEFAULT 0, gpu_capped INTEGER NOT NULL DEFAULT 0,
  gpu_memory_max INTEGER NOT NULL DEFAULT 0, capped_by TEXT NOT NULL DEFAULT '',
  code INTEGER NOT NULL DEFAULT 0, machine INTEGER NOT NULL DEFAULT 0,
  with_group INTEGER NOT NULL DEFAULT 0       -- ended while it waited as another task of its group failed
);
CREATE INDEX ended_failed ON ended (task) WHERE verdict = 2;
CREATE INDEX ended_warned ON ended (task) WHERE warning <> '';
CREATE TABLE attempts (                 -- attempts that another one came after
  task INTEGER NOT NULL, attempt INTEGER NOT NULL, stage INTEGER NOT NULL,
  failure INTEGER NOT NULL, exit_code INTEGER NOT NULL,
  started_ms INTEGER NOT NULL, ended_ms INTEGER, memory_requested INTEGER NOT NULL,
  memory_peak INTEGER NOT NULL, cpu_ms INTEGER NOT NULL, message TEXT NOT NULL,
  gpus TEXT NOT NULL, gpu_memory_requested INTEGER NOT NULL, gpu_memory_peak INTEGER NOT NULL,
  memory_at_least INTEGER NOT NULL DEFAULT 0, gpu_capped INTEGER NOT NULL DEFAULT 0,
  gpu_memory_max INTEGER NOT NULL DEFAULT 0, capped_by TEXT NOT NULL DEFAULT '',
  code INTEGER NOT NULL DEFAULT 0, machine INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (task, attempt)
) WITHOUT ROWID;
CREATE TABLE codes (                    -- what attempts ran, as git knew it; at most 1,000
  number INTEGER PRIMARY KEY,           -- in the order in which they were found
  found_ms INTEGER NOT NULL,
  root TEXT NOT NULL,                   -- of the work tree
  git_commit TEXT NOT NULL,
  changes TEXT NOT NULL,                -- a hash of what is changed since; '': nothing is
  git_diff TEXT NOT NULL,               -- that: the first MiB, and '' where there is too much of all
  UNIQUE (root, git_commit, changes)
);
CREATE TABLE reached (                  -- what tasks ask for since their memory ran out
  task INTEGER PRIMARY KEY, memory INTEGER NOT NULL,
  gpu_memory INTEGER NOT NULL,          -- the most so far, on each of its GPUs
  largest INTEGER NOT NULL,             -- they are its own now, and the largest
  load_tries INTEGER NOT NULL, train_tries INTEGER NOT NULL, -- how often it has, and was
  preempted INTEGER NOT NULL, crowded INTEGER NOT NULL       -- interrupted, or not to blame
);
CREATE TABLE said (                     -- what somebody has said of tasks while the run was at work
  task INTEGER PRIMARY KEY, on_hold INTEGER NOT NULL,
  priority INTEGER                      -- instead of the job file's; NULL: none
);
CREATE TABLE task_needs (               -- tasks that need others themselves, as those of their cell
  task INTEGER NOT NULL, needed INTEGER NOT NULL, PRIMARY KEY (task, needed)
) WITHOUT ROWID;
CREATE TABLE events (                   -- what happened and what was decided; only added to
  seq INTEGER PRIMARY KEY, execution INTEGER NOT NULL, at_ms INTEGER NOT NULL,
  kind TEXT NOT NULL, task INTEGER, attempt INTEGER,
  data TEXT NOT NULL                    -- a JSON object
);
CREATE INDEX events_of_retries ON events (task) WHERE kind = 'retry';
CREATE TABLE recorded (                 -- of an execution with journal.record: full, in order, all
  seq INTEGER PRIMARY KEY, execution INTEGER NOT NULL, -- that its scheduler heard, and what it
  event TEXT NOT NULL, decision TEXT NOT NULL          -- decided: JSON (wire/events.h)
);
CREATE TABLE tracebacks (               -- all there is to say of a failure
  task INTEGER NOT NULL, attempt INTEGER NOT NULL, text TEXT NOT NULL,
  PRIMARY KEY (task, attempt)
) WITHOUT ROWID;
CREATE TABLE progress (                 -- how far attempts said that they were, thinned
  task INTEGER NOT NULL, attempt INTEGER NOT NULL, at_ms INTEGER NOT NULL,
  fraction REAL,                        -- 0 to 1
  "values" TEXT NOT NULL,               -- a JSON object, or empty
  PRIMARY KEY (task, attempt, at_ms)
) WITHOUT ROWID;
CREATE TABLE samples (                  -- all machines that are there together
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
      l.exit_code) WHEN 5 THEN 'CANNOT_START' WHEN 6 THEN 'LOST' WHEN 7 THEN 'ERROR'
      ELSE 'CRASHED' END AS failure,
    coalesce(e.attempt, l.attempt, t.attempt_before) AS attempt,
    coalesce(e.started_ms, l.started_ms) / 1000.0 AS started_s,
    coalesce(e.ended_ms, l.ended_ms) / 1000.0 AS ended_s,
    coalesce(e.memory_peak, l.memory_peak) AS memory_peak,
    coalesce(e.memory_at_least, l.memory_at_least) AS memory_at_least,
    (SELECT m.name FROM machines m WHERE m.number = coalesce(e.machine, l.machine)
      AND m.execution = (SELECT max(x.number) FROM executions x
        WHERE x.started_ms <= coalesce(e.started_ms, l.started_ms))) AS machine,
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

const char* const kLastInstant = R"sql(
SELECT max(coalesce((SELECT at_ms FROM events ORDER BY seq DESC LIMIT 1), 0),
  coalesce((SELECT at_ms FROM samples ORDER BY number DESC LIMIT 1), 0),
  (SELECT max(max(started_ms, coalesce(ended_ms, 0))) FROM executions))
)sql";

}  // namespace trainyard::journal
