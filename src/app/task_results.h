// The table of `trainyard results`, from the selected tasks of its runs. Pure; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "app/run_facts.h"
#include "app/task_selection.h"
#include "base/result.h"
#include "base/time.h"
#include "journal/reader.h"
#include "report/result_table.h"

namespace trainyard::app {

struct ResultsRequest {
  std::vector<std::string> over = {};    ///< Keys to average over.
  std::vector<std::string> where = {};   ///< Conditions, all of which hold for the output.
  std::optional<std::string> sort = {};  ///< A column, with a minus before it downwards.
  std::vector<std::string> pivot = {};   ///< Two keys, or none.
  std::string show = {};                 ///< The field of a pivot; empty: the obvious one.
  bool csv = false;
  bool markdown = false;
  bool json = false;
};

/// An error for options that are incomplete, and for those that cannot be combined.
Result<void> check_results_request(const ResultsRequest& request);

struct ResultsOutcome {
  report::ResultTable table = {};
  std::string no_task = {};   ///< The lines to print if no task is selected; else empty.
  std::string no_match = {};  ///< The message if no task meets the conditions; else empty.
};

/// Gathers the selected tasks, run by run.
class TaskResults {
 public:
  /// Adds a run. If other runs that it needs ran again since, it is out of date: `again` are their
  /// numbers, and `cure` is the way in which it runs again.
  void add_run(TasksOfRun run, const std::vector<std::uint32_t>& again = {},
               std::string_view cure = {});
  /// Adds a task of the last run. `last` is as for report::ResultRows::add().
  void add_task(journal::TaskRow task, std::optional<Instant> last = std::nullopt);

  /// The table as requested, with its notes. CSV, Markdown and JSON of no task are a table without
  /// rows. The error of a single run has its name, as a run that is taken without a word need not be
  /// the intended one. Precondition: at least one run.
  Result<ResultsOutcome> outcome(const ResultsRequest& request, const RunFacts& facts) &&;

 private:
  std::vector<TasksOfRun> runs_;
  bool is_out_of_date_ = false;  ///< The last run.
  std::vector<std::string> notes_;
  report::ResultRows rows_;
};

}  // namespace trainyard::app
