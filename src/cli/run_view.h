// What a person sees of a run while it goes on, and at its end.
#pragma once

#include <string>
#include <string_view>

#include "cli/exit_code.h"
#include "config/job.h"
#include "io/output.h"
#include "model/plan.h"
#include "model/turn.h"
#include "report/progress.h"

namespace trainyard::cli {

/// The progress line on standard error, which holds nobody up. `job` must outlive it.
class RunView {
 public:
  RunView(const Job& job, const Plan& plan);
  RunView(RunView&&) = delete;
  RunView& operator=(RunView&&) = delete;
  ~RunView() = default;

  void on(const Turn& turn) { progress_.on(turn); }
  void note(std::string_view line) { progress_.note(line); }
  void finish();

 private:
  io::Output output_;
  report::ProgressLine progress_;
};

/// Writes the reports, prints the tables (or JSON) on standard output, and says whether all went
/// well.
ExitCode show_results(const std::string& run_directory, bool json);

}  // namespace trainyard::cli
