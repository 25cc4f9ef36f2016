// The messages of the processes of a two-phase task, made into messages of the task.
//
// No clock, no messages: who speaks and what is said. Belongs to one thread.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "model/event.h"

namespace trainyard::model {

/// The messages of a process of a two-phase task, over all its connections: it tells news from
/// messages that are only repeated, as a process that connects again does not know which were
/// received. A shell script makes one connection with each command, and may be run again from its
/// beginning; a lost connection may have lost an answer.
class SpokenWords {
 public:
  /// It speaks on a new connection from now on.
  void connects();
  /// The process was granted its device, to train.
  void grant_device();
  /// It says this now. False: it has said so on an earlier connection, and nothing has come since
  /// that makes it news.
  bool hear(Said said);

 private:
  enum class Step : std::uint8_t { Nothing, Loading, Loaded, Training };
  static Step step_of(Said said);

  Step step_ = Step::Nothing;
  Step before_ = Step::Nothing;        ///< When this connection began.
  bool out_of_memory_ = false;         ///< Reported since it was granted its device.
  bool out_of_memory_before_ = false;  ///< The same, when this connection began.
};

/// A task with several processes has loaded when all of them have, and has failed with the first.
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
