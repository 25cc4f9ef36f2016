// `trainyard results`: the results of tasks, as a table.
#include <algorithm>
#include <expected>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/list_text.h"
#include "base/result.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/exit_code.h"
#include "cli/known_runs.h"
#include "cli/queued_runs.h"
#include "journal/reader.h"
#include "model/status.h"
#include "report/digest.h"
#include "report/result_condition.h"
#include "report/result_means.h"
#include "report/result_table.h"
#include "report/result_table_text.h"
#include "report/terminal_text.h"
#include "sys/terminal.h"
#include "text/condition.h"

namespace trainyard::cli {
namespace {

/// The tasks of a run, under its name as seen from here: "runs/sweep". Returns notes on them.
Result<std::vector<std::string>> add_tasks_of(const TasksOfRun& selection,
                                              report::ResultRows& rows) {
  Result<journal::JournalReader> reader = open_run(selection.run);
  if (!reader) return std::unexpected(std::move(reader.error()));
  const std::string name = seen_from_here(selection.run);
  const std::vector<std::uint32_t> again = needs_run_again(selection.run);
  std::vector<std::string> notes;
  if (!again.empty()) {
    notes = {fmt::format("{}: {}", report::kOutOfDate,
                         report::needs_run_again_text(name_of_run(selection.run), again,
                                                      how_runs_again(selection.run)))};
  }
  const auto add = [&](journal::TaskRow row) {
    row.out_of_date |= !again.empty() && row.standing.verdict == model::Verdict::Finished;
    rows.add(name, std::move(row));
  };
  if (selection.is_all()) {
    const bool died = has_died(*reader, selection.run);
    const Result<void> read = reader->tasks({}, [&](journal::TaskRow row) {
      if (died) report::mark_lost(row);
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

}  // namespace

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
  const std::string code_note =
      selections->size() == 1
          ? rows.other_code().text_with_cure(seen_from_here(selections->front().run))
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
    return fail(selections->size() == 1 ? std::move(error).in(name_of_run(selections->front().run))
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
  std::ranges::move(report::edited_notes(all, seen_from_here(selections->front().run)),
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

}  // namespace trainyard::cli
