// Whose tasks a yard runs: what run/yard_run.h asks of the program that it works for. `trainyard
// run` answers from job files, the library from objects of the program.
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
  /// What finds metrics in the lines that a task prints in its own words; empty where nothing does.
  virtual LinePattern pattern_of(model::TaskIndex task) {
    static_cast<void>(task);
    return {};
  }
  /// The task that people call so; nothing where there is none.
  virtual std::optional<model::TaskIndex> find(std::string_view group, std::string_view id) = 0;
  /// What may be kept of a text that somebody has in their files.
  [[nodiscard]] virtual std::string without_secrets(std::string text) const { return text; }
  /// Why no task that has ended begins anew where people ask for it, in words for them; empty: they
  /// do.
  [[nodiscard]] virtual std::string why_no_retry() const { return {}; }
  /// Why a task can never start with what it is to have in its retry, in words for people: "needs
  /// 28 GB of memory on a GPU, the largest here has 20.9 GB available". Empty: it can.
  [[nodiscard]] virtual std::string why_never_with(const model::RetryAsked& retry) const {
    static_cast<void>(retry);
    return {};
  }
  /// What a task has sent to the program.
  virtual void hear(model::AttemptKey key, const wire::Message& message) = 0;
  /// Every turn once, in order, after it was committed and carried out.
  virtual void see(const model::Turn& turn) = 0;
  /// What people should know, in a line.
  virtual void note(std::string_view line) = 0;

  /// Reads what somebody submits, as the batch of that number. It must stay as it is until the run
  /// is over, or drop_last() is called. An error says why it cannot be added, in words for whoever
  /// submitted it.
  struct Accepted {
    journal::Batch batch;
    std::string told;  ///< For whoever submitted it: what was added.
  };
  virtual Result<Accepted> accept(const wire::Submit& submission, std::uint32_t number) = 0;
  /// Whether what the tasks repeat has come to the end of a round, and another one may be to come.
  [[nodiscard]] virtual bool has_next_round() const { return false; }
  /// The next round, as the batch of that number, as accept() gives one; nothing where no other
  /// comes. To be asked for where there may be one.
  virtual std::optional<Accepted> next_round(std::uint32_t /*number*/) { return std::nullopt; }
  /// Why not all has been done though no task is to blame, when the run is over; empty: it has.
  [[nodiscard]] virtual std::string not_done() const { return {}; }
  /// What was accepted last is not added after all.
  virtual void drop_last() = 0;
};

}  // namespace trainyard::run
