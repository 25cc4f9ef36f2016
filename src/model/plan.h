// The work to run, as the scheduler sees it: groups, shapes and tasks, without names, commands and
// files. A run grows by one Plan after the other, a batch each: its job file, and later
// submissions. A plan is made once and not changed afterwards. Small on purpose: a run of a million
// tasks holds a million PlannedTasks.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/time.h"
#include "model/ids.h"
#include "model/resources.h"
#include "model/status.h"
#include "model/terms.h"

namespace trainyard::model {

struct PlannedGroup {
  std::string name;
  /// How people tell it from one of its name in an earlier batch: "train (2)". Empty: its name.
  std::string called;
  /// Where its tasks have their directories, seen from the run directory; empty: there itself.
  std::string directory;
  /// Groups of the same plan that must have ended without a failure. No cycles.
  std::vector<GroupIndex> needs;
  /// The same of earlier batches; these are numbered over the whole run.
  std::vector<GroupIndex> needs_earlier;
  /// Groups of the same plan of which each of its tasks needs only some: Plan::task_needs says
  /// which.
  std::vector<GroupIndex> needs_by_task;
  int parallel_max = 0;    ///< How many of its tasks at once; 0 is no limit.
  bool fail_fast = false;  ///< The first failure ends the group.
  bool try_first = false;  ///< One of its tasks is tried before the others start.

  /// The name that users see.
  [[nodiscard]] const std::string& shown() const { return called.empty() ? name : called; }
  /// shown(), in quotes if it has a space, so that "8 of 'train (4)'" is no count.
  [[nodiscard]] std::string shown_in_list() const {
    return shown().contains(' ') ? "'" + shown() + "'" : shown();
  }

  friend bool operator==(const PlannedGroup&, const PlannedGroup&) = default;
};

/// The tasks of one group that have the same terms.
struct Shape {
  GroupIndex group;
  Terms terms;

  friend bool operator==(const Shape&, const Shape&) = default;
};

struct PlannedTask {
  ShapeIndex shape;
  /// The number that its next attempt gets: 1, or more when a resumed run has tried it before.
  std::uint32_t first_attempt = 1;
  /// Its verdict in an earlier execution of the run: counted, and not run again, unless a user asks
  /// for it (RetryAsked), or it was not needed and is behind what runs again. None: it is to be
  /// run.
  Verdict before = Verdict::None;

  [[nodiscard]] bool is_open() const { return before == Verdict::None; }
  [[nodiscard]] bool finished_before() const { return before == Verdict::Finished; }

  friend bool operator==(const PlannedTask&, const PlannedTask&) = default;
};

/// A task of which another must have ended first, beside what its group needs: the training of its
/// own cell, say.
struct TaskNeed {
  TaskIndex task;
  TaskIndex needed;  ///< Of the same plan, and of another group: one of needs_by_task.

  friend auto operator<=>(const TaskNeed&, const TaskNeed&) = default;
};

/// Commands of the user about a task while the run was active. They hold until they are changed,
/// also in a run that is resumed.
struct SaidOfTask {
  TaskIndex task;
  bool on_hold = false;         ///< It does not start until it is released.
  std::optional<int> priority;  ///< Instead of that of its terms.

  friend bool operator==(const SaidOfTask&, const SaidOfTask&) = default;
};

/// How often the memory of a task has run out so far, and for whose fault it did not count.
struct MemoryTries {
  std::uint8_t load = 0;
  std::uint8_t train = 0;
  std::uint8_t preempted = 0;
  std::uint8_t crowded = 0;

  friend bool operator==(const MemoryTries&, const MemoryTries&) = default;
};

/// The request of a task since it ran out of memory or was interrupted for memory: a run that is
/// resumed continues with it.
struct Reached {
  TaskIndex task;
  Bytes memory;  ///< Of the host.
  /// The most that it has asked for on each of its GPUs; 0: never less than all.
  Bytes gpu_memory;
  bool largest = false;  ///< Its GPUs are its own now, and the largest that there are.
  MemoryTries tries;

  friend bool operator==(const Reached&, const Reached&) = default;
};

/// The memory used by a task that had finished before the run was resumed; 0 where it was not
/// sampled.
struct TakenBefore {
  TaskIndex task;
  Bytes memory;
  Bytes gpu_memory;          ///< On that of its GPUs where it had most.
  Bytes gpu_memory_written;  ///< Its request there, before anything was learned.

  friend bool operator==(const TakenBefore&, const TakenBefore&) = default;
};

/// The message of the last attempt of a task that had failed by itself before the run was resumed,
/// as the journal has it.
struct FailedBefore {
  TaskIndex task;
  std::string message;

  friend bool operator==(const FailedBefore&, const FailedBefore&) = default;
};

/// The measured price of sharing GPUs for the tasks of a shape. Reported when it is known, and when
/// it has changed by more than a little.
struct SharingMeasured {
  ShapeIndex shape;
  int to_a_gpu = 0;   ///< With so many to a GPU most work is done; 0: one was not measured alone.
  double factor = 0;  ///< Times the work of one to a GPU.
  int tasks = 0;      ///< That were measured so.
  int to_a_gpu_max = 0;  ///< No more are let onto one, as it gains nothing; 0: any number is.

