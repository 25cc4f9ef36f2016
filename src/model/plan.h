// What is to be run, as the scheduler sees it: groups, shapes and tasks, without names, commands
// and files. Made once from the job file and not changed afterwards. Small on purpose: a run of a
// million tasks holds a million PlannedTasks.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/time.h"
#include "model/ids.h"
#include "model/resources.h"

namespace trainyard {

struct PlannedGroup {
  std::string name;
  std::vector<GroupIndex> needs;  ///< Groups that must have ended without a failure. No cycles.
  int parallel_max = 0;           ///< How many of its tasks at once; 0 is no limit.
  bool fail_fast = false;         ///< The first failure ends the group.
};

/// A signal that comes a while before any TERM, so that a task can save what it has.
struct EarlySignal {
  int number = 0;  ///< 0: none.
  Duration before{0};
  friend auto operator<=>(const EarlySignal&, const EarlySignal&) = default;
};

/// The tasks of one group that ask for the same.
struct Shape {
  GroupIndex group;
  Request request;
  Duration time_limit{0};  ///< Of one attempt, waiting for a device left out; 0 is none.
  /// Loads first, says so, and waits for a device to train on. Else it trains from its start.
  bool two_phase = false;
  /// How many processes each of its tasks has; 0: one, that of its command. Of several none trains
  /// again when memory ran out, as the others wait for it: all of them start over.
  int ranks = 0;
  /// A task that takes more memory than it was promised is ended.
  bool memory_hard = false;
  /// It may be interrupted, to be tried again, when the machine's memory runs short.
  bool preemptible = true;
  EarlySignal early_signal;  ///< Its time is under the time limit, where there is one.
  /// How long its tasks are expected to load and to train; 0: nobody knows.
  Duration load_expected{0};
  Duration train_expected{0};
  /// Nobody said how much memory of the host it needs: that is to be learned, too.
  bool learns_memory = false;
  /// What it needs of a GPU's memory is to be learned: until it is known, it gets GPUs of its own.
  bool learns_gpu_memory = false;
};

struct PlannedTask {
  ShapeIndex shape;
  /// The number that its next attempt gets: 1, or more when a resumed run has tried it before.
  std::uint32_t first_attempt = 1;
  /// Ended well in an earlier execution of the run: counted, and not run again.
  bool finished_before = false;
};

struct Plan {
  std::vector<PlannedGroup> groups;
  std::vector<Shape> shapes;       ///< In the order in which the first task of each comes.
  std::vector<PlannedTask> tasks;  ///< In the order of the job file: group by group.

  [[nodiscard]] const Shape& shape_of(TaskIndex task) const {
    return shapes[tasks[task.value].shape.value];
  }
};

/// Which of the GPUs where a task fits it gets: the first by this order.
enum class GpuStrategy : std::uint8_t {
  Pci,              ///< By their place on the bus.
  TotalMemory,      ///< The largest.
  RemainingMemory,  ///< The emptiest.
  Performance,      ///< The fastest.
  BestFit,          ///< The one with the least left beside it, so that large gaps stay whole.
};

/// How the scheduler may use the machine. fedflow's keys, resolved to plain numbers.
struct Limits {
  double cpu_utilization_max = 0.8;                 ///< utilization-limit.cpu, of use by others
  double memory_utilization_max = 1.0;              ///< utilization-limit.memory, of the whole
  Bytes memory_remain;                              ///< remain-limit.memory
  GpuStrategy gpu_strategy = GpuStrategy::BestFit;  ///< gpu-priority.strategy
  bool gpu_reverse = false;                         ///< gpu-priority.reverse
  /// other-users: a GPU on which another user's process computes is not taken.
  bool gpu_avoids_others = true;
  double gpu_utilization_max = 1.0;  ///< utilization-limit.cuda-memory, of each GPU's memory
  /// remain-limit.cuda-memory; nothing: 4 GB or a tenth of the GPU, whichever is less.
  std::optional<Bytes> gpu_memory_remain;
  /// scheduler.default-cuda-memory: so much must be free of a GPU that is given as a whole.
  Bytes gpu_memory_least;
  int processes_max = 0;  ///< scheduler.max-process; 0 is no limit
  int waiting_max = 0;    ///< scheduler.max-waiting; 0 is no limit
  int load_retries = 3;   ///< scheduler.load-nretry
  int train_retries = 3;  ///< scheduler.train-nretry
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
  /// What `memory-limit: hard` promises is kept by the kernel, not by looking.
  bool kernel_keeps_limits = false;
  /// How long the memory of an ended task is kept back that the driver does not show to be free.
  Duration gpu_linger_max{10'000};
  /// How long tasks wait for a GPU to come back that does not answer, when they fit nowhere else.
  Duration gpu_gone_max{60'000};
};

}  // namespace trainyard
