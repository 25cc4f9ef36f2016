// The loop: wait for events, decide, write down, act. The order is the promise: a command is
// committed before it is carried out, so that a kill at any instant leaves nothing running that the
// journal does not know.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "journal/recorder.h"
#include "model/command.h"
#include "model/ids.h"
#include "model/turn.h"
#include "run/machine.h"
#include "schedule/scheduler.h"

namespace trainyard::run {

/// Sees every turn once, in order, after it was committed: the progress line is one of these.
using Observer = std::move_only_function<void(const model::Turn&)>;

/// The behaviour of the loop while the journal cannot be written.
struct WhileUnwritten {
  Duration patience{60'000};  ///< Time before it gives the run up.
  /// Called with the cause when it begins, and with nothing when it is over.
  std::move_only_function<void(const std::optional<Error>&)> tell;
  /// Called once before the loop gives the run up: turns that are not written yet are offered to
  /// the recorder for the last time after that. May be missing.
  std::move_only_function<void()> make_room = {};
};

/// Runs the batches that come from `machine`, by the decisions of `scheduler`, until every task has
/// its verdict and nothing more is to come. While the recorder cannot write, nothing new is
/// started, and running attempts go on. An error means that it could not write for too long:
/// running attempts have been stopped, and the journal holds all turns but the last ones,
/// unless room could be made for them. The journal holds no start that was not carried out.
Result<void> drive(schedule::Scheduler& scheduler, Machine& machine, journal::Recorder& recorder,
                   std::vector<Observer>& observers, WhileUnwritten unwritten = {});

class OpenTurn;

/// The same, a turn at a time, for callers that let several yards run concurrently. All arguments
/// must outlive it.
class Loop {
 public:
  Loop(schedule::Scheduler& scheduler, Machine& machine, journal::Recorder& recorder,
       std::vector<Observer>& observers, WhileUnwritten unwritten = {});
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;
  ~Loop();

  /// Nothing: the run goes on. Else the result of drive().
  std::optional<Result<void>> turn();

 private:
  schedule::Scheduler& scheduler_;
  Machine& machine_;
  journal::Recorder& recorder_;
  std::vector<Observer>& observers_;
  std::unique_ptr<OpenTurn> turn_;
  std::optional<Instant> until_;
};

/// Takes the starts of these attempts out of a decision: nobody is told of starts that are refused.
void forget_starts(model::Decision& decision, std::span<const model::AttemptKey> refused);

}  // namespace trainyard::run
