// The submissions to an active run, until they are part of it: read, written down a few thousand
// tasks at a time between the turns of the loop, and answered when committed. One at a time, in the
// order in which they came; the next round of a repeat goes first.
//
// Belongs to the thread of its loop.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "journal/journal.h"
#include "link/control_server.h"
#include "model/event.h"
#include "model/turn.h"
#include "run/tasks.h"
#include "sys/event_loop.h"
#include "wire/control.h"

namespace trainyard::run {

class Submissions {
 public:
  /// Maximum number of waiting ones; one more is refused, to come back later.
  static constexpr std::size_t kWaitingMax = 64;
  /// Maximum number of tasks of one submission.
  static constexpr std::size_t kTasksMax = 100'000;

  using Add = std::move_only_function<void(model::BatchAdded)>;

  /// The connections to the loop.
  struct Ways {
    Add add;                                       ///< Hands a batch to it.
    std::move_only_function<void()> nothing_came;  ///< The pending batch will not come.
  };

  /// All three must outlive it. Batches so far: `added`.
  Submissions(sys::EventLoop& loop, journal::Journal& journal, Tasks& tasks, std::uint32_t added,
              Ways ways);
  Submissions(Submissions&&) = delete;
  Submissions& operator=(Submissions&&) = delete;
  /// Notifies clients that still wait that the run is over.
  ~Submissions();

  /// Answers in a later turn of the loop.
  void take(wire::Submit submission, link::Reply reply);
  /// Nothing more is taken: the run was stopped.
  void close() { closed_ = true; }
  /// After every committed turn, which the tasks have seen.
  void see(const model::Turn& turn);
  /// Whether a batch is pending.
  [[nodiscard]] bool is_busy() const {
    return current_ != nullptr || !waiting_.empty() || round_is_due_;
  }

 private:
  struct Waiting {
    wire::Submit submission;
    link::Reply reply;
  };
  struct Current {
    Tasks::Accepted accepted;
    std::optional<link::Reply> reply;  ///< Nothing for a round: nobody waits for it.
  };

  void begin_next();
  void begin(Tasks::Accepted accepted, std::optional<link::Reply> reply);
  void go_to_next();
  void go_on();
  void refuse(link::Reply& reply, std::string why);
  void give_up(const Error& error);

  sys::EventLoop& loop_;
  journal::Journal& journal_;
  Tasks& tasks_;
  std::uint32_t added_;
  Ways ways_;
  std::deque<Waiting> waiting_;
  std::unique_ptr<Current> current_;  ///< The one being written down; nothing: none.
  bool round_is_due_ = false;
  bool closed_ = false;
};

}  // namespace trainyard::run
