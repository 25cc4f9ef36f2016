// How often a task has loaded and trained, and how long (fedflow `load_numbers`, `train_numbers`,
// `load_time`, `train_time`). A plain value that receives each change of the task's status.
#pragma once

#include <optional>

#include "base/time.h"
#include "model/status.h"

namespace trainyard::model {

struct StageTimes {
  int load_numbers = 0;                ///< How often it began to load.
  int train_numbers = 0;               ///< How often it began to train.
  std::optional<Duration> load;        ///< How long it loaded, the last time.
  std::optional<Duration> train;       ///< How long it trained, the last time.
  std::optional<Stage> now;            ///< Nothing when it neither loads nor trains.
  std::optional<Instant> load_began;   ///< The last time.
  std::optional<Instant> train_began;  ///< The last time.

  /// The task is in this status from `at` on. Costs nothing to speak of.
  void enter(Status status, Instant at);
  /// Its process had ended by then: no stage lasted longer, whenever its end was noticed.
  void end_by(Instant at);

  friend bool operator==(const StageTimes&, const StageTimes&) = default;
};

}  // namespace trainyard::model
