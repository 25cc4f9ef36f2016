// Which limits the kernel keeps for an attempt, by a control group of its own.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "model/command.h"
#include "model/launch.h"
#include "model/resources.h"

namespace trainyard::run {

/// What the machine has to keep limits by.
struct LimitKeeping {
  std::string group;                 ///< Where an attempt's own group would be made.
  std::vector<std::string> regions;  ///< Of GPU memory, to which it can be kept; empty: to none.
};

/// Adds to a launch what of the start's limits the kernel keeps. Of GPU memory only where the
/// launch is one process that is exec'ed: of several ranks one alone would be in the group.
void add_limits(const model::StartAttempt& start, std::span<const model::Gpu> gpus,
                LimitKeeping keeping, model::Launch& launch);

}  // namespace trainyard::run
