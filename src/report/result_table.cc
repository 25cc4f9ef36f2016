#include "report/result_table.h"

#include <algorithm>
#include <compare>
#include <expected>
#include <functional>
#include <iterator>
#include <map>
#include <ranges>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/duration_text.h"
#include "base/list_text.h"
#include "base/nearest.h"
#include "base/number_text.h"
#include "report/replaced_numbers.h"
#include "report/task_state.h"
#include "text/shell_quote.h"

namespace trainyard::report {
namespace {

ResultCell cell_of(const Field* field) {
  if (field == nullptr || field->kind == FieldKind::Null) return {};
  ResultCell cell{.text = field->text, .is_truth = field->kind == FieldKind::Truth, .count = 1};
  if (field->is_number()) cell.number = field->number;
  return cell;
}

/// A column would be the same member of a row of JSON.
bool is_mark(std::string_view name) {
  return std::ranges::find(kStatusMarks, name, &StatusMark::key) != kStatusMarks.end();
}

/// A key of the matrix may be called as a column that tables have, or averages.
std::string name_of_key(const std::string& key) {
  constexpr std::array<std::string_view, 7> kOwn{
      kRunColumn, "group", kTaskColumn, kStatusColumn, kTimeColumn, kTasksColumn, kCodeColumn};
  return !is_mark(key) && std::ranges::find(kOwn, key) == kOwn.end() ? key : "matrix." + key;
}

/// The meaning of a condition on the status: a state such as "failed", which covers several words,
/// or the word itself, as the column or the table of a run shows it ("exit 3", "FAILED EXIT 3",
/// "FINISHED, edited").
class StatusMatch {
 public:
  explicit StatusMatch(std::string_view value) : word_(in_capitals(value)) {
    for (const StatusMark& mark : kStatusMarks | std::views::reverse) {
      const std::string text = in_capitals(fmt::format(", {}", mark.text));
      if (!word_.ends_with(text)) continue;
      word_.erase(word_.size() - text.size());
      marks_.push_back(mark);
    }
    if (const Result<TaskState> state = read_task_state(word_)) state_ = *state;
    constexpr std::string_view kBeforeCause = "FAILED ";
    if (word_.starts_with(kBeforeCause)) word_.erase(0, kBeforeCause.size());
  }

  /// Whether some task can have this status.
  [[nodiscard]] bool is_known() const {
    constexpr std::string_view kExit = "EXIT ";
    const bool is_exit = word_.starts_with(kExit) && number_in(word_.substr(kExit.size()));
    return state_ || is_exit || read_task_state(word_);
  }

  [[nodiscard]] bool holds(const TaskStanding& task) const {
    for (const StatusMark& mark : marks_) {
      if (!(task.*mark.holds)) return false;
    }
    return state_ ? is_in(task.standing, *state_) : model::word_for(task.standing) == word_;
  }

 private:
  static std::string in_capitals(std::string_view text) {
    std::string capitals(text);
    for (char& letter : capitals) {
      if (letter >= 'a' && letter <= 'z') letter = static_cast<char>(letter - 'a' + 'A');
    }
    return capitals;
  }

