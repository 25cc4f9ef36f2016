// The limits that the kernel enforces for an attempt, by a control group of its own.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "model/command.h"
#include "model/launch.h"
#include "model/resources.h"

namespace trainyard::run {

/// The means of this machine to enforce limits.
struct LimitKeeping {
  std::string group;                 ///< Parent of an attempt's own group.
  std::vector<std::string> regions;  ///< Of GPU memory that can be limited; empty: none.
};

/// Adds to a launch those limits of the start that the kernel enforces. Limits of GPU memory only
/// if the launch is one process that is exec'ed: of several ranks one alone would be in the group.
void add_limits(const model::StartAttempt& start, std::span<const model::Gpu> gpus,
                LimitKeeping keeping, model::Launch& launch);

}  // namespace trainyard::run
