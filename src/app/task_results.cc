#include "app/task_results.h"

#include <algorithm>
#include <expected>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "base/list_text.h"
#include "report/digest.h"
#include "text/condition.h"

namespace trainyard::app {
namespace {

/// Removes the rows that do not meet all conditions. Returns ": acc is 0.81 to 0.9" for each number
/// that the conditions compare, over all rows.
Result<std::string> keep_matching_rows(const std::vector<std::string>& texts,
                                       report::ResultTable& table) {
  std::string ranges;
  std::vector<text::Condition> conditions;
  conditions.reserve(texts.size());
  for (const std::string& text : texts) {
    Result<text::Condition> condition = report::read_condition(table, text);
    if (!condition) return std::unexpected(std::move(condition.error()));
    const std::string range = report::range_text(table, condition->name);
    if (!range.empty()) ranges += (ranges.empty() ? ": " : "; ") + range;
    conditions.push_back(*std::move(condition));
  }
  for (const text::Condition& condition : conditions) {
    Result<void> kept = report::keep_where(table, condition);
    if (!kept) return std::unexpected(std::move(kept.error()));
  }
  return ranges;
}

/// The table pivoted, averaged or sorted.
Result<report::ResultTable> arranged(const ResultsRequest& request, report::ResultTable table) {
  if (request.pivot.size() == 2) {
    return report::pivoted(std::move(table), request.pivot[0], request.pivot[1], request.show);
  }
  if (!request.over.empty()) {
    Result<report::ResultTable> averaged = report::averaged_over(std::move(table), request.over);
    if (!averaged) return averaged;
    table = *std::move(averaged);
  } else {
    report::note_missing(table);
  }
  if (request.sort) {
    Result<void> sorted = report::sort_by(table, *request.sort);
    if (!sorted) return std::unexpected(std::move(sorted.error()));
  }
  return table;
}

}  // namespace

Result<void> check_results_request(const ResultsRequest& request) {
  const auto refuse = [](std::string why) { return std::unexpected(Error{std::move(why)}); };
  if (request.sort && request.sort->empty()) {
    return refuse("--sort needs a column: --sort -acc sorts by 'acc', largest first");
  }
  if (request.pivot.empty()) return {};
  if (request.pivot.size() != 2 || request.pivot[0] == request.pivot[1]) {
    return refuse("--pivot needs two different keys, for rows and columns: --pivot lr,batch");
  }
  if (!request.over.empty()) {
    return refuse(
        "--over cannot be combined with --pivot, which averages over all keys that are neither "
        "rows nor columns");
  }
  return {};
}

void TaskResults::add_run(TasksOfRun run, const std::vector<std::uint32_t>& again,
                          std::string_view cure) {
  is_out_of_date_ = !again.empty();
  if (is_out_of_date_) {
    notes_.push_back(fmt::format("{}: {}", report::kOutOfDate,
                                 report::needs_run_again_text(run.name, again, cure)));
  }
  runs_.push_back(std::move(run));
}

void TaskResults::add_task(journal::TaskRow task, std::optional<Instant> last) {
  task.out_of_date |= is_out_of_date_ && is_finished(task);
  rows_.add(runs_.back().shown, std::move(task), last);
}

Result<ResultsOutcome> TaskResults::outcome(const ResultsRequest& request,
                                            const RunFacts& facts) && {
  const TasksOfRun& first = runs_.front();
  const bool is_one_run = runs_.size() == 1;
  const auto refuse = [&](Error error) {
    return std::unexpected(is_one_run ? std::move(error).in(first.name) : std::move(error));
  };
  std::vector<std::string> notes{
      rows_.nested_note(),
      is_one_run ? rows_.other_code().text_with_cure(first.shown) : rows_.other_code().text(),
      rows_.out_of_date_note()};
  std::ranges::move(notes_, std::back_inserter(notes));
  report::ResultTable all = std::move(rows_).table();
  const bool is_for_people = !request.csv && !request.markdown && !request.json;
  ResultsOutcome outcome;
  if (all.rows.empty() && is_for_people) {
    for (const TasksOfRun& run : runs_) outcome.no_task += none_in_state(run, facts) + "\n";
    return outcome;
  }
  const Result<std::string> ranges = keep_matching_rows(request.where, all);
  if (!ranges) return refuse(ranges.error());
  if (all.rows.empty() && is_for_people) {
    outcome.no_match =
        fmt::format("no task matches {}{}", list_text(request.where, {.quote = "'"}), *ranges);
    return outcome;
  }
  std::vector<std::string> of_rows = report::number_notes(all);
  std::ranges::move(report::edited_notes(all, first.shown), std::back_inserter(of_rows));
  Result<report::ResultTable> table = arranged(request, std::move(all));
  if (!table) return refuse(std::move(table.error()));
  std::ranges::move(of_rows, std::back_inserter(table->notes));
  std::ranges::copy_if(notes, std::back_inserter(table->notes),
                       [](const std::string& note) { return !note.empty(); });
  outcome.table = *std::move(table);
  return outcome;
}

}  // namespace trainyard::app
