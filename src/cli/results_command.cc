// `trainyard results`: the results of tasks, as a table.
#include <algorithm>
#include <cstddef>
#include <expected>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "base/list_text.h"
#include "base/result.h"
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
#include "model/status.h"
#include "report/digest.h"
#include "report/result_table.h"
#include "report/terminal_text.h"
#include "sys/terminal.h"
#include "text/condition.h"

namespace trainyard::cli {
namespace {

struct ResultsOptions {
  std::vector<std::string> words;  ///< Runs and tasks, as app/task_selection.h says.
  std::string run_directory;
  std::vector<std::string> over;   ///< Keys to average over.
  std::vector<std::string> where;  ///< Conditions, all of which hold for the output.
  std::string sort;                ///< A column, with a minus before it downwards; may be empty.
  std::vector<std::string> pivot;  ///< Two keys, or none.
  std::string show;                ///< The field of a pivot; empty: the obvious one.
  bool csv = false;
  bool markdown = false;
  bool json = false;
};

/// The tasks of a run, under its name as seen from here: "runs/sweep". Returns notes on them.
Result<std::vector<std::string>> add_tasks_of(const TasksOfRun& selection,
                                              report::ResultRows& rows) {
  Result<journal::JournalReader> reader = open_run(selection.run);
  if (!reader) return std::unexpected(std::move(reader.error()));
  const Result<std::vector<std::uint32_t>> again = needs_run_again(selection.run);
  if (!again) return std::unexpected(again.error());
  std::vector<std::string> notes;
  if (!again->empty()) {
    notes = {fmt::format(
        "{}: {}", report::kOutOfDate,
        report::needs_run_again_text(selection.name, *again, how_runs_again(selection.run)))};
  }
  const auto add = [&](journal::TaskRow row) {
    row.out_of_date |= !again->empty() && row.standing.verdict == model::Verdict::Finished;
    rows.add(selection.shown, std::move(row));
  };
  if (selection.is_all()) {
    const bool over = is_over(*reader, selection.run);
    const Result<void> read = reader->tasks({}, [&](journal::TaskRow row) {
      if (over) report::mark_lost(row);
      add(std::move(row));
      return true;
    });
    if (!read) return std::unexpected(read.error());
    return notes;
  }
  auto tasks = selected_tasks(*reader, selection, SameName::MeansAll);
  if (!tasks) return std::unexpected(tasks.error());
  for (journal::TaskRow& row : *tasks) add(std::move(row));
  return notes;
}

/// Removes the rows that do not meet all conditions.
Result<void> keep_where(const std::vector<std::string>& conditions, report::ResultTable& table) {
  for (const std::string& text : conditions) {
    const Result<text::Condition> condition = report::read_condition(table, text);
    if (!condition) return std::unexpected(condition.error());
    if (Result<void> kept = report::keep_where(table, *condition); !kept) return kept;
  }
  return {};
}

/// ": acc is 0.81 to 0.9", for each number that the conditions compare.
std::string value_ranges(const std::vector<std::string>& conditions,
                         const report::ResultTable& table) {
  std::string ranges;
  for (const std::string& text : conditions) {
    const Result<text::Condition> condition = text::parse_condition(text);
    const std::string range = condition ? report::range_text(table, condition->name) : "";
    if (!range.empty()) ranges += (ranges.empty() ? ": " : "; ") + range;
  }
  return ranges;
}

Result<report::ResultTable> asked_for(const ResultsOptions& options, report::ResultTable table) {
  if (options.pivot.size() == 2) {
    return report::pivoted(std::move(table), options.pivot[0], options.pivot[1], options.show);
  }
  if (!options.over.empty()) {
    Result<report::ResultTable> averaged = report::averaged_over(std::move(table), options.over);
    if (!averaged) return averaged;
    table = std::move(*averaged);
  } else {
    report::note_missing(table);
  }
  if (!options.sort.empty()) {
    if (Result<void> sorted = report::sort_by(table, options.sort); !sorted) {
      return std::unexpected(std::move(sorted.error()));
    }
  }
  return table;
}

ExitCode results_command(const ResultsOptions& options) {
  const Result<std::vector<TasksOfRun>> selections =
      read_selections({.words = options.words, .run_directory = options.run_directory});
  if (!selections) return fail(selections.error());
  report::ResultRows rows;
  std::vector<std::string> notes;
  for (const TasksOfRun& selection : *selections) {
    if (const std::string which = which_run_note(selection); !which.empty()) note(which);
    Result<std::vector<std::string>> added = add_tasks_of(selection, rows);
    if (!added) return fail(added.error());
    std::ranges::move(*added, std::back_inserter(notes));
  }
  const std::string code_note = selections->size() == 1
                                    ? rows.other_code().text_with_cure(selections->front().shown)
                                    : rows.other_code().text();
  notes.insert(notes.begin(), {rows.nested_note(), code_note, rows.out_of_date_note()});
  report::ResultTable all = std::move(rows).table();
  const bool for_programs = options.json || options.csv || options.markdown;
  if (all.rows.empty() && !for_programs) {
    std::string text;
    for (const TasksOfRun& selection : *selections) text += none_in_state(selection) + "\n";
    return answer(text);
  }
  const std::string ranges =
      options.where.empty() ? std::string() : value_ranges(options.where, all);
  // Without a word the latest run is shown, which need not be the intended one.
  const auto fail_of_run = [&](Error error) {
    return fail(selections->size() == 1 ? std::move(error).in(selections->front().name)
                                        : std::move(error));
  };
  if (const Result<void> kept = keep_where(options.where, all); !kept) {
    return fail_of_run(kept.error());
  }
  if (all.rows.empty() && !for_programs) {
    return fail(
        fmt::format("no task matches {}{}", list_text(options.where, {.quote = "'"}), ranges),
        ExitCode::Success);
  }
  std::vector<std::string> of_rows = report::number_notes(all);
  std::ranges::move(report::edited_notes(all, selections->front().shown),
                    std::back_inserter(of_rows));
  Result<report::ResultTable> table = asked_for(options, std::move(all));
  if (!table) return fail_of_run(table.error());
  std::ranges::move(of_rows, std::back_inserter(table->notes));
  for (const std::string& note : notes) {
    if (!note.empty()) table->notes.push_back(note);
  }
  if (options.json) return answer(report::result_table_json(*table));
  if (options.csv) {
    // A program reads the table, the user the notes.
    for (const std::string& line : table->notes) note(report::plain(line));
    return answer_bytes(report::result_table_csv(*table));
  }
  if (options.markdown) return answer(report::result_table_markdown(*table));
  const bool terminal = sys::is_terminal(sys::kStandardOutput);
  const std::string_view sorted = options.sort;
  return answer(report::result_table_text(
      *table, {.width = terminal ? sys::terminal_width(sys::kStandardOutput) : 0,
               .kept = sorted.substr(sorted.starts_with('-') ? 1 : 0)}));
}

class ResultsWords {
 public:
  explicit ResultsWords(CLI::App& app);
  std::optional<ExitCode> run();

