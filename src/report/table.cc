#include "report/table.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "base/bytes.h"
#include "base/duration_text.h"
#include "base/list_text.h"
#include "base/score.h"
#include "model/status.h"
#include "report/help_line.h"
#include "report/terminal_text.h"
#include "run/run_directory.h"
#include "text/shell_quote.h"

namespace trainyard::report {
namespace {

using journal::TaskRow;

constexpr int kGap = 2;
constexpr int kCellMax = 48;
// The least width of names before the table gives up something else for them:
constexpr int kNameMin = 20;    // a result that is no score,
constexpr int kNameShort = 12;  // what a task took,
constexpr int kNameLeast = 4;   // another name.
/// STATUS, TIME, ATTEMPTS.
constexpr std::size_t kStandingColumns = 3;
constexpr std::string_view kAnsiReset = "\x1b[0m";

bool reads_as_number(std::string_view text) {
  double ignored = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, status] = std::from_chars(text.data(), end, ignored);
  return status == std::errc{} && stop == end;
}

std::string_view colour_of(const journal::TaskRow& row) {
  if (row.standing.verdict == model::Verdict::Failed) return "\x1b[31m";
  if (row.standing.verdict == model::Verdict::Finished) return "\x1b[32m";
  if (row.standing.verdict != model::Verdict::None) return "\x1b[2m";
  return row.standing.status == Status::Interrupt ? "\x1b[33m" : "";
}

std::string or_dash(const std::string& text) { return text.empty() ? "-" : text; }

std::string matrix_value(const journal::TaskRow& row, std::string_view key) {
  for (const auto& [name, value] : row.matrix) {
    if (name == key) return value;
  }
  return "-";
}

}  // namespace

TaskTable::TaskTable(const GroupDigest& digest, const TableOptions& options)
    : options_(options), matrix_keys_(digest.matrix_keys()), results_(digest.result_columns()) {
  for (const std::string& key : matrix_keys_) {
    columns_.push_back({.title = cut(plain(key), kCellMax),
                        .cell = [key](const TaskRow& row) { return matrix_value(row, key); }});
  }
  if (columns_.empty()) {
    columns_.push_back({.title = "TASK", .cell = [](const TaskRow& row) { return row.id; }});
  }
  status_column_ = columns_.size();
  columns_.push_back({.title = "STATUS", .cell = standing_text});
  const auto time = [now = options.now](const TaskRow& row) {
    const std::optional<Duration> took = time_of_attempts(row, now);
    return took ? to_text(*took) : "-";
  };
  columns_.push_back({.title = "TIME", .right = true, .cell = time});
  columns_.push_back({.title = "ATTEMPTS", .right = true, .cell = attempts_text});
  columns_.push_back({.title = "PEAK MEMORY", .right = true, .cell = memory_peak_text});
  if (options.machines) {
    columns_.push_back(
        {.title = "MACHINE", .cell = [](const TaskRow& row) { return or_dash(row.machine); }});
  }
  if (digest.any_gpus()) {
    columns_.push_back({.title = "GPU", .right = true, .cell = [](const TaskRow& row) {
                          return or_dash(row.gpus);
                        }});
    columns_.push_back({.title = "PEAK GPU", .right = true, .cell = [](const TaskRow& row) {
                          return row.gpu_memory_peak == Bytes{} ? "-"
                                                                : to_text(row.gpu_memory_peak);
                        }});
  }
  if (digest.any_capped()) columns_.push_back({.title = "CAP", .right = true, .cell = cap_text});
  for (const FieldColumn& column : results_) {
    columns_.push_back({.title = cut(plain(column.key), kCellMax), .right = column.numeric});
  }
  for (Column& column : columns_) column.width = columns_of(column.title);
}

TaskTable::Cells TaskTable::cells_of(const journal::TaskRow& row) const {
  Cells cells;
  cells.reserve(columns_.size());
  for (const Column& column : columns_) {
    if (column.cell) cells.push_back(column.cell(row));
  }
  const Fields fields = read_fields(row.result);
  for (const FieldColumn& column : results_) {
    cells.push_back(show_field(column, find_field(fields, column.key)));
  }
  for (std::string& cell : cells) cell = cut(plain(cell), kCellMax);
  return cells;
}

void TaskTable::widen(const std::vector<Cells>& rows) {
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    if (first_ && i < matrix_keys_.size()) {
      columns_[i].right =
          std::ranges::all_of(rows, [i](const Cells& cells) { return reads_as_number(cells[i]); });
    }
    for (const Cells& cells : rows) {
      columns_[i].width = std::max(columns_[i].width, columns_of(cells[i]));
    }
  }
}

/// Width of the first columns together, with the gaps between them.
int TaskTable::width_of(std::size_t columns) const {
  int total = -kGap;
  for (const Column& column : std::span(columns_).first(columns)) total += column.width + kGap;
  return total;
}

/// Makes the widest names narrower until this number of columns has room.
void TaskTable::narrow_names(std::size_t columns, int least) {
  while (width_of(columns) > options_.width) {
    const auto widest =
        std::ranges::max_element(std::span(columns_).first(status_column_), {}, &Column::width);
    if (widest->width <= least) return;
    --widest->width;
  }
}

