// The messages of a process of a two-phase task, over all its connections: it tells news from
// messages that are only repeated, as a process that connects again does not know which were
// received. A shell script makes one connection with each command, and may be run again from its
// beginning; a lost connection may have lost an answer. Pure.
#pragma once

#include <cstdint>

#include "model/event.h"

namespace trainyard::model {

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

}  // namespace trainyard::model
