// Hears what the processes of tasks say of themselves, and tells those of two-phase tasks to train.
//
// It stands behind the doors for `task`, `rank` and `helper` of a frame server. Each attempt has a
// token that nobody can guess; who knows it speaks for the attempt, one connection at a time, or
// helps, which is to say how far it is. One of a single phase has nothing to say of its life: all
// that speak for it are helpers. Where a task has ranks each of them speaks, and what they
// say comes to what the task says (model/stages_of_ranks.h); how far it is says rank 0. What is
// said of the life means something to the scheduler alone (schedule/state_stages.cc).
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

  /// Tells the process of an attempt, or each of its ranks what is for it: there is an order for
  /// each. Who connects later, or again, is told then, as long as it has not run out of memory
  /// since. What it says again on a new connection is not reported (model/spoken_words.h).
  void order(model::AttemptKey key, std::span<const wire::TaskOrder> orders);

  /// Where the processes connect to.
  [[nodiscard]] const std::string& path() const;

 private:
  struct State;
  /// Shared with what the door calls, which holds it weakly.
  std::shared_ptr<State> state_;
};

}  // namespace trainyard::link
