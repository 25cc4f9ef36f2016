// The interface that writes turns down: the journal, or a list in a test.
#pragma once

#include "base/result.h"
#include "model/turn.h"

namespace trainyard::journal {

class Recorder {
 public:
  Recorder() = default;
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;
  virtual ~Recorder() = default;

  /// Writes the whole turn or nothing of it. After an error the same turn, grown by what has
  /// happened since, is offered again.
  virtual Result<void> commit(const model::Turn& turn) = 0;
};

}  // namespace trainyard::journal
