// The other yards on the machine as users are shown them: with the names of their users, and times
// in the local time of the day.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/promises.h"
#include "process/promise_board.h"

namespace trainyard::run {

/// A board in the usual place, for YardParts: before the keeper is forked. Nothing where none is
/// wanted; an error says why none can be had, which no run fails for.
Result<std::optional<process::PromiseBoard>> open_promises();

/// With the names of their users. Runs whose number is not one of `numbering`
/// (RunNumbers::identity()) have none: here that number is no run, or another one.
std::vector<model::Neighbour> named(std::vector<process::PromiseBoard::Other> others,
                                    std::string_view numbering);

/// All yards of this machine, for a process that is none of them.
std::vector<model::Neighbour> yards_here();

}  // namespace trainyard::run
