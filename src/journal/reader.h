// Reads a journal, also that of a living run: for status, logs, tables and reports. Read-only,
// never blocks the yard. One thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "base/time.h"
#include "journal/journal.h"
#include "model/code.h"
#include "model/command.h"
#include "model/ids.h"
#include "model/plan.h"
#include "model/resources.h"
#include "model/stage_times.h"
#include "model/status.h"
#include "model/waiting.h"

namespace trainyard::journal {

struct ExecutionRow {
  std::int64_t number = 0;  ///< From 1; more than 1 after a resume.
  std::int64_t yard_pid = 0;
  std::string host;
  std::string run_directory;  ///< At that time: absolute, links followed.
  std::string socket_path;
  std::string command_line;
  std::string version;
  std::string job_file;
  std::string git_commit;
  std::string config_file;            ///< The one that was read, absolute, or empty.
  std::vector<std::string> settings;  ///< Each --set, but for secrets.
  std::int64_t started_unix_ms = 0;
  Instant started;
  std::optional<Instant> ended;  ///< Nothing: it runs, or died.
  std::string how;       ///< Its end, in words; set before `ended` if it stops for an interrupt.
  Duration forecast{0};  ///< Its expected time; 0: unknown.
  Duration forecast_at_the_worst{0};  ///< The same if sharing GPUs gains nothing.

  /// Whether this is an execution of a program that uses the library. Such a run has no job file,
  /// and is resumed by running the program again.
  [[nodiscard]] bool is_of_program() const { return job_file.empty(); }
  /// Whether a user or a signal has interrupted it: its tasks end, or have ended.
  [[nodiscard]] bool is_interrupted() const { return how.starts_with(kInterrupted); }
};

/// A GPU that tasks of an execution might have.
struct GpuRow {
  std::int64_t execution = 0;
  std::string machine;  ///< As in TaskRow::machine.
  std::string label;    ///< As in TaskRow::gpus.
  std::string name;     ///< Its model.
  Bytes memory;
};

/// A machine on which tasks of an execution may run, or might before it went.
struct MachineRow {
  std::string name;
  model::Cpus cpus;
  Bytes memory;
  Instant joined;  ///< The last time.
  std::optional<Instant> gone;
  std::string why;                               ///< It is gone.
  std::optional<Instant> silent = std::nullopt;  ///< Since when it does not answer.
  std::optional<Instant> until = std::nullopt;   ///< The time when it is taken away.
  std::vector<GpuRow> gpus;
};

struct BatchRow {
  std::uint32_t number = 1;
  BatchSource source;
  Instant added;  ///< The time when it began to count.
};

/// A task that needs another one itself.
struct TaskNeedRow {
  model::TaskIndex task;
  model::TaskIndex needed;

  friend bool operator==(const TaskNeedRow&, const TaskNeedRow&) = default;
};

/// The directory of a task's files, seen from the run directory, and the last attempt there.
struct TaskPlace {
  std::string directory;
  std::uint32_t attempt = 0;  ///< 0 before the first.
};

struct GroupRow {
  model::GroupIndex index;  ///< Its number, the same in all executions.
  std::uint32_t batch = 1;
  std::string name;  ///< Its name for users: "train (2)" if an earlier batch has a "train".
  model::GroupPhase phase = model::GroupPhase::Blocked;
  std::string message;
  int tasks = 0;
  int finished = 0;
  int failed = 0;
  int skipped = 0;       ///< A task that they need failed, or they were killed before they started.
  int not_needed = 0;    ///< Nothing failed for which they were to run.
  int not_selected = 0;  ///< Others alone were asked for.
  int out_of_date = 0;   ///< Finished tasks that are out of date, as TaskRow::out_of_date.
  std::vector<std::string> needs;  ///< Groups of its own batch, by their names in the job file.
  /// The groups of which its tasks need only some tasks each: JournalReader::needs_of().
  std::vector<std::string> needs_tasks;
  std::string name_in_file;  ///< Its name in the job file itself.
  std::string why_skipped;  ///< The reason of one of them, if the group's message does not have it.
  /// The tasks that it needs have finished after its tasks were skipped for that.
  bool needs_finished_since = false;
  int stopped = 0;
  int running = 0;    ///< AVAILABLE to TRAINING
  int lost = 0;       ///< The same in a run that died: the journal does not know of it,
  bool died = false;  ///< and neither that the group does not run any more.
  int retrying = 0;   ///< INTERRUPT
  int waiting = 0;    ///< The rest