  std::string word_;
  std::optional<TaskState> state_;
  std::vector<StatusMark> marks_;
};

constexpr std::string_view kOr = " or ";

/// "--where lr=0.1 --where width=8" for "lr=0.1,width=8", as the id of a task has it, or for another
/// `joint` than the comma. Empty where a piece is not a condition on a column of the table.
std::string conditions_apart(const ResultTable& table, const text::Condition& condition,
                             std::string_view joint) {
  const std::string_view sign = condition.is == text::Condition::Is::Equal ? "=" : "!=";
  std::string words;
  for (const auto piece : std::views::split(condition.value, joint)) {
    const std::string_view part(piece.begin(), piece.end());
    if (words.empty()) {
      words = "--where " + text::shell_word(fmt::format("{}{}{}", condition.name, sign, part));
      continue;
    }
    const Result<text::Condition> next = text::parse_condition(part);
    if (!next || !table.column(next->name)) return {};
    words += " --where " + text::shell_word(part);
  }
  return words;
}

}  // namespace

std::string shown_status(const TaskStanding& task) {
  std::string text = model::word_for(task.standing);
  for (const StatusMark& mark : kStatusMarks) {
    if (task.*mark.holds) text += fmt::format(", {}", mark.text);
  }
  return text;
}

ResultCell key_cell(std::string_view text) {
  return {.text = std::string(text), .number = number_in(text), .count = 1};
}

bool comes_before(const ResultCell& a, const ResultCell& b) {
  if (a.number && b.number) {
    return compare_numbers({.text = a.text, .number = *a.number},
                           {.text = b.text, .number = *b.number}) < 0;
  }
  if (a.number.has_value() != b.number.has_value()) return a.number.has_value();
  return a.text < b.text;
}

Result<std::size_t> ResultTable::column(std::string_view name) const {
  const auto found = std::ranges::find(columns, name, &ResultColumn::name);
  if (found != columns.end()) return static_cast<std::size_t>(found - columns.begin());
  // Averages have no column for a field without numbers.
  if (const auto text = std::ranges::find(text_fields, name, &TextField::key);
      text != text_fields.end()) {
    return std::unexpected(Error{fmt::format("no numbers in column '{}': {}", name, text->text)});
  }
  if (std::ranges::find(left_out_fields, name) != left_out_fields.end()) {
    return std::unexpected(
        Error{fmt::format("no numbers in column '{}': no finished task has one", name)});
  }
  std::vector<std::string_view> names;
  std::ranges::transform(columns, std::back_inserter(names), &ResultColumn::name);
  const std::optional<std::string_view> near = nearest(name, names);
  if (near) {
    return std::unexpected(
        Error{fmt::format("column '{}' not found (did you mean '{}'?)", name, *near)});
  }
  const char* const why = !has_no_results      ? ""
                          : has_nested_results ? ": the results contain only lists and objects"
                                               : ": no task has reported a result yet";
  return std::unexpected(
      Error{fmt::format("column '{}' not found{}; use {}", name, why, fmt::join(names, ", "))});
}

void ResultRows::add(std::string_view run, journal::TaskRow row, std::optional<Instant> last) {
  other_code_.look_at(row);
  if (row.out_of_date) out_of_date_.push_back(fmt::format("{}/{}", row.group_name, row.id));
  TaskStanding task{.standing = row.standing,
                    .edited = row.edited,
                    .out_of_date = row.out_of_date,
                    .lost = row.result.empty() && !row.warning.empty(),
                    .warning = result_warning(row, run)};
  rows_.push_back({.run = std::string(run),
                   .group = std::move(row.group_name),
                   .id = std::move(row.id),
                   .matrix = std::move(row.matrix),
                   .task = std::move(task),
                   .took = time_of_attempts(row, last),
                   .code = std::move(row.code),
                   .fields = read_fields(row.result)});
  fields_.look_at(rows_.back().fields);
}

std::string ResultRows::out_of_date_note() const {
  constexpr std::size_t kNamedMax = 3;
  if (out_of_date_.empty()) return {};
  return fmt::format("{}: {}", out_of_date_text(static_cast<int>(out_of_date_.size())),
                     short_list_text(out_of_date_, kNamedMax));
}

std::vector<std::string> ResultRows::matrix_keys() const {
  std::vector<std::string> keys;
  for (const Row& row : rows_) {
    for (const auto& [key, value] : row.matrix) {
      if (std::ranges::find(keys, key) == keys.end()) keys.push_back(key);
    }
  }
  return keys;
}

/// Whether two rows ran different code. They may belong to two runs, each of which ran one code.
bool ResultRows::codes_differ() const {
  std::string_view first;
  for (const Row& row : rows_) {
    if (row.code.empty()) continue;
    if (!first.empty() && row.code != first) return true;
    first = row.code;
  }
  return false;
}

ResultTable ResultRows::table() && {
  const auto differ = [this](auto what) {
    return std::ranges::any_of(rows_,
                               [&](const Row& row) { return row.*what != rows_.front().*what; });
  };
  const bool runs = differ(&Row::run);
  const bool groups = differ(&Row::group);
  const bool ids = std::ranges::any_of(rows_, [](const Row& row) { return row.matrix.empty(); });
  const bool codes = codes_differ();
  const std::vector<std::string> keys = matrix_keys();
  const std::vector<FieldColumn> fields = fields_.first(FieldColumns::kKeysMax);
  ResultTable table;
  const auto add_column = [&table](std::string_view name, ColumnKind kind, FieldColumn shown = {}) {
    table.columns.push_back(
        {.name = std::string(name), .kind = kind, .shown = std::move(shown), .averaged = false});
  };
  if (runs) add_column(kRunColumn, ColumnKind::Key);
  if (groups) add_column("group", ColumnKind::Key);
  if (ids) add_column(kTaskColumn, ColumnKind::Key);
  for (const std::string& key : keys) add_column(name_of_key(key), ColumnKind::Key);
  add_column(kStatusColumn, ColumnKind::Fact);
  add_column(kTimeColumn, ColumnKind::Fact, {.key = std::string(kTimeColumn), .numeric = true});
  if (codes) add_column(kCodeColumn, ColumnKind::Fact);
  for (const FieldColumn& field : fields) {
    // A script that writes its arguments has those of the matrix among its results.
    const bool taken =
        is_mark(field.key) ||
        std::ranges::find(table.columns, field.key, &ResultColumn::name) != table.columns.end();
    add_column(taken ? "result." + field.key : field.key, ColumnKind::Field, field);
  }
  table.text_fields = fields_.texts();
  table.has_no_results = fields.empty();
  table.has_nested_results = !fields_.nested().empty();
  table.rows.reserve(rows_.size());
  // Rows are freed as their cells are made, so that a table of ten thousand rows is not in memory
  // twice.
  for (; !rows_.empty(); rows_.pop_front()) {
    Row& row = rows_.front();
    std::vector<ResultCell> cells;
    cells.reserve(table.columns.size());
    if (runs) cells.push_back(key_cell(row.run));
    if (groups) cells.push_back(key_cell(row.group));
    if (ids) cells.push_back(key_cell(row.id));
    for (const std::string& key : keys) {
      const auto value =
          std::ranges::find(row.matrix, key, &std::pair<std::string, std::string>::first);
      cells.push_back(value == row.matrix.end() ? ResultCell{} : key_cell(value->second));
    }
    cells.push_back(
        {.text = model::word_for(row.task.standing), .count = 1, .task = std::move(row.task)});
    cells.emplace_back();
    if (row.took) {
      cells.back() = {.text = to_text(*row.took),
                      .number = static_cast<double>(row.took->count()) / 1000,
                      .count = 1};
    }
    if (codes) {
      cells.emplace_back();
      if (!row.code.empty()) cells.back() = {.text = row.code, .count = 1};
    }
    for (const FieldColumn& field : fields)
      cells.push_back(cell_of(find_field(row.fields, field.key)));
    table.rows.push_back(std::move(cells));
  }
  return table;
}

std::vector<std::string> number_notes(const ResultTable& table) {
  ReplacedNumbers replaced;
  for (const std::vector<ResultCell>& row : table.rows) {
    for (const ResultCell& cell : row) {
      if (cell.task) replaced.look_at(cell.task->warning);
    }
  }
  std::vector<std::string> notes = replaced.lines();
  std::ranges::transform(table.text_fields, std::back_inserter(notes), text_field_note);
  return notes;
}

std::vector<std::string> edited_notes(const ResultTable& table, std::string_view run) {
  struct Counts {
    int edited = 0;
    int all = 0;
  };
  std::map<std::string, Counts, std::less<>> runs;
  const bool has_runs = !table.columns.empty() && table.columns.front().name == kRunColumn;
  for (const std::vector<ResultCell>& row : table.rows) {
    Counts& counts = runs[has_runs ? row.front().text : std::string(run)];
    ++counts.all;
    for (const ResultCell& cell : row) counts.edited += cell.task && cell.task->edited ? 1 : 0;
  }
  std::vector<std::string> notes;
  for (const auto& [name, counts] : runs) {
    std::string note = edited_text(counts.edited, counts.all, name);
    if (!note.empty()) notes.push_back(std::move(note));
  }
  return notes;
}

namespace {

std::string_view without_sign(std::string_view name) {
  return name.starts_with('-') || name.starts_with('+') ? name.substr(1) : name;
}

/// "--sort takes one column: --sort lr or --sort -loss" for a list of columns, "lr,-loss".
std::optional<Error> several_columns(const ResultTable& table, std::string_view list) {
  if (!list.contains(',')) return std::nullopt;
  std::vector<std::string> options;
  for (const auto each : std::views::split(list, ',')) {
    const std::string_view name(each);
    if (!table.column(without_sign(name))) return std::nullopt;
    options.push_back("--sort " + text::shell_word(name));
  }
  return Error{fmt::format("--sort takes one column: {}", fmt::join(options, " or "))};
}

}  // namespace

Result<void> sort_by(ResultTable& table, std::string_view name) {
  const bool down = name.starts_with('-');
  const Result<std::size_t> place = table.column(without_sign(name));
  if (!place) return std::unexpected(several_columns(table, name).value_or(place.error()));
  std::vector<std::size_t> order(table.rows.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::ranges::sort(order, [&](std::size_t a, std::size_t b) {
    const ResultCell& one = table.rows[a][*place];
    const ResultCell& other = table.rows[b][*place];
    if ((one.count == 0) != (other.count == 0)) return other.count == 0;
    if (one.number.has_value() != other.number.has_value()) return one.number.has_value();
    if (down ? comes_before(other, one) : comes_before(one, other)) return true;
    if (down ? comes_before(one, other) : comes_before(other, one)) return false;
    return a < b;
  });
  std::vector<std::vector<ResultCell>> sorted;
  sorted.reserve(order.size());
  for (const std::size_t index : order) sorted.push_back(std::move(table.rows[index]));
  table.rows = std::move(sorted);
  return {};
}

Result<text::Condition> read_condition(const ResultTable& table, std::string_view text) {
  Result<text::Condition> condition = text::parse_condition(text);
  if (condition || text.find_first_of("<>!=") != std::string_view::npos) return condition;
  std::vector<std::string_view> names;
  std::ranges::transform(table.columns, std::back_inserter(names), &ResultColumn::name);
  return std::unexpected(Error{
      fmt::format("{}; the columns are {}", condition.error().message, fmt::join(names, ", "))});
}

Result<void> keep_where(ResultTable& table, const text::Condition& condition) {
  using Is = text::Condition::Is;
  const Result<std::size_t> place = table.column(condition.name);
  if (!place) return std::unexpected(place.error());
  const std::optional<double> value = text::number_of(condition.value);
  const ResultColumn& column = table.columns[*place];
  const bool is_status = column.kind == ColumnKind::Fact && column.name == kStatusColumn;
  const StatusMatch status(condition.value);
  const bool compares_words = condition.is == Is::Equal || condition.is == Is::Unequal;
  const auto has_value = [&](const std::vector<ResultCell>& row) {
    return row[*place].text == condition.value;
  };
  if (compares_words && std::ranges::none_of(table.rows, has_value)) {
    for (const std::string_view joint : {std::string_view(","), std::string_view(" and "), kOr}) {
      if (!condition.value.contains(joint)) continue;
      const std::string apart = conditions_apart(table, condition, joint);
      if (apart.empty()) continue;
      const std::string cure = joint == kOr
                                   ? "conditions cannot be joined by 'or'; use one at a time"
                                   : "write " + apart;
      return std::unexpected(Error{
          fmt::format("no task has '{}' as its {}: {}", condition.value, condition.name, cure)});
    }
  }
  if (is_status && compares_words && !status.is_known()) {
    const std::string_view sign = condition.is == Is::Equal ? "=" : "!=";
    return std::unexpected(
        read_task_state(condition.value, fmt::format("{}{}", kStatusColumn, sign)).error());
  }
  const auto is_kept = [&](const std::vector<ResultCell>& row) {
    const ResultCell& cell = row[*place];
    if (value && cell.number) {
      const std::strong_ordering order = compare_numbers(
          {.text = cell.text, .number = *cell.number}, {.text = condition.value, .number = *value});
      return text::holds(condition.is, order < 0 ? -1 : (order > 0 ? 1 : 0), 0);
    }
    const bool same = cell.task ? status.holds(*cell.task) : cell.text == condition.value;
    return (condition.is == Is::Equal && same) || (condition.is == Is::Unequal && !same);
  };
  std::erase_if(table.rows, [&](const auto& row) { return !is_kept(row); });
  table.thinned_out = true;
  return {};
}

std::string range_text(const ResultTable& table, std::string_view name) {
  const Result<std::size_t> place = table.column(name);
  if (!place) return {};
  const ResultCell* smallest = nullptr;
  const ResultCell* largest = nullptr;
  for (const std::vector<ResultCell>& row : table.rows) {
    const ResultCell& cell = row[*place];
    if (!cell.number) continue;
    if (smallest == nullptr || *cell.number < *smallest->number) smallest = &cell;
    if (largest == nullptr || *cell.number > *largest->number) largest = &cell;
  }
  if (smallest == nullptr) return {};
  const bool is_one = *smallest->number == *largest->number;
  return fmt::format("{} is {}{}{}", name, smallest->text, is_one ? "" : " to " + largest->text,
                     table.columns[*place].shown.percent ? ", shown as a percentage" : "");
}

}  // namespace trainyard::report
