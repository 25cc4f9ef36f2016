// `trainyard results`: the results of tasks, as a table.
#include <cstddef>
#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>

#include "app/task_results.h"
#include "base/result.h"
#include "base/time.h"
#include "cli/console.h"
#include "cli/entry.h"
#include "cli/exit_code.h"
#include "cli/help_format.h"
#include "cli/known_runs.h"
#include "cli/queued_runs.h"
#include "cli/selection_words.h"
#include "cli/shared_words.h"
#include "cli/value_kinds.h"
#include "journal/reader.h"
#include "report/digest.h"
#include "report/result_table.h"
#include "report/terminal_text.h"
#include "sys/terminal.h"

namespace trainyard::cli {
namespace {

struct ResultsOptions {
  std::vector<std::string> words;  ///< Runs and tasks, as app/task_selection.h says.
  std::string run_directory;
  app::ResultsRequest request;
};

/// Reads the selected tasks of a run one by one, as there may be many.
Result<void> add_tasks_of(const TasksOfRun& selection, app::TaskResults& results) {
  Result<journal::JournalReader> reader = open_run(selection.run);
  if (!reader) return std::unexpected(std::move(reader.error()));
  const Result<std::vector<std::uint32_t>> again = needs_run_again(selection.run);
  if (!again) return std::unexpected(again.error());
  results.add_run(selection, *again, again->empty() ? "" : how_runs_again(selection.run));
  const bool over = is_over(*reader, selection.run);
  const Result<Instant> last = reader->last_instant();
  if (!last) return std::unexpected(last.error());
  const auto last_if_over = over ? std::optional(*last) : std::nullopt;
  if (selection.is_all()) {
    return reader->tasks({}, [&](journal::TaskRow row) {
      if (over) report::mark_lost(row);
      results.add_task(std::move(row), last_if_over);
      return true;
    });
  }
  auto tasks = selected_tasks(*reader, selection, SameName::MeansAll);
  if (!tasks) return std::unexpected(tasks.error());
  for (journal::TaskRow& row : *tasks) results.add_task(std::move(row), last_if_over);
  return {};
}

ExitCode results_command(const ResultsOptions& options) {
  const app::ResultsRequest& request = options.request;
  const Result<void> fits = app::check_results_request(request);
  if (!fits) return fail(fits.error());
  const Result<std::vector<TasksOfRun>> selections =
      read_selections({.words = options.words, .run_directory = options.run_directory});
  if (!selections) return fail(selections.error());
  app::TaskResults results;
  for (const TasksOfRun& selection : *selections) {
    if (const std::string which = which_run_note(selection); !which.empty()) note(which);
    const Result<void> added = add_tasks_of(selection, results);
    if (!added) return fail(added.error());
  }
  const Result<app::ResultsOutcome> outcome = std::move(results).outcome(request, run_facts());
  if (!outcome) return fail(outcome.error());
  if (!outcome->no_task.empty()) return answer(outcome->no_task);
  if (!outcome->no_match.empty()) return fail(outcome->no_match, ExitCode::Success);
  const report::ResultTable& table = outcome->table;
  if (request.json) return answer(report::result_table_json(table));
  if (request.csv) {
    // A program reads the table, the user the notes.
    for (const std::string& line : table.notes) note(report::plain(line));
    return answer_bytes(report::result_table_csv(table));
  }
  if (request.markdown) return answer(report::result_table_markdown(table));
  const bool terminal = sys::is_terminal(sys::kStandardOutput);
  const std::string sorted = request.sort.value_or("");
  return answer(report::result_table_text(
      table, {.width = terminal ? sys::terminal_width(sys::kStandardOutput) : 0,
              .kept = std::string_view(sorted).substr(sorted.starts_with('-') ? 1 : 0)}));
}

CLI::App* add_results(CLI::App& app, ResultsOptions& options) {
  app::ResultsRequest& request = options.request;
  CLI::App* results =
      app.add_subcommand("results", "Show task results as a table: sort, average, pivot");
  results->group(command_groups::kWatch);
  add_selection(*results, options.words, options.run_directory,
                "Tasks or run (default: the latest run)");
  const auto in_table = [](CLI::Option* option) { return option->group("Table"); };
  in_table(results->add_option("--over", request.over, "Keys to average over: seed, or fold,seed"))
      ->type_name(value_kinds::kKeyColumns)
      ->delimiter(',')
      ->expected(1)
      ->allow_extra_args(false)
      ->take_all();
  in_table(results->add_option("--where", request.where,
                               "Rows to show: 'lr<1e-3', 'acc>86%', 'status=oom'; repeatable"))
      ->type_name(value_kinds::kCondition)
      ->expected(1)
      ->allow_extra_args(false)
      ->take_all();
  in_table(
      results->add_option("--sort", request.sort, "Sort by a column; -test_acc: largest first"))
      ->type_name(value_kinds::kColumn);
  CLI::Option* const pivot =
      in_table(results->add_option("--pivot", request.pivot, "Keys for rows and columns: lr,batch"))
          ->type_name(value_kinds::kPivot)
          ->delimiter(',')
          ->expected(1)
          ->allow_extra_args(false)
          ->take_all();
  in_table(results->add_option("--show", request.show, "Column in the cells of --pivot"))
      ->type_name(value_kinds::kColumn)
      ->needs(pivot);
  CLI::Option* const csv = results->add_flag("--csv", request.csv, "Print CSV");
  CLI::Option* const markdown = results->add_flag("--markdown", request.markdown, "Print Markdown");
  csv->group(option_groups::kOutput)->excludes(markdown);
  markdown->group(option_groups::kOutput);
  add_json(*results, request.json);
  results->get_option("--json")->excludes(csv)->excludes(markdown);
  pivot->excludes(results->get_option("--sort"));
  results->footer(
      std::string("Examples:\n"
                  "  trainyard results\n"
                  "  trainyard results --over seed --sort -test_acc\n"
                  "  trainyard results runs/sweep runs/sweep-2 --where 'lr<1e-3' --csv\n"
                  "  trainyard results 46 'optimizer=adam*'\n"
                  "  trainyard results --pivot lr,seed --show test_acc\n"
                  "\n") +
      kSelectionHelp +
      "\n"
      "Several runs share a table. In a narrow terminal, columns that do not fit are left out\n"
      "and named below it. Averages are mean ± standard deviation over finished tasks: 'time'\n"
      "over all of them, a result over those that reported it. 'tasks' is the number of tasks\n"
      "with a result. '(2 of 3)' after an average: 2 of the 3 tasks with a result have this\n"
      "number.\n"
      "Combinations of values without a task are listed below the averages, except those that\n"
      "'run --only' left out. With --where, none are listed.\n"
      "--where takes <, <=, >, >=, = and !=, but no patterns; TASKS takes patterns:\n"
      "'optimizer=adam*'.\n"
      "'status' is compared with a state (failed, oom) or a word of the table ('EXIT 3'), in\n"
      "upper or lower case. 'time' is the sum over all attempts, as TIME in the table at the end\n"
      "of a run.\n"
      "Exit codes: 0 shown, 1 standard output cannot be written, 2 no such run or column.");
  return results;
}

}  // namespace

Entry results_entry() { return entry({"results"}, add_results, results_command); }

std::vector<const char*> with_joined_sort(const std::vector<const char*>& words,
                                          std::string& kept) {
  std::vector<const char*> joined;
  joined.reserve(words.size());
  for (std::size_t i = 0; i < words.size(); ++i) {
    const bool sort = std::string_view(words[i]) == "--sort" && i + 1 < words.size();
    if (!sort || !std::string_view(words[i + 1]).starts_with('-') || !kept.empty()) {
      joined.push_back(words[i]);
      continue;
    }
    kept = std::string("--sort=") + words[i + 1];
    joined.push_back(kept.c_str());
    ++i;
  }
  return joined;
}

}  // namespace trainyard::cli