/// Makes names narrower, and then gives up columns: results that are no scores, but for one, then
/// the tasks' measurements, then the other results. The status stays, at the cost of names.
void TaskTable::fit() {
  if (options_.width <= 0) return;
  narrow_names(columns_.size(), kNameMin);
  while (first_ && total_width() > options_.width && results_.size() > 1) {
    std::size_t place = results_.size();
    while (place > 0 && score_direction(results_[place - 1].key)) --place;
    if (place == 0) break;
    drop_result(place - 1);
  }
  narrow_names(columns_.size(), kNameShort);
  while (first_ && total_width() > options_.width &&
         columns_.size() - results_.size() > status_column_ + kStandingColumns) {
    drop_column(columns_.size() - results_.size() - 1);
  }
  while (first_ && total_width() > options_.width && !results_.empty()) {
    drop_result(results_.size() - 1);
  }
  narrow_names(status_column_ + kStandingColumns, kNameLeast);
  while (first_ && total_width() > options_.width && matrix_keys_.size() > 1) {
    drop_column(--status_column_);
    matrix_keys_.pop_back();
  }
}

void TaskTable::drop_column(std::size_t column) {
  left_out_.insert(left_out_.begin(), columns_[column].title);
  columns_.erase(columns_.begin() + static_cast<std::ptrdiff_t>(column));
}

void TaskTable::drop_result(std::size_t place) {
  drop_column(columns_.size() - results_.size() + place);
  results_.erase(results_.begin() + static_cast<std::ptrdiff_t>(place));
}

std::string TaskTable::heading() const {
  std::string text;
  for (const Column& column : columns_) {
    if (!text.empty()) text.append(kGap, ' ');
    const std::string title = cut(column.title, column.width);
    text += column.right ? pad_left(title, column.width) : pad_right(title, column.width);
  }
  text.erase(text.find_last_not_of(' ') + 1);
  return options_.width > 0 ? cut(text, options_.width) : text;
}

std::string TaskTable::line(const journal::TaskRow& row, const Cells& cells) const {
  const bool said_why = row.standing.verdict != model::Verdict::Finished && !row.message.empty();
  const std::size_t shown = said_why ? columns_.size() - results_.size() : columns_.size();
  std::string before;
  std::string status;
  std::string after;
  for (std::size_t i = 0; i < shown; ++i) {
    const Column& column = columns_[i];
    const std::string cell = cut(cells[i], column.width);
    std::string& part = i < status_column_ ? before : i == status_column_ ? status : after;
    part += column.right ? pad_left(cell, column.width) : pad_right(cell, column.width);
    part.append(kGap, ' ');
  }
  if (said_why) after += plain(message_at(row, options_.now));
  std::string text = before + status + after;
  text.erase(text.find_last_not_of(' ') + 1);
  if (options_.width > 0) text = cut(text, options_.width);
  // Colours take no room, so they come in once the text has its width.
  const std::string_view colour = options_.colour ? colour_of(row) : "";
  const std::size_t status_size = status.find_last_not_of(' ') + 1;
  if (colour.empty() || text.size() < before.size() + status_size) return text;
  text.insert(before.size() + status_size, kAnsiReset);
  text.insert(before.size(), colour);
  return text;
}

std::string TaskTable::lines(std::span<const journal::TaskRow> rows) {
  std::vector<Cells> cells;
  cells.reserve(rows.size());
  const auto cells_of_row = [this](const journal::TaskRow& row) { return cells_of(row); };
  std::ranges::transform(rows, std::back_inserter(cells), cells_of_row);
  widen(cells);
  fit();
  if (!left_out_.empty()) {
    cells.clear();
    std::ranges::transform(rows, std::back_inserter(cells), cells_of_row);
  }
  std::string text;
  if (first_) text = heading() + "\n";
  first_ = false;
  for (std::size_t i = 0; i < rows.size(); ++i) text += line(rows[i], cells[i]) + "\n";
  return text;
}

void ShownRows::look_at(const journal::TaskRow& row) {
  if (row.standing.verdict == model::Verdict::NotSelected) return;
  if (!big_) {
    others_.push_back(row);
    return;
  }
  const bool failed = row.standing.verdict == model::Verdict::Failed;
  std::vector<journal::TaskRow>& rows = failed ? failures_ : others_;
  const int rows_max = failed ? kFailuresShown : kOthersShown;
  if (std::ssize(rows) < rows_max) rows.push_back(row);
}

std::vector<journal::TaskRow> ShownRows::take() {
  std::vector<journal::TaskRow> rows = std::move(failures_);
  std::ranges::move(others_, std::back_inserter(rows));
  return rows;
}

std::string group_heading(const GroupDigest& digest, const std::string& run_directory) {
  const journal::GroupRow& group = digest.group();
  std::string text = fmt::format("{}: {}", plain(group.name), counted(group.tasks, "task"));
  if (const std::string counts = counts_text(digest); !counts.empty()) text += ", " + counts;
  if (!group.message.empty()) {
    text += ": " + plain(cause_text(group, group.message, run_directory));
  }
  return text + "\n";
}

