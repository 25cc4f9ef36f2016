// What the keeper says of the end of an attempt, as the event that it is for the scheduler.
//
// Pure; any thread.
#pragma once

#include "base/time.h"
#include "model/event.h"
#include "process/keeper.h"

namespace trainyard::run {

struct EndedWhere {
  Duration clock_offset;  ///< From the keeper's clock to that of the run.
  bool on_gpus = false;   ///< It had some.
};

/// Without what was seen of the attempt meanwhile.
model::AttemptEnded attempt_ended_from(const process::ProcessEnded& news, const EndedWhere& where);

}  // namespace trainyard::run
