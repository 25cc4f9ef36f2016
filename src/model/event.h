// The events of the yard. Everything that the scheduler learns is one of these, and the journal of
// a run is a list of them.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/bytes.h"
#include "base/time.h"
#include "model/code.h"
#include "model/ids.h"
#include "model/plan.h"
#include "model/promises.h"
#include "model/resources.h"

namespace trainyard::model {

/// How a process came to its end, as the operating system says it.
struct ExitedWith {
  int code = 0;
  friend bool operator==(const ExitedWith&, const ExitedWith&) = default;
};
struct KilledBy {
  int signal = 0;
  /// The kernel's out-of-memory killer was seen at work when it happened.
  bool out_of_memory = false;
  /// It was at work because the attempt needed more than it may have at most.
  bool over_limit = false;
  friend bool operator==(const KilledBy&, const KilledBy&) = default;
};
/// There never was a process. `why` is for people: "cannot run './train': no such file".
struct NotStarted {
  std::string why;
  /// The machine could not start any task, as it is short of something: not the task's fault.
  bool of_machine = false;
  friend bool operator==(const NotStarted&, const NotStarted&) = default;
};
/// Nobody can say: whoever watched the process is gone.
struct Vanished {
  std::string why;
  friend bool operator==(const Vanished&, const Vanished&) = default;
};
using End = std::variant<ExitedWith, KilledBy, NotStarted, Vanished>;

/// How one of several ranks has ended: "rank 2 exited with code 7".
std::string to_text(int rank, const End& end);

/// The process of an attempt exists.
struct AttemptStarted {
  AttemptKey key;
  std::int64_t pid = 0;
  /// What limits its memory on its GPUs: "torch 2.10.0"; empty: nothing.
  std::string capped_by;
  /// When whoever watches the process saw it begin. The event itself may come later, as from a yard
  /// that was stopped meanwhile. Nothing: nobody knows better than the event.
  std::optional<Instant> began = std::nullopt;
  /// The last known version of the code that it runs: CodeFound has the one found after its start.
  std::optional<Code> code = std::nullopt;

  friend bool operator==(const AttemptStarted&, const AttemptStarted&) = default;
};

/// How each rank of an attempt with several ranks ended.
struct RanksAtEnd {
  /// The rank that failed first, whose end is that of the attempt. Nothing when none failed before
  /// the attempt was stopped.
  std::optional<int> failed;
  /// Those that had ended well by then, in the order of their ends.
  std::vector<int> finished;
  /// The one that had the most memory at once, as far as they were looked at.
  std::optional<int> largest;
  Bytes largest_memory;  ///< Its memory then; 0 when none was ever sampled.

  friend bool operator==(const RanksAtEnd&, const RanksAtEnd&) = default;
};

/// The attempt and everything it started are gone.
struct AttemptEnded {
  AttemptKey key;
  End end;
  Usage usage;
  std::string result;   ///< The JSON object it left, as text; empty when it left none.
  std::string warning;  ///< The mistake in the result, for users; empty when there is none.
  /// Its message about running out of memory, when it failed; empty when it printed none.
  std::string out_of_memory;
  bool of_gpu = false;  ///< That was memory of a GPU.
  /// The last thing on its standard error, or where that is empty on its standard output, when it
  /// ended badly; empty when there was nothing.
  std::string last_words;
  /// It ended badly, and its checkpoint directory has an entry from before its start.
  bool has_checkpoint = false;
  RanksAtEnd ranks;
  /// When whoever watches the attempt saw the last process that it had started end; as `began` of
  /// AttemptStarted.
  std::optional<Instant> ended = std::nullopt;
  /// False: it is known to have exited, or to have been exiting, before TERM or KILL reached any of
  /// its processes.
  bool told_to_end = true;