namespace {

/// The page of the group in the run's reports.
std::string page_of(const GroupDigest& digest, const std::string& run_directory) {
  return plain(
      fmt::format("{}/reports/{}.html", run_directory, run::report_name(digest.group().name)));
}

/// "6 columns left out (loss, epochs, f1, lr, ...): 'trainyard results runs/x' shows all results".
/// `results` is the command.
std::string left_out_text(const GroupDigest& digest, const TaskTable& table,
                          const std::string& results) {
  std::vector<std::string> names = table.left_out();
  const std::vector<std::string> fields = digest.fields_left_out();
  for (const std::string& field : fields) names.push_back(plain(field));
  if (names.empty()) return {};
  std::string text = columns_left_out(names);
  if (table.result_columns() < digest.result_columns().size() || !fields.empty()) {
    text += fmt::format(": {} shows all results", text::quoted_command(results));
  }
  return text + "\n";
}

/// Counts all results as `status` and the page do, and names those without a NaN.
std::string warnings_text(const GroupDigest& digest, const std::string& run_directory) {
  const int others = digest.warnings() - digest.replaced_numbers().count();
  std::string text;
  if (others > 0) {
    text = fmt::format("{} missing or changed:\n", counted(digest.warnings(), "result"));
  }
  for (const journal::TaskRow& row : digest.first_warned()) {
    text += fmt::format("  {}: {}\n", plain(row.id), plain(result_warning(row, run_directory)));
  }
  const auto more = others - std::ssize(digest.first_warned());
  if (more > 0) {
    text += fmt::format("  and {} more: {}\n", with_commas(more), page_of(digest, run_directory));
  }
  for (const std::string& line : digest.replaced_numbers().lines()) {
    text += fmt::format("{}{}\n", others > 0 ? "  " : "", line);
  }
  return text;
}

}  // namespace

std::string group_footer(const GroupDigest& digest, int rows_known, const TaskTable& table,
                         std::string_view best_title) {
  std::string text;
  const std::string& run_directory = table.run_directory();
  if (const int more = digest.group().tasks - rows_known; more > 0) {
    const std::string status =
        fmt::format("trainyard status {} --all", plain(text::shell_word(run_directory)));
    text += fmt::format("and {} more: {}, or {}\n", with_commas(more), text::quoted_command(status),
                        page_of(digest, run_directory));
  }
  const std::string results =
      fmt::format("trainyard results {}", plain(text::shell_word(run_directory)));
  text += left_out_text(digest, table, results);
  if (const std::string nested = nested_text(digest.nested_fields()); !nested.empty()) {
    text += plain(nested) + "\n";
  }
  for (const TextField& field : digest.text_fields()) text += text_field_note(field) + "\n";
  text += warnings_text(digest, run_directory);
  const std::string edited = edited_text(digest.edited(), digest.group().tasks, run_directory);
  if (!edited.empty()) text += plain(edited) + "\n";
  if (digest.out_of_date() > 0) {
    const std::string retry =
        fmt::format("trainyard retry {} --cascade", text::shell_word(run_directory));
    text += fmt::format("{}: {}\n", out_of_date_text(digest.out_of_date()),
                        runs_again_text(retry, digest.out_of_date()));
  }
  if (digest.other_code().count() > 0) {
    text += digest.other_code().text_with_cure(run_directory) + "\n";
  }
  if (const std::optional<Best> best = digest.best(); best && !best_title.empty()) {
    text += fmt::format("{}: {} {} {}\n", best_title, plain(best->id), best->key, best->text);
  }
  if (const std::vector<std::string> rivals = digest.rival_scores(); !rivals.empty()) {
    const bool more = score_direction(rivals.front()) == Better::More;
    text += fmt::format("no best task, as the results have several scores ({}): {} sorts by one\n",
                        list_text(rivals),
                        text::quoted_command(fmt::format("{} --sort {}{}", results, more ? "-" : "",
                                                         rivals.front())));
  }
  if (const std::optional<Best> before = digest.better_before_edit()) {
    text += fmt::format("best with an earlier command: {} {} {}\n", plain(before->id), before->key,
                        before->text);
  }
  return text;
}

std::string group_table(const GroupDigest& digest, std::span<const journal::TaskRow> rows,
                        const TableOptions& options) {
  std::string heading = group_heading(digest, options.run_directory);
  // A group that never began has no facts to show task by task.
  const journal::GroupRow& group = digest.group();
  const bool never_began = group.skipped + group.not_needed + group.not_selected == group.tasks;
  if (never_began && !options.all && !group.why_skipped.empty()) {
    return heading + fmt::format("skipped: {}\n", plain(cause_text(group, group.why_skipped,
                                                                   options.run_directory)));
  }
  if (rows.empty() || (never_began && !options.all)) return heading;
  TaskTable table(digest, options);
  std::string text = heading + "\n" + table.lines(rows);
  const int not_selected = options.all ? 0 : group.not_selected;
  const std::string footer =
      group_footer(digest, static_cast<int>(rows.size()) + not_selected, table);
  return footer.empty() ? text : text + "\n" + footer;
}

}  // namespace trainyard::report
