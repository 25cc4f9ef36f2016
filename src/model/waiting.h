// Why tasks wait, and the numbers that go with it. Plain values, and the words that they make
// together.
//
// The two are apart on purpose: a reason is reported when it changes, while what is free changes
// every second. Whoever shows a reason takes the numbers of the last reading.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/time.h"
#include "model/ids.h"
#include "model/promises.h"
#include "model/resources.h"

namespace trainyard::model {

/// In the order in which they are looked for.
enum class Cause : std::uint8_t {
  None,  ///< Nobody waits.
  Group,
  TriedFirst,  ///< Another task of their group is tried first.
  Needs,       ///< Tasks that they need themselves have not ended.
  Held,        ///< Somebody keeps them from starting.
  NotYet,      ///< They are to start no earlier than at a time.
  Queued,
  NoMachine,  ///< None is there, or none of those that are has been looked at.
  Elsewhere,  ///< None that is there is one on which they may run, as their `where` has it.
  NoTime,     ///< The machine is taken away before they are expected to end.
  KeeperSilent,
  StartsRefused,  ///< The machine is short of what starting a process needs, such as disk space.
  Processes,
  OthersUseCpu,
  Parallel,
  Cpus,
  Memory,
  Gpus,
  GpusLinger,  ///< The driver does not show to be free what ended tasks had.
  GpusGone,
  Settling,  ///< A task that has just begun on its GPU takes its memory first.
  Ahead,
  Reserved,
  Disk,
  GivesWay,  ///< Another run waits for it that has no more of the machine.
  GpuLimit,  ///< The runs of this user have as many GPUs as they may.
};

/// The word of a cause in files and in JSON: "gpus-linger"; empty for None.
std::string_view to_text(Cause cause);
/// None for what is no such word.
Cause cause_from(std::string_view text);
/// All causes but None.
std::vector<Cause> all_causes();
/// True if the cause is something that one machine lacks, so that the machine can be named.
bool is_of_machine(Cause cause);

/// Why the tasks of one shape wait.
struct Reason {
  Cause cause = Cause::None;
  /// The part of the request of the oldest task that the cause is about. With OthersUseCpu the
  /// CPUs, the memory and the disk space that the task requests.
  Request needs;
  /// `max-parallel` of the group, if that is the cause. With OthersUseCpu it is set if the group
  /// runs that many tasks.
  int parallel_max = 0;
  std::string groups;  ///< Where groups, or tasks of them, have to end first: their names, quoted.
  /// With StartsRefused: "cannot write 'runs/1/g/a/log': no inodes left on its disk".
  std::string refusal = {};
  /// The task that is tried first, if that is the cause, and since when it trains.
  std::optional<TaskIndex> first = std::nullopt;
  std::optional<Instant> first_since = std::nullopt;
  /// When they may start, where that is the cause.
  std::optional<Instant> not_before = std::nullopt;
  /// Where room is lacking that a machine has: the one whose Headroom says how much there is.
  MachineIndex machine = {};
  /// needs.sharing.max_per_gpu is what was measured to do the most work; nobody wrote it.
  bool per_gpu_measured = false;
  /// It is given GPUs of its own for as long as nobody knows how much memory it takes.
  bool own_until_known = false;
  /// The measured GPU memory of tasks of its kind, where it is to have whole GPUs.
  Bytes gpu_memory_seen = {};

  friend bool operator==(const Reason&, const Reason&) = default;
};

/// The maximum number of neighbours that the journal keeps.
constexpr std::size_t kNeighboursKept = 32;

/// The room that could be reserved at the last reading, and the holders of the rest.
struct Headroom {
  /// One GPU.
  struct Card {
    std::string label;
    bool present = true;
    bool whole = false;   ///< One task has it for its own.
    int holders = 0;      ///< Tasks that hold something of it.
    int tasks = 0;        ///< Number of the holders that are running.
    int utilization = 0;  ///< Sum of the `gpu-utilization` of running tasks, in thousandths.
    int tasks_max = 0;    ///< Smallest `max-per-gpu` of the running tasks; 0: no limit.
    Bytes free;           ///< Negative when more is in use than should be.
    Bytes of_others;
    Bytes lingering;  ///< Memory of ended tasks that the driver does not show as free yet.
    /// The user, by number, whose process keeps trainyard from using this GPU.
    std::optional<std::uint32_t> avoided_for;
    std::string uuid;
    bool drained = false;   ///< Somebody wants it back: nothing new is given of it.
    std::string name = {};  ///< "NVIDIA H200"
    /// Tasks that fit on another GPU avoid it, because it dropped out.
    bool last_resort = false;