  friend bool operator==(const AttemptEnded&, const AttemptEnded&) = default;
};

/// The messages of a process of a two-phase attempt about itself.
enum class Said : std::uint8_t {
  Loading,      ///< It can be reached, and loads.
  Loaded,       ///< It has loaded, and waits for its device with what it loaded.
  Training,     ///< It trains, and has trained when it ends with exit code 0: a shell script.
  Trained,      ///< It has trained, and is about to end.
  OutOfMemory,  ///< Its work ran out of memory. When that was training it waits for its device
                ///< again, with what it loaded; else it is about to end.
  Failed,       ///< Its work failed, and it is about to end.
  Nonsense,     ///< Nobody can say what.
};

/// "loading", "loaded", "training", "trained", "out_of_memory", "failed", "nonsense".
std::string_view to_text(Said said);

struct StageReported {
  AttemptKey key;
  Said said = Said::Loading;
  std::string message;    ///< For people, of what went wrong: "ValueError: no such file".
  bool of_gpu = false;    ///< The memory that it ran out of was that of a GPU.
  std::string traceback;  ///< All there is to say of it, in many lines; often empty.
  /// The framework that will keep a loaded task to its cap of GPU memory: "torch 2.4.1". Empty: the
  /// task knows none.
  std::string capped_by;

  friend bool operator==(const StageReported&, const StageReported&) = default;
};

/// The progress that an attempt reports, now and then: the last report counts.
struct Progressed {
  AttemptKey key;
  std::optional<double> fraction;  ///< 0 to 1.
  std::string values;              ///< A JSON object, as text; empty when it gave none.

  friend bool operator==(const Progressed&, const Progressed&) = default;
};

struct TaskSample {
  AttemptKey key;
  Bytes memory;  ///< Anonymous memory of its process tree now.

  friend bool operator==(const TaskSample&, const TaskSample&) = default;
};

/// The disk that the run's directory lies on.
struct DiskRoom {
  Bytes free;   ///< The space that this user may still write.
  Bytes total;  ///< The size of the disk.

  friend bool operator==(const DiskRoom&, const DiskRoom&) = default;
};

/// A machine is there, for the first time or again: attempts may be started on it once it has been
/// looked at, and its GPUs, where it has some.
struct MachineJoined {
  MachineIndex machine;  ///< The next one, or one that was there before.
  std::string name;      ///< "lab1"; as it was, where it was there before.
  Capacity capacity;     ///< May be another than before.
  /// When it is taken away, with all that runs there; nothing: no such time is known.
  std::optional<Instant> until = std::nullopt;

  friend bool operator==(const MachineJoined&, const MachineJoined&) = default;
};

/// Nothing can be started on a machine any more, unless it joins again. The ends of all attempts
/// there are reported before; and before these, the silence of its keeper, so that none was started
/// in their place.
struct MachineGone {
  MachineIndex machine;
  std::string why;  ///< For people: "nothing was heard of it for 60 s".

  friend bool operator==(const MachineGone&, const MachineGone&) = default;
};

/// A machine was looked at.
struct Sampled {
  Bytes memory_available;         ///< Available to new work now, as the kernel says.
  double cpu_used_by_others = 0;  ///< 0 to 1 of the CPUs that are ours, since the last look.
  std::vector<TaskSample> tasks;  ///< The running attempts, in order of task.
  /// Nothing: not read, as no task requests disk space, or unknown.
  std::optional<DiskRoom> disk = std::nullopt;
  MachineIndex machine = {};

  friend bool operator==(const Sampled&, const Sampled&) = default;
};

/// How a GPU is now.
struct GpuReading {
  bool present = true;  ///< False: it does not answer any more, as one that fell off the bus.
  Bytes used;           ///< By whomever: what the driver does not call free.
  Bytes of_strangers;   ///< Used by processes of no task, where that is known.
  /// Whether the driver says which process has how much. In a container it may not.
  bool processes_known = true;
  /// 0 to 1: how much of the time since the last look it was at work. Of slices, and in some
  /// containers, the driver does not tell it.
  std::optional<double> utilization = std::nullopt;
  /// The number of another user a process of whom computes there; of several the one with most. Not
  /// counted are our own other processes, those that draw, and those with next to nothing.
  std::optional<std::uint32_t> other_user = std::nullopt;

