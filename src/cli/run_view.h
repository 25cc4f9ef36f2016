// The output of a run in a terminal, during the run and at its end.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/exit_code.h"
#include "job/jobs.h"
#include "model/turn.h"
#include "report/progress.h"
#include "sys/output.h"
#include "wire/control.h"

namespace trainyard::cli {

/// The progress line on standard error, which never blocks the run. `jobs` must outlive it.
class RunView {
 public:
  explicit RunView(const job::Jobs& jobs);
  RunView(RunView&&) = delete;
  RunView& operator=(RunView&&) = delete;
  ~RunView() = default;

  void on(const model::Turn& turn) { progress_.on(turn); }
  void note(std::string_view line) { progress_.note(line); }
  void finish();

 private:
  sys::Output output_;
  report::ProgressLine progress_;
};

struct ResultsView {
  bool json = false;
  std::vector<wire::Retry> retries;   ///< The tasks that were to be retried; none: all count.
  std::vector<std::string> warnings;  ///< Printed under the tables, and not with JSON.
  bool is_of_command = false;  ///< The run has no job file; a resumed run starts the same words.
};

/// Writes the reports, prints the tables (or JSON) on standard output, and returns whether all
/// tasks succeeded, or, if there are retries, those.
ExitCode show_results(const std::string& run_directory, const ResultsView& view);

}  // namespace trainyard::cli
