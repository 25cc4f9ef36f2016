#include <algorithm>
#include <cmath>
#include <expected>
#include <iterator>
#include <map>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/nearest.h"
#include "base/number_text.h"
#include "base/score.h"
#include "report/replaced_numbers.h"
#include "report/result_table.h"
#include "report/terminal_text.h"

namespace trainyard::report {
namespace {

using Row = std::vector<ResultCell>;
using Places = std::vector<std::size_t>;

Places places_of(const ResultTable& table, ColumnKind kind) {
  Places places;
  for (std::size_t i = 0; i < table.columns.size(); ++i) {
    if (table.columns[i].kind == kind) places.push_back(i);
  }
  return places;
}

std::vector<std::string> texts_at(const Row& row, const Places& places) {
  std::vector<std::string> texts;
  texts.reserve(places.size());
  for (const std::size_t place : places) texts.push_back(row[place].text);
  return texts;
}

/// The values of a row in a form in which equal numbers are equal texts: 1e-3 is 0.001.
std::vector<std::string> values_of(const Row& row, const Places& places) {
  std::vector<std::string> values;
  values.reserve(places.size());
  for (const std::size_t place : places) {
    const ResultCell& cell = row[place];
    values.push_back(cell.number ? same_number_text(cell.text, *cell.number) : cell.text);
  }
  return values;
}

/// The task as other commands name it: "train/lr=0.1,seed=3", "train/a". An id names it alone,
/// without the values of its keys.
std::string named(const ResultTable& table, const Places& places,
                  const std::vector<std::string>& texts) {
  // In the order of the columns: the run and the group are first.
  std::map<std::size_t, std::string_view> text_at;
  for (std::size_t i = 0; i < places.size(); ++i) text_at.emplace(places[i], texts[i]);
  const bool has_id = std::ranges::any_of(text_at, [&table](const auto& it) {
    return table.columns[it.first].name == kTaskColumn && !it.second.empty();
  });
  std::string name;
  std::string_view separator;
  for (const auto& [place, text] : text_at) {
    const std::string& column = table.columns[place].name;
    const bool is_value = column == "run" || column == "group" || column == kTaskColumn;
    if (text.empty() || (has_id && !is_value)) continue;
    name += separator;
    name += is_value ? std::string(text) : fmt::format("{}={}", column, text);
    separator = column == "run" || column == "group" ? "/" : ",";
  }
  return name;
}

/// A bounded number of notes, and how many more there would be.
class Notes {
 public:
  void add(std::string note) {
    if (notes_.size() < ResultTable::kNotesMax) {
      notes_.push_back(std::move(note));
    } else {
      ++more_;
    }
  }
  [[nodiscard]] std::vector<std::string> take() && {
    if (more_ > 0) notes_.back() = fmt::format("and {} more", more_ + 1);
    return std::move(notes_);
  }

 private:
  std::vector<std::string> notes_;
  std::size_t more_ = 0;
};

/// Names the rows without a result, and those whose result does not count. Tasks that have finished
/// are counted, not named, when no task of the table has a result: then no command of the job writes
/// one.
class MissingResults {
 public:
  MissingResults(const ResultTable& table, std::size_t status)
      : table_(table), fields_(places_of(table, ColumnKind::Field)), status_(status) {}

  void add(const Row& row, const std::string& name, Notes& notes) {
    const ResultCell& status = row[status_];
    if (!status.task) return;
    const TaskStanding& task = *status.task;
    switch (task.standing.verdict) {
      case model::Verdict::None:
      case model::Verdict::NotSelected:
      case model::Verdict::NotNeeded:
        return;  // The column of the status is enough.
      case model::Verdict::Finished:
        if (task.lost) {
          notes.add(fmt::format("{}: no result: {}", name, task.warning));
          return;
        }
        // number_notes() counts it.
        if (ReplacedNumbers().look_at(task.warning)) return;
        if (!table_.has_no_results) break;
        if (!table_.has_nested_results) ++finished_;
        return;
      case model::Verdict::Failed:
      case model::Verdict::Skipped:
      case model::Verdict::Stopped:
        break;
    }
    const bool has_values =
        std::ranges::any_of(fields_, [&](std::size_t place) { return !row[place].text.empty(); });
    notes.add(fmt::format("{}: {}, {}", name, has_values ? "result not counted" : "no result",
                          status.text));
  }

