// The amounts of memory and time with which `trainyard retry` retries tasks: as typed, as far as
// they have an effect, and in words. Pure: nothing is printed.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "cli/commands.h"
#include "job/jobs.h"
#include "journal/reader.h"
#include "wire/control.h"

namespace trainyard::cli {

struct RequestedAmounts {
  wire::Retry with;                     ///< Without the name of a task.
  std::vector<std::string> notes = {};  ///< The amounts that have no effect, one line each.
};

/// The amounts that were typed. The error has a line for each that is wrong.
Result<RequestedAmounts> read_amounts(const RetryOptions& options);

/// Notes that some of the tasks use no GPU. An error if none of them uses one: a retry would only
/// fail again.
Result<RequestedAmounts> note_unused_gpu_memory(RequestedAmounts amounts,
                                                const std::vector<journal::TaskRow>& tasks);

/// Notes that some of the tasks request more than an amount, which has no effect on them. If all of
/// them do, the amount is not left. The error has a line for each reason why tasks can never
/// run here, with the number of these tasks.
Result<RequestedAmounts> fitted(RequestedAmounts amounts,
                                const std::vector<journal::TaskRow>& tasks, const job::Jobs& jobs);

/// " --memory 20GB --time-limit 2h", as typed, for a command to type; empty without an amount.
std::string typed_amounts(const RetryOptions& options);

/// " with at least 20 GB on each GPU, a time limit of 2h"; empty without an amount.
std::string with_text(const wire::Retry& with);

}  // namespace trainyard::cli
