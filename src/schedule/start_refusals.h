// The reaction of the scheduler when a machine refuses to start tasks, because it is short of a
// resource that starting a process needs: disk space, inodes, processes or open files. No task is
// to blame for that, unless the machine starts others meanwhile. For the files of this folder
// alone.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "base/time.h"
#include "model/ids.h"

namespace trainyard::schedule {

/// The pause of one machine after a refused start: nothing starts there until it is over, then one
/// attempt is tried. Each further refusal doubles the pause; a started task ends it.
class StartPause {
 public:
  /// The machine could not start this attempt: "cannot write '/x/log': no space left on device".
  /// Begins a pause; during one, only the refusal of the tried attempt counts.
  void refuse(model::AttemptKey key, const std::string& why, Instant at);
  /// The machine is about to start this attempt: during a pause, its outcome is awaited.
  void try_to_start(model::AttemptKey key) {
    if (pause_) pause_->tried = key;
  }
  /// This attempt was not started after all: another one may be tried.
  void take_back(model::AttemptKey key) {
    if (awaits(key)) pause_->tried.reset();
  }
  /// The machine has started a task.
  void start(Instant at);
  void end() { pause_.reset(); }

  [[nodiscard]] bool is_on() const { return pause_.has_value(); }
  [[nodiscard]] bool awaits(model::AttemptKey key) const { return pause_ && pause_->tried == key; }
  [[nodiscard]] bool holds_back(Instant at) const {
    return pause_ && (pause_->tried || at < pause_->tries_at);
  }
  /// When an attempt may be tried; nothing without a pause, or while one is tried.
  [[nodiscard]] std::optional<Instant> tries_at() const {
    return pause_ && !pause_->tried ? std::optional(pause_->tries_at) : std::nullopt;
  }
  /// Whether so much time has passed since the first refusal.
  [[nodiscard]] bool has_lasted(Duration patience, Instant at) const {
    return pause_ && at - pause_->since >= patience;
  }
  /// The cause of the last refusal, during a pause.
  [[nodiscard]] const std::string& why() const { return pause_.value().why; }
  /// When the machine last started a task, if it has.
  [[nodiscard]] Instant last_start() const { return last_start_; }

 private:
  struct Pause {
    std::string why;
    Instant since;  ///< The first refusal.
    Duration length{0};
    Instant tries_at;
    std::optional<model::AttemptKey> tried;  ///< The attempt whose outcome is awaited.
  };
  std::optional<Pause> pause_;
  Instant last_start_;
};

/// The tasks whose last starts were refused, until a machine starts them. If a machine has started
/// others since it first refused a task, the cause is in a place that only some tasks use, such as
/// a working directory on a failing disk: the task is delayed, each time twice as long.
class StartRefusals {
 public:
  /// Counts a refusal by the machine with this pause. Returns false once the delays of the task add
  /// up to `patience`: it is forgotten, and has failed for a cause of its own.
  bool excuse(model::TaskIndex task, const StartPause& pause, Duration patience, Instant at);
  void forget(model::TaskIndex task) { tasks_.erase(task); }

  [[nodiscard]] bool contains(model::TaskIndex task) const { return tasks_.contains(task); }
  /// The delay before the next start of a task that is here; 0 while no other task was started.
  [[nodiscard]] Duration delay_of(model::TaskIndex task) const { return tasks_.at(task).delay; }

 private:
  struct Refusals {
    Instant since;  ///< The first of them.
    Duration delay{0};
    Duration delays{0};  ///< The sum of all delays.
  };
  std::map<model::TaskIndex, Refusals> tasks_;
};

}  // namespace trainyard::schedule
