#include "report/result_condition.h"

#include <algorithm>
#include <compare>
#include <cstddef>
#include <expected>
#include <iterator>
#include <optional>
#include <ranges>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/number_text.h"
#include "model/status.h"
#include "report/task_state.h"
#include "text/shell_quote.h"

namespace trainyard::report {

namespace {

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