 private:
  CLI::App* results_;
  ResultsOptions options_;
};

ResultsWords::ResultsWords(CLI::App& app) {
  results_ = app.add_subcommand("results", "Show task results as a table: sort, average, pivot");
  results_->group(command_groups::kWatch);
  add_selection(*results_, options_.words, options_.run_directory,
                "Tasks or run (default: the latest run)");
  const auto in_table = [](CLI::Option* option) { return option->group("Table"); };
  in_table(
      results_->add_option("--over", options_.over, "Keys to average over: seed, or fold,seed"))
      ->type_name(value_kinds::kKeyColumns)
      ->delimiter(',')
      ->expected(1)
      ->allow_extra_args(false)
      ->take_all();
  in_table(results_->add_option("--where", options_.where,
                                "Rows to show: 'lr<1e-3', 'acc>86%', 'status=oom'; repeatable"))
      ->type_name(value_kinds::kCondition)
      ->expected(1)
      ->allow_extra_args(false)
      ->take_all();
  in_table(
      results_->add_option("--sort", options_.sort, "Sort by a column; -test_acc: largest first"))
      ->type_name(value_kinds::kColumn);
  CLI::Option* const pivot = in_table(results_->add_option("--pivot", options_.pivot,
                                                           "Keys for rows and columns: lr,batch"))
                                 ->type_name(value_kinds::kPivot)
                                 ->delimiter(',')
                                 ->expected(1)
                                 ->allow_extra_args(false)
                                 ->take_all();
  in_table(results_->add_option("--show", options_.show, "Column in the cells of --pivot"))
      ->type_name(value_kinds::kColumn)
      ->needs(pivot);
  CLI::Option* const csv = results_->add_flag("--csv", options_.csv, "Print CSV");
  CLI::Option* const markdown =
      results_->add_flag("--markdown", options_.markdown, "Print Markdown");
  csv->group(option_groups::kOutput)->excludes(markdown);
  markdown->group(option_groups::kOutput);
  add_json(*results_, options_.json);
  results_->get_option("--json")->excludes(csv)->excludes(markdown);
  pivot->excludes(results_->get_option("--sort"));
  results_->footer(
      std::string("Examples:\n"
                  "  trainyard results\n"
                  "  trainyard results --over seed --sort -test_acc\n"
                  "  trainyard results runs/sweep runs/sweep-2 --where 'lr<1e-3' --csv\n"
                  "  trainyard results 46 'optimizer=adam*'\n"
                  "  trainyard results --pivot lr,seed --show test_acc\n"
                  "\n") +
      kSelectionHelp +
      "\n"
      "Several runs share a table. In a narrow terminal, columns without room are left out and\n"
      "named below it. Averages are mean ± standard deviation over finished tasks: 'time' over\n"
      "all of them, a result over those that reported it. 'tasks' is the number of tasks with a\n"
      "result. '(2 of 3)' after an average: 2 of the 3 tasks with a result have this number.\n"
      "Combinations of values without a task are listed below the averages, except those that\n"
      "'run --only' left out. With --where, none are listed.\n"
      "--where takes <, <=, >, >=, = and !=, but no patterns; TASKS takes patterns:\n"
      "'optimizer=adam*'.\n"
      "'status' is compared with a state (failed, oom) or a word of the table ('EXIT 3'), in any\n"
      "case. 'time' is the sum over all attempts, as TIME in the table at the end of a run.\n"
      "Exit codes: 0 shown, 1 standard output cannot be written, 2 no such run or column.");
}

std::optional<ExitCode> ResultsWords::run() {
  if (!results_->parsed()) return std::nullopt;
  if (results_->count("--sort") > 0 && options_.sort.empty()) {
    return fail("--sort needs a column: --sort -acc sorts by 'acc', largest first");
  }
  if (results_->count("--pivot") > 0 && options_.pivot.size() != 2) {
    return fail("--pivot needs two keys, for rows and columns: --pivot lr,batch");
  }
  if (results_->count("--pivot") > 0 && results_->count("--over") > 0) {
    return fail(
        "--over cannot be combined with --pivot, which averages over all keys that are neither "
        "rows nor columns");
  }
  return results_command(options_);
}

}  // namespace

Entry results_entry() { return entry<ResultsWords>({"results"}); }

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