    friend bool operator==(const Card&, const Card&) = default;
  };

  Instant at;         ///< When it was like this.
  Bytes memory_free;  ///< Negative when more is in use than should be.
  Bytes memory_held;
  Bytes memory_of_others;
  Bytes memory_kept_free = {};      ///< Not available to tasks; already taken off memory_free.
  std::string memory_kept_by = {};  ///< The setting that keeps it free: "remain-limit.memory".
  int holders = 0;                  ///< Tasks that hold memory.
  Cpus cpus;
  Cpus cpus_free;
  int cpu_holders = 0;
  double cpu_used_by_others = 0;
  double cpu_utilization_max = 1;  ///< utilization-limit.cpu
  int gpu_utilization_max = 1000;  ///< utilization-limit.gpu, in thousandths.
  int processes_max = 0;           ///< How many tasks run at once; 0 is no limit.
  std::string processes_reason;    ///< Why; empty where max-process says so.
  int ahead = 0;                   ///< Loaded, and not training yet.
  int waiting_max = 0;             ///< max-waiting; 0 is no limit.
  Duration try_first_time{0};      ///< How long who is tried first has to live.
  std::vector<Card> gpus;
  std::vector<Neighbour> neighbours;  ///< The other yards here, the older first.
  /// limits.gpus, where it says something now, and until when, for people.
  std::optional<int> gpus_max = std::nullopt;
  std::string gpus_max_until;
  /// Free space of the run's disk at the last reading, if it was read, and the space that is
  /// reserved for running tasks.
  std::optional<Bytes> disk_free = std::nullopt;
  Bytes disk_promised = {};
  int disk_holders = 0;  ///< Tasks that were promised some.

  friend bool operator==(const Headroom&, const Headroom&) = default;
};

/// For people: "needs 5 GB of memory, 4 GB available, 2 GB reserved or used by 1 task, other
/// processes use 4 GB". Empty where nobody waits. `first` is the name of Reason::first.
std::string reason_text(const Reason& reason, const Headroom& room, std::string_view first = {});

/// The same without any numbers that change from reading to reading: "needs 5 GB of memory", "needs
/// 4 GB on its GPU, and no more tasks may share a GPU".
std::string brief_reason_text(const Reason& reason, const Headroom& room);

/// Why a task that waits because other processes use the CPUs would wait without that limit, too:
/// Parallel, Cpus, Memory or Disk. The cause is None if the limit alone holds the task back.
Reason without_cpu_limit(Reason reason, const Headroom& room);

/// The action of a user that helps.
struct Help {
  enum class Where : std::uint8_t {
    Nowhere,  ///< There is nothing but to wait.
    Shell,    ///< Shows more.
    Resume,   ///< Behind "trainyard run --resume DIRECTORY", when the run has been ended.
    JobFile,  ///< A key of the task or its group; for a run that is resumed.
  };
  Where where = Where::Nowhere;
  std::string line;  ///< To type.

  friend bool operator==(const Help&, const Help&) = default;
};

/// "shell", "resume", "job-file"; empty where nothing helps.
std::string_view to_text(Help::Where where);

/// The help against the reason as it is shown, for tasks of that batch. Tasks of a later batch than
/// the first use the submitted text, so no key of a file helps them.
Help help_for(const Reason& reason, const Headroom& room, std::uint32_t batch);

/// "3.6 GB on its GPU", "2 whole GPUs".
std::string gpu_promise_text(const Request& promise);

/// In the message of a task that ran out of the memory of a GPU that was not assigned to it.
constexpr std::string_view kReservesNoGpu = "the task reserves no GPU";

}  // namespace trainyard::model
