// The faults of the made-up machine, by name, and their counts. A fault is counted when it really
// happened in a run, not when it was planned.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace trainyard::sim {

enum class Fault : std::uint8_t {
  // A task.
  ExitCode,     ///< Ends with a code other than 0.
  Signal,       ///< Dies by a signal of its own.
  OutOfMemory,  ///< Killed at its memory limit.
  CannotStart,  ///< There never is a process.
  IgnoresTerm,  ///< Only KILL ends it.
  NeverSaysStarted,
  Vanishes,        ///< Its end is unknown.
  LateAllocation,  ///< Takes nearly all of its memory late in its life.
  Spike,           ///< Takes it for a moment only.
  OverPromise,     ///< Takes more than it was promised.
  MemoryTold,      ///< Says on its standard error that memory ran out.
  OverLimit,       ///< The kernel ends it at its hard limit.
  EarlySignal,     ///< Gets the signal that it wants before TERM.
  EndsOnSignal,    ///< Leaves when it gets that.
  // A two-phase task.
  LoadOutOfMemory,   ///< Says so itself.
  TrainOutOfMemory,  ///< Says so itself, and waits for a device again.
  RanksStartOver,    ///< One of several processes says so, and all of them end.
  StageFails,        ///< An exception.
  Nonsense,          ///< Sends invalid words, or speaks out of turn.
  NeverTrains,       ///< Ends well without having asked for a device.
  DiesWaiting,       ///< While it waits for its device.
  Lingers,           ///< Does not end after it has trained.
  EndTells,          ///< Does not say that it has trained, but that its end will.
  // A task on GPUs.
  GpuOutOfMemory,    ///< Takes more than there is.
  AtItsCap,          ///< Takes no more than its cap, and needs more.
  CappedPeak,        ///< A task ended well that had all of its cap.
  OverGpuLimit,      ///< Is ended, as it takes more of a GPU than its hard limit.
  Crowded,           ///< Others had too much of the GPU of one that ran out of its memory.
  DiesWithGpu,       ///< Fails when one of its GPUs does not answer.
  WaitsForStart,     ///< No fault, and as good a trial: another has to settle on its GPU first.
  TakenOffGpu,       ///< Is interrupted, as it has too much of one for those beside it.
  GpuMemoryLingers,  ///< The driver shows it still when the task has ended.
  GpuMemoryStays,    ///< The same for longer than is waited for.
  // The machine.
  MemoryExhausted,  ///< The kernel kills the largest process.
  Preempted,        ///< Before it does, a task is interrupted.
  MemoryLost,       ///< Others take memory for a while.
  OthersUseCpu,     ///< Others use the CPUs beyond the gate for a while.
  SampleLate,
  EndHeardLate,   ///< A process was gone before a sample, and its end is reported after it.
  HadEnded,       ///< Stopped for a reading; the news of its earlier end came later.
  ClockJump,      ///< The machine slept.
  GpuGone,        ///< Does not answer for a while, or for good.
  GpuLate,        ///< Answers when the run has begun, and not before.
  GpuLost,        ///< Others take of its memory for a while.
  GpuOfOthers,    ///< They compute there.
  GpuNotGiven,    ///< A process runs out of memory of one that it was not given.
  GpuUnnamed,     ///< The driver does not say who has what.
  ManyDeaths,     ///< A hundred processes die in one instant.
  KeeperDies,     ///< Another one takes its place.
  GuardDies,      ///< And the keeper with it: they are not replaced.
  KeeperSilent,   ///< Does not answer for a while.
  YardSuspended,  ///< Hears of nothing for a while, and of all at once when it goes on.
  StartRefused,   ///< The machine is too short of something to start a task.
  RefusedAlone,   ///< The same of a task while the machine starts others.
  RunGivenUp,     ///< The machine has refused all starts for too long.
  // Several machines.
  NetworkSplit,       ///< All words between a yard and an agent wait for a while.
  StreamCut,          ///< The stream of those words ends, and another one has to be opened.
  WordsSaidAgain,     ///< Over the next one.
  MachineSilent,      ///< It comes back before its lease is over, and the tasks there go on.
  LeaseOver,          ///< It does not, and the tasks there are ended.
  AgentDies,          ///< And the tasks with it.
  MachineReboots,     ///< The same, and its former tasks cannot be seen from there.
  MachineGone,        ///< The tasks there are reported as vanished.
  MachineJoinsAgain,  ///< No fault, and as good a trial: with another agent.
  MachineJoinsLate,   ///< The same: when others have begun.
  MachineLeaves,      ///< It is never there again.
  MachineTakenAway,   ///< At the time that it announced when it joined.
  EndedBeforeThat,    ///< An attempt there is interrupted, as the time is nearly over.
  // The journal.
  DiskFull,
  DiskFullTooLong,
  // Users.
  InterruptOnce,
  InterruptTwice,
  KillOfRunning,
  KillOfWaiting,
  KillOfEnded,
  KillOfUnknown,
  RetryOfEnded,  ///< No fault, and as good a trial: it begins anew.
  RetryRefused,
  PutOnHold,        ///< No fault, and as good a trial: it does not start until it is released.
  OtherPriority,    ///< The same: it goes first, or last, from now on.
  SkippedForNeeds,  ///< A task that it or its group needs has failed.
  NotNeeded,        ///< It was to run after a failure, and there was none.
  StartsLater,      ///< No fault, and as good a trial: its time comes.
  LateBatch,        ///< No fault, and as good a trial: the run grows while it runs.
  GoesOn,           ///< The same: a task of a resumed run starts with what it had reached.
  TaughtBefore,     ///< The same: one that had finished before teaches the others.
  TrialLives,       ///< A task that is tried first lives long enough for the others to start.
  TrialTells,       ///< It says how far it is.
  TrialFails,
  // Messages of the keeper.
  OldNews,        ///< About an attempt that was over before.
  DuplicateNews,  ///< The same thing twice.
};

constexpr std::size_t kFaultKinds = static_cast<std::size_t>(Fault::DuplicateNews) + 1;

std::string_view to_text(Fault fault);

class FaultCounts {
 public:
  void count(Fault fault) { ++counts_.at(std::to_underlying(fault)); }
  void add(const FaultCounts& other);
  [[nodiscard]] std::uint64_t of(Fault fault) const {
    return counts_.at(std::to_underlying(fault));
  }

 private:
  std::array<std::uint64_t, kFaultKinds> counts_{};
};

/// "EXIT_CODE 812, SIGNAL 455, ..."
std::string to_text(const FaultCounts& counts);

}  // namespace trainyard::sim