  friend bool operator==(const GpuReading&, const GpuReading&) = default;
};

/// The memory of a running attempt on a GPU: all its processes together.
struct GpuUse {
  AttemptKey key;
  GpuIndex gpu;
  Bytes memory;

  friend auto operator<=>(const GpuUse&, const GpuUse&) = default;
};

/// A GPU that was late, once it answers.
struct GpuFound {
  GpuIndex gpu;
  Gpu what;

  friend bool operator==(const GpuFound&, const GpuFound&) = default;
};

/// The GPUs of a machine were looked at.
struct GpusSampled {
  std::vector<GpuReading> gpus;  ///< One for each of Capacity::gpus, in order.
  std::vector<GpuUse> uses;      ///< In order.
  std::vector<GpuFound> found;   ///< Each once.
  /// Attempts have ended whose memory is free already, and their ends are the next events: no task
  /// starts before these, as the next one on their GPUs may be alone there.
  bool ends_follow = false;
  MachineIndex machine = {};

  friend bool operator==(const GpusSampled&, const GpusSampled&) = default;
};

/// Who starts and ends the processes of a machine does not answer any more, or answers again. What
/// runs goes on running meanwhile; what it is asked for is done when it answers. One that has died
/// is silent until another has taken its place: the attempts that ran are reported as vanished
/// before that answers.
struct KeeperSilent {
  bool silent = true;
  std::optional<std::int64_t> another = std::nullopt;  ///< The process that took its place.
  MachineIndex machine = {};

  friend bool operator==(const KeeperSilent&, const KeeperSilent&) = default;
};

/// The run is to end: somebody asked for it (Ctrl-C, TERM), or what it runs with is gone. The
/// second time it ends at once.
struct InterruptAsked {
  std::string why;  ///< For people: "the keeper of the tasks died"; empty where somebody asked.

  friend bool operator==(const InterruptAsked&, const InterruptAsked&) = default;
};

/// Somebody asked for one task to end. `request` is answered by an Answer with its number.
struct KillAsked {
  TaskIndex task;
  std::uint64_t request = 0;

  friend bool operator==(const KillAsked&, const KillAsked&) = default;
};

/// Somebody asked for one task that has ended, and has not finished, to be tried again: it begins
/// anew, with all its tries. `request` is answered by an Answer with its number.
struct RetryAsked {
  TaskIndex task;
  std::uint64_t request = 0;
  Bytes memory;            ///< The least that it requests of the host.
  Bytes gpu_memory;        ///< The same on each of its GPUs, unless they are its own.
  Duration time_limit{0};  ///< How long an attempt may take from now on; 0: as before.

  friend bool operator==(const RetryAsked&, const RetryAsked&) = default;
};

/// Somebody asked for a task that waits not to start before they release it, or released it.
/// `request` is answered by an Answer with its number.
struct HoldAsked {
  TaskIndex task;
  std::uint64_t request = 0;
  bool hold = true;  ///< False: it is released.

  friend bool operator==(const HoldAsked&, const HoldAsked&) = default;
};

/// Somebody gave a task that has no verdict another priority: it counts whenever it waits.
/// `request` is answered by an Answer with its number.
struct PriorityAsked {
  TaskIndex task;
  std::uint64_t request = 0;
  int priority = 0;

  friend bool operator==(const PriorityAsked&, const PriorityAsked&) = default;
};

/// There is more to run: the job file of the run, or what was submitted to it.
struct BatchAdded {
  std::uint32_t number = 1;  ///< From 1, in the order in which they are added.
  /// Shared because an event is copied, and a plan may have a hundred thousand tasks.
  std::shared_ptr<const Plan> plan;
  /// A user was promised that it will be run: it must survive a loss of power.
  bool is_promised = false;
  /// Another batch or a found attempt is the next event, as in a resumed run with several batches:
  /// no task starts before, as one of that batch may come first.
  bool more_follow = false;

