// The output of the scheduler: commands to carry out, and changes to show to users.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/bytes.h"
#include "base/time.h"
#include "model/ids.h"
#include "model/plan.h"
#include "model/resources.h"
#include "model/status.h"
#include "model/waiting.h"

namespace trainyard::model {

/// Starts the process of an attempt. Answered by AttemptStarted and AttemptEnded, or by
/// AttemptEnded alone when it cannot be started.
struct StartAttempt {
  AttemptKey key;
  Request promise;   ///< Reserved by the ledger; more than requested after an OOM.
  Site site;         ///< Without GPUs for a two-phase task, which loads first.
  Bytes memory_max;  ///< The kernel's limit; 0: no limit.
  /// The limit on each of its GPUs that is passed to it; 0: none is passed.
  Bytes gpu_memory_max;

  friend bool operator==(const StartAttempt&, const StartAttempt&) = default;
};

/// Lets an attempt that has loaded train. Answered by StageReported and AttemptEnded.
struct GrantDevice {
  AttemptKey key;
  Request promise;       ///< Reserved by the ledger from now on.
  Site site;             ///< Where it has loaded. No GPUs: it trains on the CPUs.
  Bytes memory_max;      ///< As of its start; more where it has been promised more.
  Bytes gpu_memory_max;  ///< As of a start.

  friend bool operator==(const GrantDevice&, const GrantDevice&) = default;
};

/// Sends TERM to the processes of an attempt, those that handle it first (Kill: KILL to all). One
/// that has ended already is no error.
struct StopAttempt {
  AttemptKey key;
  bool kill = false;

  friend bool operator==(const StopAttempt&, const StopAttempt&) = default;
};

/// Sends the processes of an attempt that handle it the signal that it wants before any TERM.
struct SignalAttempt {
  AttemptKey key;
  int signal = 0;

  friend bool operator==(const SignalAttempt&, const SignalAttempt&) = default;
};

/// Answers a request about a task with its outcome.
struct Answer {
  std::uint64_t request = 0;
  bool done = false;  ///< False: the task is what it was, as one that has ended cannot be killed.

  friend bool operator==(const Answer&, const Answer&) = default;
};

using Command = std::variant<StartAttempt, GrantDevice, SignalAttempt, StopAttempt, Answer>;

/// A task is in a new status. Every arrow of the picture in trainyard/status.h is one of these, and
/// so is that one which had ended begins anew, with INIT, as somebody asked for.
struct TaskChanged {
  AttemptKey key;  ///< The attempt it is in; 0 when it has had none since it began.
  Status status = Status::Init;
  Verdict verdict = Verdict::None;  ///< Set with its last change, unless it begins anew.
  Failure failure = Failure::None;
  Stage stage = Stage::Train;
  int exit_code = 0;
  std::string message;  ///< For people: "killed by signal 9 (SIGKILL)"; empty when all is well.
  /// The end of the delay of its retry, before which it waits for nothing else. Nothing: no delay.
  std::optional<Instant> retry_at = std::nullopt;
  /// Skipped because another task of its group failed, and not because of a group that it needs.
  bool with_group = false;

  friend bool operator==(const TaskChanged&, const TaskChanged&) = default;
};

enum class GroupPhase : std::uint8_t {
  Blocked = 0,
  Running = 1,
  Finished = 2,
  Failed = 3,
  Skipped = 4,
  Stopped = 5
};

struct GroupChanged {
  GroupIndex group;
  GroupPhase phase = GroupPhase::Blocked;
  std::string message;  ///< The cause, where it was skipped for what it needs.

  friend bool operator==(const GroupChanged&, const GroupChanged&) = default;
};

/// Why the tasks of a shape wait; Cause::None when none waits any more. Reported when the cause
/// changes, not with every number in its text: these are in the last HeadroomSeen.
struct ReasonChanged {
  ShapeIndex shape;
  Reason reason;

  friend bool operator==(const ReasonChanged&, const ReasonChanged&) = default;
};

/// The room that could be reserved now on a machine. Reported with each reading of the machine
/// while tasks wait, if it has changed, and with each new reason; the last changes of their
/// decision.
struct HeadroomSeen {
  Headroom headroom;
  MachineIndex machine = {};

  friend bool operator==(const HeadroomSeen&, const HeadroomSeen&) = default;
};

/// The learned reservation for the next tasks of a shape, from those that have finished. Reported
/// when it is first known, and when it has changed by a tenth.
struct Learned {
  ShapeIndex shape;
  Bytes memory;      ///< 0: what is written counts, or what is the default.
  Bytes gpu_memory;  ///< The same, on each GPU.
  int tasks = 0;     ///< How many have taught it.

  friend bool operator==(const Learned&, const Learned&) = default;
};

/// Reached comes behind the TaskChanged of the same task.
using Change = std::variant<TaskChanged, GroupChanged, ReasonChanged, HeadroomSeen, SharingMeasured,
                            Reached, Learned, SaidOfTask>;

/// The decision on one event, in order. `changes` are written to the journal before `commands` are
/// carried out.
struct Decision {
  std::vector<Change> changes;
  std::vector<Command> commands;

  friend bool operator==(const Decision&, const Decision&) = default;
};

}  // namespace trainyard::model
