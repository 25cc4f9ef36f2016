// The request of one `trainyard retry`, and the amounts of memory and time in it: as typed, as far
// as they have an effect, and in words. Pure: nothing is printed.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/result.h"
#include "job/jobs.h"
#include "journal/reader.h"
#include "wire/control.h"

namespace trainyard::app {

struct RetryRequest {
  std::vector<std::string> words;  ///< Run and tasks, as app/task_selection.h says; without a
                                   ///< state and a name, the failed tasks.
  std::string run_directory;
  std::string memory;  ///< "20GB", as of the next two; empty: as it was.
  std::string gpu_memory;
  std::string time_limit;   ///< "2h"
  bool cascade = false;     ///< And the tasks that were skipped because of them, also in the queue.
  bool changed = false;     ///< Only tasks that were edited in the job file, also finished ones.
  bool other_code = false;  ///< Only the tasks that ran other code, also finished ones.
  bool fresh = false;  ///< Without what their attempts have left in their checkpoint directories.
  bool dry_run = false;
  std::string command_line;  ///< As typed, without secrets: for the journal.
};

struct RequestedAmounts {
  wire::Retry with;                     ///< Without the name of a task.
  std::vector<std::string> notes = {};  ///< The amounts that have no effect, one line each.
};

/// The tasks that can never run here, one line for all that have the same reason. At most 20 lines
/// name a reason, and one has the number of the other tasks.
class NeverRunningTasks {
 public:
  void add(const journal::TaskRow& task, const std::string& why);
  /// Adds "g/a and 2 more tasks can never run here: each needs 28 GB of memory on a GPU, ...", line
  /// by line.
  void add_to(Error& error) const;

 private:
  struct Reason {
    std::string why;
    std::string first;      ///< Name of the first of these tasks.
    std::size_t count = 1;  ///< Number of these tasks.
  };
  std::vector<Reason> reasons_;
  std::size_t not_named_ = 0;
};

/// The amounts that were typed. The error has a line for each that is wrong.
Result<RequestedAmounts> read_amounts(const RetryRequest& request);

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
std::string typed_amounts(const RetryRequest& request);

/// " with at least 20 GB on each GPU, a time limit of 2h"; empty without an amount.
std::string with_text(const wire::Retry& with);

}  // namespace trainyard::app
