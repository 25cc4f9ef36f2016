// The tasks that a yard runs: the interface that run/yard_run.h needs of its program. `trainyard
// run` implements it with job files, the library with objects of the program.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "journal/journal.h"
#include "model/event.h"
#include "model/ids.h"
#include "model/launch.h"
#include "model/turn.h"
#include "run/printed_metrics.h"
#include "wire/control.h"
#include "wire/task.h"

namespace trainyard::run {

/// All calls come from the thread that the yard runs on. Tasks are numbered over all batches.
class Tasks {
 public:
  Tasks() = default;
  Tasks(const Tasks&) = delete;
  Tasks& operator=(const Tasks&) = delete;
  virtual ~Tasks() = default;

  /// Everything that is needed to start an attempt on these GPUs.
  virtual model::Launch launch(model::AttemptKey key, const model::Grant& grant) = 0;
  /// The pattern that finds metrics in the lines that a task prints in its own format; empty: none.
  virtual LinePattern pattern_of(model::TaskIndex task) {
    static_cast<void>(task);
    return {};
  }
  /// The task with this name; nothing if there is none.
  virtual std::optional<model::TaskIndex> find(std::string_view group, std::string_view id) = 0;
  /// The part of a text from a user's files that may be kept.
  [[nodiscard]] virtual std::string without_secrets(std::string text) const { return text; }
  /// Why no ended task can start over when a user asks for it, in words for users; empty: they can.
  [[nodiscard]] virtual std::string why_no_retry() const { return {}; }
  /// Why a task can never start with the request of its retry, in words for users: "needs 28 GB of
  /// memory on a GPU, the largest here has 20.9 GB available". Empty: it can.
  [[nodiscard]] virtual std::string why_never_with(const model::RetryAsked& retry) const {
    static_cast<void>(retry);
    return {};
  }
  /// Receives a message of a task to the program.
  virtual void hear(model::AttemptKey key, const wire::Message& message) = 0;
  /// Every turn once, in order, after it was committed and carried out.
  virtual void see(const model::Turn& turn) = 0;
  /// Receives a note for the user, one line.
  virtual void note(std::string_view line) = 0;

  /// Reads a submission, as the batch of that number. The result must stay valid until the run is
  /// over, or drop_last() is called. An error says why it cannot be added, in words for the user
  /// who submitted it.
  struct Accepted {
    journal::Batch batch;
    std::string told;  ///< For the user who submitted it: what was added.
  };
  virtual Result<Accepted> accept(const wire::Submit& submission, std::uint32_t number) = 0;
  /// Whether a repeat of the tasks has come to the end of a round, and another one may follow.
  [[nodiscard]] virtual bool has_next_round() const { return false; }
  /// The next round, as the batch of that number, like accept(); nothing if there is none. Call it
  /// if there may be one.
  virtual std::optional<Accepted> next_round(std::uint32_t /*number*/) { return std::nullopt; }
  /// Why not all has been done for another cause than failed tasks, when the run is over, or empty.
  [[nodiscard]] virtual std::string not_done() const { return {}; }
  /// The last accepted batch is not added after all.
  virtual void drop_last() = 0;
};

}  // namespace trainyard::run