  friend bool operator==(const SharingMeasured&, const SharingMeasured&) = default;
};

/// Groups, shapes and tasks are numbered from 0 within a plan.
struct Plan {
  std::vector<PlannedGroup> groups;
  std::vector<Shape> shapes;         ///< In the order in which the first task of each comes.
  std::vector<PlannedTask> tasks;    ///< In the order of the job file: group by group.
  std::vector<TaskNeed> task_needs;  ///< By task, then by what it needs; each once.
  // Of a run that is resumed. Most tasks have neither.
  std::vector<Reached> reached;    ///< Of tasks that have not finished, each once.
  std::vector<TakenBefore> taken;  ///< In the order in which they finished.
  std::vector<SaidOfTask> said;    ///< Each task once.
  /// Measurements of earlier runs for some of the shapes: they hold until this run has its own.
  std::vector<SharingMeasured> sharing;
  std::vector<FailedBefore> failed;  ///< Each task once.

  [[nodiscard]] const Shape& shape_of(TaskIndex task) const {
    return shapes[tasks[task.value].shape.value];
  }

  friend bool operator==(const Plan&, const Plan&) = default;
};

/// Where the numbers of a plan begin in a run that has others before it.
struct PlanStart {
  std::uint32_t group = 0;
  std::uint32_t shape = 0;
  std::uint32_t task = 0;

  friend bool operator==(const PlanStart&, const PlanStart&) = default;
};

/// Adds a plan to those of the batches before it, with its numbers moved; returns by how much.
PlanStart append(Plan& whole, const Plan& next);

/// The order of the GPUs where a task fits: it gets the first.
enum class GpuStrategy : std::uint8_t {
  Pci,              ///< By their place on the bus.
  TotalMemory,      ///< The largest.
  RemainingMemory,  ///< The emptiest.
  Performance,      ///< The fastest.
  BestFit,          ///< The one with the least left beside it, so that large gaps stay whole.
  /// Those without a task, as far as the user's share of the GPUs goes; then as BestFit.
  IdleFirst,
};

/// How the scheduler may use the machine. fedflow's keys, resolved to plain numbers.
struct Policy {
  double cpu_utilization_max = 0.8;                 ///< utilization-limit.cpu, of use by others
  double memory_utilization_max = 1.0;              ///< utilization-limit.memory, of the whole
  Bytes memory_remain;                              ///< remain-limit.memory
  GpuStrategy gpu_strategy = GpuStrategy::BestFit;  ///< gpu-priority.strategy
  bool gpu_reverse = false;                         ///< gpu-priority.reverse
  /// other-users: a GPU on which another user's process computes is not taken.
  bool gpu_avoids_others = true;
  double gpu_memory_utilization_max = 1.0;  ///< utilization-limit.cuda-memory, of each GPU
  /// utilization-limit.gpu: how much of a GPU those may use together that share it, as far as it is
  /// written.
  double gpu_utilization_max = 1.0;
  /// remain-limit.cuda-memory; nothing: 4 GB or a tenth of the GPU, whichever is less.
  std::optional<Bytes> gpu_memory_remain;
  /// scheduler.default-cuda-memory: so much must be free of a GPU that is given as a whole.
  Bytes gpu_memory_least;
  int processes_max = 0;  ///< scheduler.max-process; 0 is no limit
  int waiting_max = 0;    ///< scheduler.max-waiting; 0 is no limit
  int load_retries = 3;   ///< scheduler.load-nretry
  int train_retries = 3;  ///< scheduler.train-nretry
  /// scheduler.machine-patience: how long a machine may refuse to start tasks before the run ends.
  Duration machine_patience{600'000};
  /// scheduler.auto-adjust: learn from what tasks take what the next ones need.
  bool auto_adjust = false;
  /// Play the run through before it begins, where it is known how long tasks take.
  bool looks_ahead = true;
  /// Between TERM and KILL.
  Duration stop_grace{10'000};
  /// Once the oldest waiting task has been passed so often, or has waited so long since it was
  /// first passed (or ten times as long as tasks usually train, if that is longer), what it needs
  /// is reserved.
  int passes_max = 32;
  Duration passed_time_max{60'000};
  /// Interrupt a task before the kernel's out-of-memory killer chooses one.
  bool watches_memory = false;
  /// The kernel enforces `memory-limit: hard`, instead of readings.
  bool kernel_keeps_limits = false;
  /// How long the memory of an ended task is kept back that the driver does not show to be free.
  Duration gpu_linger_max{10'000};
  /// scheduler.settle-time: how long others may have to wait for a task that has begun on a GPU
  /// they would share to take its memory there; 0: nobody waits.
  Duration gpu_settle_max{0};
  /// How long tasks wait for a GPU to come back that does not answer, when they fit nowhere else.
  Duration gpu_gone_max{60'000};
  /// How long a GPU must answer after its first drop-out before tasks start on it again. The time
  /// doubles with each drop-out, but not for tasks that fit on no other GPU
  /// (model/gpu_presence.h).
  Duration gpu_steady_after{10'000};
  /// scheduler.try-first-time: how long one that is tried first has to live.
  Duration try_first_time{120'000};
};

}  // namespace trainyard::model
