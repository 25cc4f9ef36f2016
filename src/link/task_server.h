// Receives the reports of the processes of tasks, and sends two-phase tasks the order to train.
//
// It stands behind the doors for `task`, `rank` and `helper` of a frame server. Each attempt has a
// token that nobody can guess; who knows it speaks for the attempt, one connection at a time, or
// helps, that is, reports the progress. A single-phase task does not report its stages: all that
// speak for it are helpers. If a task has ranks, each of them speaks, and their stages together are
// those of the task (model/stages_of_ranks.h); rank 0 reports the progress. Only the scheduler
// interprets the stages (schedule/state_stages.cc).
//
// Belongs to the thread of the server's event loop.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>

#include "link/frame_server.h"
#include "model/ids.h"
#include "wire/task.h"

namespace trainyard::link {

class TaskServer {
 public:
  using OnReport = std::move_only_function<void(model::AttemptKey, wire::TaskReport)>;

  /// One process says no more words than this of its life; who says more is cut off.
  /// How far it is may be said at any time.
  static constexpr int kReportsMax = 1'000;
  /// Helpers of one attempt at a time.
  static constexpr int kHelpersMax = 16;

  /// Opens the three doors of `server`, which must outlive this.
  TaskServer(FrameServer& server, OnReport on_report);
  TaskServer(TaskServer&&) = delete;
  TaskServer& operator=(TaskServer&&) = delete;
  /// Closes them.
  ~TaskServer();

  /// Who speaks for an attempt beside its helpers.
  struct Speaks {
    int ranks = 0;               ///< Each of so many; 0: one process, as the task.
    bool tells_its_life = true;  ///< False: nobody does.
  };
  /// The token of a new attempt: 32 digits, hexadecimal.
  std::string expect(model::AttemptKey key, Speaks who);
  std::string expect(model::AttemptKey key) { return expect(key, Speaks{}); }
  /// The attempt is over, and its token with it: what its process has said is reported first; who
  /// still speaks for it, or helps, is cut off.
  void forget(model::AttemptKey key);

  /// Sends the process of an attempt its order, or each of its ranks: `orders` has one for each. A
  /// process that connects later, or again, gets it then, unless it has run out of memory since.
  /// Repeated reports on a new connection are not passed on (model/stages_of_ranks.h).
  void order(model::AttemptKey key, std::span<const wire::TaskOrder> orders);

  /// Where the processes connect to.
  [[nodiscard]] const std::string& path() const;

 private:
  struct State;
  /// Shared with what the door calls, which holds it weakly.
  std::shared_ptr<State> state_;
};

}  // namespace trainyard::link
