// How tasks are retried that failed for want of memory or time. Pure.
#pragma once

#include <string>
#include <string_view>

#include "journal/reader.h"

namespace trainyard::report {

/// A run that may be resumed.
struct ResumableRun {
  std::string_view directory;
  /// It has a command and no job file: a resumed run starts the same words.
  bool is_of_command = false;
};

class RetryAdvice {
 public:
  void look_at(const journal::TaskRow& row);

  /// A line for each cause: "tasks over their time limit: 'trainyard retry runs/x :timeout
  /// --time-limit TIME' allows more time". Empty when no task failed by one of them.
  [[nodiscard]] std::string text(std::string_view run_directory) const;

  /// "after a fix: 'trainyard run --resume runs/x' runs the failed tasks again", where a task
  /// failed for another cause, unless text() names this command already; else empty.
  [[nodiscard]] std::string resume_text(const ResumableRun& run) const;

 private:
  bool out_of_memory_ = false;
  bool with_gpus_ = false;        ///< One that ran out of memory had a GPU.
  bool reserves_no_gpu_ = false;  ///< One ran out of GPU memory on a GPU that it did not reserve.
  bool timed_out_ = false;
  bool has_other_cause_ = false;
};

}  // namespace trainyard::report