  /// Two plans that say the same are equal, wherever they lie.
  friend bool operator==(const BatchAdded& one, const BatchAdded& other) {
    const bool both = one.plan != nullptr && other.plan != nullptr;
    return one.number == other.number && one.is_promised == other.is_promised &&
           one.more_follow == other.more_follow &&
           (both ? *one.plan == *other.plan : one.plan == other.plan);
  }
};

/// The current reservations of all other yards on a machine, the older first.
struct NeighboursSeen {
  std::vector<Neighbour> neighbours;
  MachineIndex machine = {};

  friend bool operator==(const NeighboursSeen&, const NeighboursSeen&) = default;
};

/// Attempts that this turn decided to start on a machine are not started: another yard has reserved
/// the room meanwhile. The decision counts as never made, and is not reported.
struct ClaimRefused {
  std::vector<AttemptKey> attempts;
  std::vector<Neighbour> neighbours;  ///< As NeighboursSeen, with what they are about to hold.
  /// Nothing more is to be started in this turn.
  bool no_more = false;
  MachineIndex machine = {};

  friend bool operator==(const ClaimRefused&, const ClaimRefused&) = default;
};

/// The part of a machine that tasks may use has changed: at an hour of `limits.gpus`, or as a user
/// drains a GPU.
struct LimitsChanged {
  /// So many GPUs may the runs of this user have on the machine together.
  std::optional<int> gpus_max;
  /// When that changes next, "19:00"; for people. Empty: not that anybody knew.
  std::string until;
  /// Nothing new is given of these; in order.
  std::vector<GpuIndex> drained;
  /// And what runs there is to end, and to be tried again elsewhere.
  std::vector<GpuIndex> cleared;
  MachineIndex machine = {};

  friend bool operator==(const LimitsChanged&, const LimitsChanged&) = default;
};

/// An attempt that an earlier execution of the run has started goes on: whoever looks after its
/// machine has it still. It is as if it had been decided to be started there now. Its later events
/// follow this one, from its AttemptStarted on. Comes after the batch of its task, which waits,
/// and before anything of the attempt.
struct AttemptFound {
  AttemptKey key;  ///< The next attempt of its task.
  Request promise;
  Site site;
  Bytes gpu_memory_max;  ///< The limit that it was given.
  Instant since;         ///< When it was asked for, or began.
  /// Another found attempt is the next event: no task starts before.
  bool more_follow = false;

  friend bool operator==(const AttemptFound&, const AttemptFound&) = default;
};

/// The version of the code where attempts have started, read after their start.
struct CodeFound {
  std::optional<Code> code;  ///< Nothing: nobody can say.
  std::string diff;          ///< The start of the diff since its commit, for users.
  /// Those of which something else was known. They may have ended since.
  std::vector<AttemptKey> attempts;

  friend bool operator==(const CodeFound&, const CodeFound&) = default;
};

/// The moment that the scheduler asked to be woken at has come.
struct TimePassed {
  friend bool operator==(const TimePassed&, const TimePassed&) = default;
};

using What =
    std::variant<MachineJoined, MachineGone, AttemptStarted, StageReported, Progressed,
                 AttemptEnded, Sampled, GpusSampled, KeeperSilent, InterruptAsked, KillAsked,
                 RetryAsked, HoldAsked, PriorityAsked, BatchAdded, NeighboursSeen, ClaimRefused,
                 LimitsChanged, AttemptFound, CodeFound, TimePassed>;

struct Event {
  Instant at;
  What what;

  friend bool operator==(const Event&, const Event&) = default;
};

/// When it came about what the event tells of this attempt: no later than the event itself.
Instant moment_of(const Event& event, AttemptKey key);

}  // namespace trainyard::model
