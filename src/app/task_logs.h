// The choice of the logs that `trainyard logs` shows, and its messages where there are none. Pure;
// any thread.
#pragma once

#include <string>
#include <vector>

#include "app/task_selection.h"
#include "base/result.h"
#include "journal/reader.h"

namespace trainyard::app {

/// The logs that a user requests of each selected task.
struct LogRequest {
  int attempt = 0;  ///< 0: the last.
  bool follow = false;
  bool only_stdout = false;
  bool only_stderr = false;
  int rank = -1;  ///< The log of this rank alone; -1: of all.
};

/// An error for logs that cannot be shown together, and for tasks that must be named or followed
/// one at a time. Precondition: at least one task is selected.
Result<void> check_log_request(const LogRequest& request, const TasksOfRun& selection,
                               const std::vector<journal::TaskRow>& tasks);

/// The reason why these logs of this task cannot be shown; empty when they can. A waiting task can
/// be followed.
std::string why_no_log(const LogRequest& request, const journal::TaskRow& task);

/// The message for tasks none of which has such a log: names the first three.
std::string none_has_log(const LogRequest& request, const std::vector<journal::TaskRow>& tasks);

struct ShownLogs {
  bool have_text = false;  ///< Something was printed.
  bool have_file = false;  ///< False when the log was deleted, or is still on another machine.
};

/// Whether what an attempt printed cannot be shown, which is an error: its log was deleted, or is on
/// another machine. The arguments are those of note_after_logs().
bool is_log_gone(const LogRequest& request, const journal::TaskRow& before,
                 const journal::TaskRow& now, const ShownLogs& shown);

/// The message after the logs of a task that could not start or has printed nothing; else empty.
/// `before` is the task when its logs were opened, `now` at the last reading.
std::string note_after_logs(const LogRequest& request, const journal::TaskRow& before,
                            const journal::TaskRow& now, const ShownLogs& shown);

}  // namespace trainyard::app