  friend bool operator==(const GroupRow&, const GroupRow&) = default;
};

struct TaskRow {
  model::TaskIndex index;  ///< Its number, the same in all executions.
  model::GroupIndex group;
  std::string group_name;   ///< As in GroupRow.
  std::uint32_t shape = 0;  ///< The journal's number of what it requests.
  std::string id;
  model::Standing standing;
  Stage stage = Stage::Train;
  std::uint32_t attempt = 0;             ///< The last one; 0 before the first.
  std::int64_t pid = 0;                  ///< 0 when it does not run.
  std::optional<Instant> started;        ///< Start of the last attempt.
  std::optional<Instant> first_started;  ///< Start of the first attempt that began.
  std::optional<Instant> ended;
  model::Cpus cpus_requested;
  Bytes memory_requested;
  Bytes memory_now;   ///< Last sample.
  Bytes memory_peak;  ///< Peak of the last attempt.
  Duration cpu_time{0};
  std::string result;  ///< JSON object as text, or empty.
  std::string warning;
  std::string message;    ///< The reason why it failed or was skipped.
  std::string traceback;  ///< All that the last attempt said of its failure; often empty.
  std::vector<std::pair<std::string, std::string>> matrix;
  model::StageTimes times;
  std::optional<double> progress;  ///< 0 to 1, as the last attempt told it last.
  std::string progress_values;     ///< A JSON object as text, or empty.
  /// The machine of its last attempt, "lab1"; empty: no attempt, or not recorded.
  std::string machine;
  std::string gpus;            ///< The driver's numbers of those it has or had: "0,2"; empty: none.
  Bytes gpu_memory_requested;  ///< On each of them; 0: they are its own.
  Bytes gpu_memory_now;
  Bytes gpu_memory_peak;
  bool edited = false;  ///< After it had finished: the job file says something else since.
  /// It has finished, and what it needs, or what this needs, ran after it had started: it was made
  /// from what is no longer there.
  bool out_of_date = false;
  std::uint32_t batch = 1;
  model::TaskIndex in_batch;     ///< Its place in the plan of its batch.
  std::string directory;         ///< The directory of its files, seen from the run directory.
  bool memory_at_least = false;  ///< memory_peak is that of its largest process alone.
  bool gpu_capped = false;       ///< It could not have more of a GPU than it had.
  std::string group_in_file;     ///< Its group as the job file calls it.
  Bytes gpu_memory_max;          ///< Its limit on each of its GPUs; 0: none.
  std::string capped_by;         ///< Enforcer of that limit, "torch 2.10.0"; empty: none.
  /// The code that the last attempt ran, "a1b2c3d+9f3e21"; empty: unknown.
  std::string code;
  /// The code that was started last from the same work tree, if it is another; else empty.
  std::string newer_code;
  /// Sum of the durations of all attempts before the last one, without the time between them.
  Duration earlier_attempts{0};
  Bytes memory_planned;      ///< Before retries that reserved more.
  Bytes gpu_memory_planned;  ///< The same, on each GPU.
  Duration time_limit{0};    ///< Limit of one attempt, as the job has it; 0: none.
  /// The last one that a retry gave the task. The next retry starts with that of the job again. 0:
  /// no retry gave one.
  Duration retry_time_limit{0};
  Duration signal_before_term{0};  ///< Time from its signal to TERM; 0: only TERM comes.
  std::optional<Instant> retry_at = std::nullopt;  ///< As of model::TaskChanged.
  bool with_group = false;                         ///< As of model::TaskChanged.
};

/// Progress that an attempt reported.
struct ProgressRow {
  model::TaskIndex task;
  std::uint32_t attempt = 0;
  Instant at;
  std::optional<double> fraction;
  std::string values;  ///< A JSON object as text, or empty.
};

struct AttemptRow {
  model::AttemptKey key;
  Instant started;
  std::optional<Instant> ended;
  model::Failure failure = model::Failure::None;
  int exit_code = 0;
  Bytes memory_peak;
  std::string message;
  std::string machine;  ///< As of a task.
  std::string gpus;     ///< As of a task.
  Bytes gpu_memory_peak;
  bool memory_at_least = false;  ///< As of a task.
  std::string code;              ///< As of a task.
};

struct WaitingReason {
  std::string group_name;
  std::uint32_t shape = 0;  ///< As TaskRow::shape.
  int tasks = 0;            ///< The number of tasks waiting in this shape.
  Bytes memory;             ///< The request of each.
  model::Cpus cpus;         ///< The same.
  model::Cause cause = model::Cause::None;
  std::string machine;  ///< On which room is lacking; empty where that is not the cause.
  std::string reason;   ///< In words, with the numbers of the last reading.
  model::Help help;
};

/// Learned estimates for the next tasks of a kind, from the usage of others in this run.
struct LearnedRow {
  std::string group_name;
  Bytes memory;      ///< 0: as they ask.
  Bytes gpu_memory;  ///< The same, on each GPU.
  int tasks = 0;     ///< Successful tasks that taught it; 0: others of their group.
};

/// The measured effect of sharing GPUs for the tasks of a kind in this run.
struct SharingRow {
  std::string group_name;
  model::SharingMeasured measured;  ///< Its shape is not known here.
};

/// A look at the machines: all that were there together.
struct SampleRow {
  Instant at;
  Bytes memory_available;
  Bytes memory_of_tasks;
  double cpu_used_by_others = 0;
};

class JournalReader {
 public:
  static Result<JournalReader> open(const std::string& path);
  JournalReader(JournalReader&&) noexcept;
  JournalReader& operator=(JournalReader&&) noexcept;
  ~JournalReader();