  /// After all rows.
  void finish(std::vector<std::string>& notes) const {
    if (finished_ == 0) return;
    notes.push_back(fmt::format(
        "{} reported no result: print a line '::metric acc=0.9', or write a JSON object to the "
        "file named by $TRAINYARD_RESULT",
        counted(finished_, "finished task")));
  }

 private:
  const ResultTable& table_;
  Places fields_;
  std::size_t status_;
  std::int64_t finished_ = 0;
};

/// The mean of the numbers at one place of these rows.
ResultCell mean_of(const std::vector<const Row*>& rows, std::size_t place) {
  ResultCell mean;
  double sum = 0;
  for (const Row* const row : rows) {
    const std::optional<double>& number = (*row)[place].number;
    if (!number) continue;
    sum += *number;
    ++mean.count;
    mean.text = (*row)[place].text;
  }
  if (mean.count == 0) return mean;
  const double middle = sum / mean.count;
  double squares = 0;
  for (const Row* const row : rows) {
    const double off = (*row)[place].number.value_or(middle) - middle;
    squares += off * off;
  }
  if (mean.count > 1) mean.deviation = std::sqrt(squares / (mean.count - 1));
  mean.number = middle;
  if (mean.count > 1) mean.text = fmt::format("{}", middle);
  return mean;
}

bool is_finished(const ResultCell& status) {
  return status.task && status.task->standing.verdict == model::Verdict::Finished;
}

bool has_result(const Row& row, const Places& fields) {
  return std::ranges::any_of(fields, [&](std::size_t place) { return row[place].count > 0; });
}

/// The input of averaging.
struct Averaging {
  const ResultTable& table;
  Places kept;    ///< The keys that stay,
  Places gone;    ///< and the keys that are averaged over.
  Places fields;  ///< The columns to average,
  Places left;    ///< and all that tasks leave.
  Places meant;   ///< The run and the group among `kept`: within these all cells are expected.
  std::size_t status = 0;
};

/// The existing cells of the keys that are averaged over, by run and group.
using MeantCells =
    std::map<std::vector<std::string>, std::map<std::vector<std::string>, const Row*>>;

/// Rows that become one, in the order in which the first of each came.
std::vector<std::vector<const Row*>> together(const Averaging& of) {
  std::map<std::vector<std::string>, std::size_t> places;
  std::vector<std::vector<const Row*>> groups;
  for (const Row& row : of.table.rows) {
    const auto [place, is_new] = places.try_emplace(values_of(row, of.kept), groups.size());
    if (is_new) groups.emplace_back();
    groups[place->second].push_back(&row);
  }
  return groups;
}

/// Notes the tasks of a group that are missing or have no result. In a table that was filtered,
/// missing tasks are not known.
void note_missing(const Averaging& of, const std::vector<const Row*>& group,
                  const MeantCells& cells, MissingResults& missing, Notes& notes) {
  const std::vector<std::string> kept = texts_at(*group.front(), of.kept);
  Places both = of.kept;
  std::ranges::copy(of.gone, std::back_inserter(both));
  const auto name = [&](const Row& row) {
    std::vector<std::string> texts = kept;
    std::ranges::copy(texts_at(row, of.gone), std::back_inserter(texts));
    return named(of.table, both, texts);
  };
  std::set<std::vector<std::string>> there;
  for (const Row* const row : group) {
    if (!has_result(*row, of.left)) missing.add(*row, name(*row), notes);
    there.insert(values_of(*row, of.gone));
  }
  // No two tasks have the same id, so that a task is not missing where another row has its id.
  const auto has_id = [&](std::size_t key) {
    return of.table.columns[key].name == kTaskColumn && !(*group.front())[key].text.empty();
  };
  if (of.table.thinned_out || std::ranges::any_of(both, has_id)) return;
  for (const auto& [values, row] : cells.at(texts_at(*group.front(), of.meant))) {
    if (!there.contains(values)) notes.add(fmt::format("{}: no such task", name(*row)));
  }
}

MeantCells cells_of(const Averaging& of) {
  MeantCells cells;
  for (const Row& row : of.table.rows) {
    std::vector<std::string> values = values_of(row, of.gone);
    auto& meant = cells[texts_at(row, of.meant)];
    // A row without a value for one of the keys is not a cell that other rows could be missing.
    const bool is_whole = std::ranges::none_of(values, &std::string::empty);
    if (is_whole) meant.try_emplace(std::move(values), &row);
  }
  return cells;
}

/// The code that these rows ran: one version, or the number of versions.
ResultCell code_of(const std::vector<const Row*>& rows, std::size_t place) {
  std::set<std::string_view> codes;
  for (const Row* const row : rows) {
    if ((*row)[place].count > 0) codes.insert((*row)[place].text);
  }
  if (codes.empty()) return {};
  std::string text = codes.size() == 1 ? std::string(*codes.begin())
                                       : fmt::format("{} different ones", codes.size());
  return {.text = std::move(text), .count = 1};
}

std::optional<std::string> obvious_field(const ResultTable& table, const Places& fields) {
  if (fields.size() == 1) return table.columns[fields.front()].name;
  for (const bool accuracies : {true, false}) {
    std::optional<std::string> found;
    int count = 0;
    for (const std::size_t place : fields) {
      const std::string& name = table.columns[place].name;
      const bool fits = accuracies ? is_accuracy(name) : score_direction(name).has_value();
      if (!fits) continue;
      found = name;
      ++count;
    }
    if (count == 1) return found;
  }
  return std::nullopt;
}

/// A key or a field may have the same name.
std::optional<std::size_t> fact_column(const ResultTable& table, std::string_view name) {
  for (const std::size_t place : places_of(table, ColumnKind::Fact)) {
    if (table.columns[place].name == name) return place;
  }
  return std::nullopt;
}

/// Fields with a number in any of the rows: a text among them is left out by itself.
Places numbers_of(const ResultTable& table) {
  Places places = places_of(table, ColumnKind::Field);
  std::erase_if(places, [&](std::size_t place) {
    return std::ranges::none_of(table.rows,
                                [place](const Row& row) { return row[place].number.has_value(); });
  });
  return places;
}

/// A field may have the name of a column of averages: "acc_std" next to "acc", or "tasks".
void tell_apart(std::vector<ResultColumn>& columns) {
  std::set<std::string> taken;
  for (const ResultColumn& column : columns) {
    if (column.kind != ColumnKind::Field) taken.insert(column.name);
    if (!column.averaged) continue;
    taken.insert(column.name + "_std");
    taken.insert(column.name + "_n");
  }
  for (ResultColumn& column : columns) {
    if (column.kind == ColumnKind::Field && taken.contains(column.name)) {
      column.name = "result." + column.name;
    }
  }
}

std::vector<std::string> values_at(const ResultTable& table, std::size_t place) {
  std::vector<ResultCell> cells;
  for (const Row& row : table.rows) {
    if (std::ranges::find(cells, row[place].text, &ResultCell::text) == cells.end()) {
      cells.push_back(row[place]);
    }
  }
  if (std::ranges::all_of(cells, [](const ResultCell& it) { return it.number.has_value(); })) {
    std::ranges::sort(cells, comes_before);
  }
  std::vector<std::string> values;
  std::ranges::transform(cells, std::back_inserter(values), &ResultCell::text);
  return values;
}

Result<std::size_t> key_column(const ResultTable& table, std::string_view name) {
  std::vector<std::string_view> keys;
  for (const std::size_t place : places_of(table, ColumnKind::Key)) {
    if (table.columns[place].name == name) return place;
    keys.emplace_back(table.columns[place].name);
  }
  const std::optional<std::string_view> near = nearest(name, keys);
  const bool has_matrix = std::ranges::any_of(keys, [](std::string_view key) {
    return key != kRunColumn && key != "group" && key != kTaskColumn;
  });
  if (!near && !has_matrix) {
    return std::unexpected(
        Error{fmt::format("'{}' is not a key of the matrix: these tasks have none", name)});
  }
  return std::unexpected(Error{fmt::format("'{}' is not a key of the matrix{}", name,
                                           near ? fmt::format(" (did you mean '{}'?)", *near)
                                                : fmt::format("; use {}", fmt::join(keys, ", ")))});
}

/// The columns that identify a task: run, group and id, if the table has a column of ids.
Places places_that_name(const ResultTable& table) {
  Places keys = places_of(table, ColumnKind::Key);
  const auto is = [&](std::size_t place, std::string_view name) {
    return table.columns[place].name == name;
  };
  if (std::ranges::none_of(keys, [&](std::size_t it) { return is(it, kTaskColumn); })) return keys;
  std::erase_if(keys, [&](std::size_t it) {
    return !is(it, "run") && !is(it, "group") && !is(it, kTaskColumn);
  });
  return keys;
}

bool is_run_or_group(const ResultColumn& column) {
  return column.kind == ColumnKind::Key && (column.name == "run" || column.name == "group");
}

/// Removes the rows that have no value for one of the keys, as they belong to no cell, and notes how
/// many. An error if rows of several runs or groups are left, as a cell is not averaged over these.
Result<void> keep_one_group(ResultTable& table, const Places& keys) {
  for (const std::size_t key : keys) {
    const auto count =
        std::erase_if(table.rows, [key](const Row& row) { return row[key].count == 0; });
    if (count == 0) continue;
    table.notes.push_back(
        fmt::format("{} without '{}' left out", counted(count, "task"), table.columns[key].name));
  }
  for (const std::size_t place : places_of(table, ColumnKind::Key)) {
    const ResultColumn& column = table.columns[place];
    const std::vector<std::string> values = values_at(table, place);
    const bool turned = std::ranges::find(keys, place) != keys.end();
    if (turned || !is_run_or_group(column) || values.size() < 2) continue;
    return std::unexpected(Error{fmt::format(
        "--pivot needs tasks of one {0}, but these are of '{1}' and '{2}': select one, as in "
        "--where '{0}={1}'",
        column.name, values[0], values[1])});
  }
  return {};
}

/// Removes the ids of tasks that have a value for a key that is averaged over: the ids would keep
/// these rows apart. If the average is over the ids themselves, they name the tasks.
void forget_ids_of_cells(ResultTable& table, const Places& gone) {
  const auto is_gone = [&gone](std::size_t place) {
    return std::ranges::find(gone, place) != gone.end();
  };
  for (const std::size_t id : places_of(table, ColumnKind::Key)) {
    if (table.columns[id].name != kTaskColumn || is_gone(id)) continue;
    for (Row& row : table.rows) {
      const auto has_value = [&row](std::size_t place) { return !row[place].text.empty(); };
      if (std::ranges::any_of(gone, has_value)) row[id] = {};
    }
  }
}

/// Averages are over finished tasks: the last values of the others are no results, and the others
/// did not run to their end, so that their times are no times of a task. The texts stay, for the
/// notes.
void forget_unfinished(ResultTable& table, std::size_t status, std::size_t time) {
  Places places = places_of(table, ColumnKind::Field);
  places.push_back(time);
  for (Row& row : table.rows) {
    if (is_finished(row[status])) continue;
    for (const std::size_t place : places) row[place] = {.text = std::move(row[place].text)};
  }
}

}  // namespace

void note_missing(ResultTable& table) {
  const Places keys = places_that_name(table);
  const Places fields = places_of(table, ColumnKind::Field);
  const std::optional<std::size_t> status = fact_column(table, kStatusColumn);
  if (!status) return;
  Notes notes;
  MissingResults missing(table, *status);
  for (const Row& row : table.rows) {
    // The column of the status says why the others have none.
    if (!is_finished(row[*status]) || has_result(row, fields)) continue;
    missing.add(row, named(table, keys, texts_at(row, keys)), notes);
  }
  table.notes = std::move(notes).take();
  missing.finish(table.notes);
}

Result<ResultTable> averaged_over(ResultTable table, const std::vector<std::string>& keys) {
  Averaging of{.table = table, .left = places_of(table, ColumnKind::Field)};
  for (const std::string& key : keys) {
    const Result<std::size_t> place = key_column(table, key);
    if (!place) return std::unexpected(place.error());
    if (std::ranges::find(of.gone, *place) == of.gone.end()) of.gone.push_back(*place);
  }
  forget_ids_of_cells(table, of.gone);
  of.kept = places_of(table, ColumnKind::Key);
  std::erase_if(of.kept,
                [&](std::size_t it) { return std::ranges::find(of.gone, it) != of.gone.end(); });
  const std::optional<std::size_t> status = fact_column(table, kStatusColumn);
  const std::optional<std::size_t> time = fact_column(table, kTimeColumn);
  if (!status || !time) return std::unexpected(Error{"it is averaged already"});
  of.status = *status;
  of.meant = of.kept;
  std::erase_if(of.meant, [&](std::size_t it) { return !is_run_or_group(table.columns[it]); });
  const std::optional<std::size_t> code = fact_column(table, kCodeColumn);
  forget_unfinished(table, of.status, *time);
  of.fields = numbers_of(table);
  ResultTable averaged;
  averaged.text_fields = table.text_fields;
  for (const std::size_t place : of.left) {
    if (std::ranges::find(of.fields, place) != of.fields.end()) continue;
    averaged.left_out_fields.push_back(table.columns[place].name);
  }
  averaged.has_no_results = table.has_no_results;
  averaged.has_nested_results = table.has_nested_results;
  for (const std::size_t place : of.kept) averaged.columns.push_back(table.columns[place]);
  averaged.columns.push_back({.name = std::string(kTasksColumn), .kind = ColumnKind::Fact});
  if (code) averaged.columns.push_back(table.columns[*code]);
  Places means{*time};
  std::ranges::copy(of.fields, std::back_inserter(means));
  for (const std::size_t place : means) {
    averaged.columns.push_back(table.columns[place]);
    averaged.columns.back().averaged = true;
  }
  tell_apart(averaged.columns);
  const MeantCells cells = cells_of(of);
  Notes notes;
  MissingResults missing(of.table, of.status);
  for (const std::vector<const Row*>& group : together(of)) {
    Row row;
    for (const std::size_t place : of.kept) row.push_back((*group.front())[place]);
    const auto count = static_cast<int>(
        std::ranges::count_if(group, [&](const Row* it) { return has_result(*it, of.left); }));
    row.push_back(key_cell(fmt::format("{}", count)));
    if (code) row.push_back(code_of(group, *code));
    row.push_back(mean_of(group, *time));
    for (const std::size_t place : of.fields) {
      row.push_back(mean_of(group, place));
      row.back().tasks = count;
    }
    note_missing(of, group, cells, missing, notes);
    averaged.rows.push_back(std::move(row));
  }
  averaged.notes = std::move(notes).take();
  missing.finish(averaged.notes);
  return averaged;
}

Result<ResultTable> pivoted(ResultTable table, std::string_view rows, std::string_view columns,
                            std::string_view field) {
  const Result<std::size_t> down = key_column(table, rows);
  if (!down) return std::unexpected(down.error());
  const Result<std::size_t> across = key_column(table, columns);
  if (!across) return std::unexpected(across.error());
  if (Result<void> one = keep_one_group(table, {*down, *across}); !one) {
    return std::unexpected(std::move(one.error()));
  }
  const Places numbers = numbers_of(table);
  const std::optional<std::string> wanted =
      field.empty() ? obvious_field(table, numbers) : std::optional(std::string(field));
  if (!wanted && numbers.empty()) {
    return std::unexpected(
        Error{fmt::format("--pivot needs a number in the results, and no task has one{}",
                          table.text_fields.empty() ? "" : ": " + table.text_fields.front().text)});
  }
  if (!wanted) {
    std::vector<std::string_view> names;
    for (const std::size_t place : numbers) names.emplace_back(table.columns[place].name);
    return std::unexpected(
        Error{fmt::format("--pivot shows one number, and the results have several ({}): select "
                          "one, as in '--show {}'",
                          fmt::join(names, ", "), names.front())});
  }
  std::vector<std::string> others;
  for (const std::size_t place : places_of(table, ColumnKind::Key)) {
    if (place != *down && place != *across) others.push_back(table.columns[place].name);
  }
  const bool thinned_out = table.thinned_out;
  const std::vector<std::string> left_out = std::move(table.notes);
  const Result<ResultTable> averaged = averaged_over(std::move(table), others);
  if (!averaged) return averaged;
  const Result<std::size_t> shown = averaged->column(*wanted);
  if (!shown) return std::unexpected(shown.error());
  const std::size_t row_key = averaged->column(rows).value_or(0);
  const std::size_t column_key = averaged->column(columns).value_or(0);
  ResultTable turned;
  turned.columns.push_back(averaged->columns[row_key]);
  const std::vector<std::string> titles = values_at(*averaged, column_key);
  for (const std::string& title : titles) {
    turned.columns.push_back(averaged->columns[*shown]);
    turned.columns.back().name = fmt::format("{}={}", columns, title);
  }
  Notes notes;
  notes.add(fmt::format("shown: {}", *wanted));
  for (const std::string& note : left_out) notes.add(note);
  for (const std::string& note : averaged->notes) notes.add(note);
  for (const std::string& value : values_at(*averaged, row_key)) {
    Row row(turned.columns.size());
    std::set<std::string_view> there;
    row[0] = key_cell(value);
    for (const Row& from : averaged->rows) {
      if (from[row_key].text != value) continue;
      const auto title = std::ranges::find(titles, from[column_key].text);
      there.insert(*title);
      row[static_cast<std::size_t>(title - titles.begin()) + 1] = from[*shown];
    }
    turned.rows.push_back(std::move(row));
    for (const std::string& title : titles) {
      if (there.contains(title) || thinned_out) continue;
      notes.add(fmt::format("{}={},{}={}: no such task", rows, value, columns, title));
    }
  }
  turned.notes = std::move(notes).take();
  return turned;
}

}  // namespace trainyard::report
