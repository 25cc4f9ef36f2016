// Advice for retrying tasks that failed for lack of memory or time. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/time.h"
#include "journal/reader.h"

namespace trainyard::report {

/// A run that may be resumed.
struct ResumableRun {
  std::string_view directory;
  /// The run has a command and no job file: a resumed run starts the same words.
  bool is_of_command = false;
  bool has_gpus = true;      ///< One of its machines has a GPU that tasks may reserve.
  bool has_skipped = false;  ///< Some tasks were skipped; a resumed run runs them as well.
};

/// Whether a machine of a run has a GPU that tasks may reserve; true while none is known.
bool has_gpus(const std::vector<journal::MachineRow>& machines);

class RetryAdvice {
 public:
  void look_at(const journal::TaskRow& row);

  /// A line for each cause: "tasks over their time limit: 'trainyard retry runs/x :timeout
  /// --time-limit 4h' allows more time". It names amounts that are enough for all of its tasks: at
  /// least what a retry within the run would reserve, and twice the time limit. A retry starts over
  /// with the memory and the time limit of the job, so each line also names what earlier retries
  /// gave a task beyond them. Empty when no task failed by one of them.
  [[nodiscard]] std::string text(const ResumableRun& resumable) const;

  /// "after a fix: 'trainyard run --resume runs/x' runs the failed tasks again", where a task
  /// failed for another cause, unless text() names this command already; else empty. Without the
  /// fix if signals from outside killed all of these tasks. Names what to fix if a resumed run does
  /// not read again what the tasks are.
  [[nodiscard]] std::string resume_text(const ResumableRun& run) const;

 private:
  bool out_of_memory_ = false;
  Bytes memory_;                     ///< To reserve for the tasks that ran out of memory.
  Bytes gpu_memory_;                 ///< The same, on each GPU; 0: none shares a GPU.
  Duration out_of_memory_limit_{0};  ///< Time limit that an earlier retry gave one of them; else 0.
  bool reserves_no_gpu_ = false;  ///< One ran out of GPU memory on a GPU that it did not reserve.
  bool timed_out_ = false;
  Duration time_limit_{0};      ///< To allow the tasks that timed out.
  Bytes timed_out_memory_;      ///< For a task that timed out, if more than the job has; else 0.
  Bytes timed_out_gpu_memory_;  ///< The same, on each GPU.
  bool has_other_cause_ = false;
  bool needs_fix_ = false;      ///< One of the other causes is not a signal from outside,
  bool is_read_again_ = false;  ///< and its task is in the job file, which a resumed run reads.
};

}  // namespace trainyard::report