  /// A consistent view for the calls until the next refresh(); open() makes the first.
  Result<void> refresh();

  /// Releases the view. A caller that waits between two looks calls this, because the yard cannot
  /// shorten its log under a view that is held. Calls until the next refresh() each see their own
  /// moment.
  Result<void> rest();

  Result<std::string> job_name();
  Result<std::vector<ExecutionRow>> executions();
  Result<std::vector<GpuRow>> gpus();
  Result<std::vector<MachineRow>> machines();  ///< Those of the last execution, in their order.
  /// The batches of the run: its job file, and its submissions.
  Result<std::vector<BatchRow>> batches();
  /// Costs O(groups + shapes), and O(tasks) only where tasks or groups need others.
  Result<std::vector<GroupRow>> groups();
  Result<std::vector<WaitingReason>> waiting();
  Result<std::vector<LearnedRow>> learned();
  Result<std::vector<SharingRow>> sharing();
  Result<std::optional<SampleRow>> last_sample();
  Result<Instant> last_instant();  ///< Of the last row of any kind.

  struct TaskFilter {
    std::optional<model::GroupIndex> group;
    bool running = false;       ///< Only those that run or retry.
    bool failed = false;        ///< Only those that failed.
    bool warned = false;        ///< Only those that have ended with a warning about their result.
    std::int64_t at_most = -1;  ///< -1: all.
  };
  /// In the order of the batches and of their job files; `row` returns false to stop.
  Result<void> tasks(const TaskFilter& filter, std::move_only_function<bool(TaskRow)> row);
  /// The directories of the files of all tasks, seen from the run directory; also of those that are
  /// in no job file any more.
  Result<std::vector<std::string>> task_directories();
  /// The directories of tasks that have not finished, in their order. Tasks of a job file that was
  /// edited may share one: the attempt is the last of all of them.
  Result<std::vector<TaskPlace>> unfinished_places();
  /// All pairs of a task and a task that it needs itself.
  Result<std::vector<TaskNeedRow>> task_needs();
  /// The number of tasks that have ended with a warning. Costs O(that number).
  Result<int> count_warned();
  /// Whether attempts ran several codes of a work tree, so that TaskRow::newer_code may be set.
  Result<bool> has_several_codes();
  struct FinishedCode {
    model::Code code;
    int tasks = 0;
  };
  /// The number of finished tasks for each known code, the code of most tasks first.
  Result<std::vector<FinishedCode>> finished_codes();
  Result<std::optional<TaskRow>> find(model::TaskIndex task);
  /// Costs O(tasks).
  Result<std::optional<TaskRow>> find(std::string_view group, std::string_view id);
  /// The result of a task (empty: none), by its place in the plan of its batch; std::nullopt if
  /// there is no such task. Costs O(1), and knows nothing else of the task.
  Result<std::optional<std::string>> find_result(std::uint32_t batch, model::TaskIndex in_batch);
  /// Tasks whose id or "group/id" is this, and ids that come near when none is (at most 3).
  struct Lookup {
    std::vector<TaskRow> found;
    std::vector<std::string> near;
  };
  Result<Lookup> look_up(std::string_view name);
  Result<std::vector<AttemptRow>> attempts(model::TaskIndex task);
  /// Whether a two-phase attempt has said that it trains and that its end tells the rest.
  Result<bool> its_end_tells(model::AttemptKey key);
  Result<std::vector<AttemptRow>> attempts_of(model::GroupIndex group);
  /// Reads the progress of the last attempt of each task of a group, thinned, in the order of the
  /// job file, then of time. `row` returns false to stop.
  Result<void> progress_of(model::GroupIndex group, std::move_only_function<bool(ProgressRow)> row);
  Result<std::vector<SampleRow>> samples();  ///< Thinned: at most 4,096 rows.

 private:
  struct State;
  explicit JournalReader(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace trainyard::journal
