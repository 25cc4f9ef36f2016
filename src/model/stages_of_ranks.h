// The messages of the ranks of a two-phase task, made into messages of the task: a task with
// several processes has loaded when all of them have, and has failed with the first.
//
// No clock, no messages: who speaks and what is said. Belongs to one thread.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "model/event.h"

namespace trainyard::model {

class StagesOfRanks {
 public:
  /// `ranks` is at least 1; none of them has said anything.
  explicit StagesOfRanks(int ranks);

  /// The message of the task by this; nothing while messages of other ranks are missing, and after
  /// the task has failed, run out of memory or sent nonsense. Said::Nonsense for a message out of
  /// turn: a rank trains only after the task was granted its device. `rank` is one of them.
  std::optional<Said> hear(int rank, Said said);

  /// The task was granted its device, after it had loaded.
  void told_to_train() { told_to_train_ = true; }

  [[nodiscard]] int ranks() const { return static_cast<int>(stages_.size()); }

 private:
  enum class Stage : std::uint8_t { Started, Loading, Loaded, EndTells, Trained };

  [[nodiscard]] bool may_say(Stage stage, Said said) const;
  [[nodiscard]] bool are_all_in(Stage stage) const;

  std::vector<Stage> stages_;  ///< By rank.
  bool told_to_train_ = false;
  bool over_ = false;
};

}  // namespace trainyard::model
