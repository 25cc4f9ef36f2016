// What the tasks of one or more runs came to, as a table: `trainyard results`. Rows of journals in,
// a table out. People thin it out (report/result_condition.h), average and turn it
// (report/result_means.h). Pure; any thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "journal/reader.h"
#include "model/status.h"
#include "report/digest.h"
#include "report/other_code.h"
#include "report/result_fields.h"

namespace trainyard::report {

enum class ColumnKind : std::uint8_t {
  Key,    ///< What tells tasks apart: the run, the group, the id, keys of the matrix.
  Fact,   ///< What trainyard knows of a task: its status, how long it took, how many there were.
  Field,  ///< What tasks left as results.
};

/// What trainyard knows of the task of a row.
struct TaskStanding {
  model::Standing standing;
  bool edited = false;       ///< As TaskRow::edited.
  bool out_of_date = false;  ///< As TaskRow::out_of_date.
  bool lost = false;         ///< The result was not kept.
  std::string warning = {};  ///< What was wrong with its result, for people.
};

/// What stands behind the word of a status, and in the rows of JSON next to it.
struct StatusMark {
  std::string_view key;  ///< In JSON.
  std::string_view text;
  bool TaskStanding::* holds;
};
constexpr std::array<StatusMark, 2> kStatusMarks{
    {{.key = "edited", .text = "edited", .holds = &TaskStanding::edited},
     {.key = "out_of_date", .text = kOutOfDate, .holds = &TaskStanding::out_of_date}}};

struct ResultCell {
  /// As it was written, also of a mean of one task; empty where there is nothing. Of a status the
  /// word alone: shown_status() has what is shown.
  std::string text = {};
  std::optional<double> number = {};  ///< Where that is one. Of several tasks it is their mean.
  /// Of two and more tasks: by how much they differ, with n - 1 beneath.
  std::optional<double> deviation = {};
  int count = 0;                          ///< So many tasks had it.
  int tasks = 0;                          ///< Of the mean of a field: so many tasks had a result.
  std::optional<TaskStanding> task = {};  ///< In the column of the status alone.
};

struct ResultColumn {
  std::string name;
  ColumnKind kind = ColumnKind::Key;
  FieldColumn shown;      ///< How numbers of a field are written for people.
  bool averaged = false;  ///< Its cells are of several tasks.
};

struct ResultTable {
  std::vector<ResultColumn> columns;
  std::vector<std::vector<ResultCell>> rows;  ///< A cell for each column.
  /// Which cells of the matrix are not there or have no result, for people; at most kNotesMax.
  std::vector<std::string> notes;
  /// Fields that are text where a number was to be expected, before rows were left out.
  std::vector<TextField> text_fields;
  bool has_no_results = false;  ///< No task has reported a result: there is no column of a field.
  bool has_nested_results = false;  ///< Some task has reported a list or an object.
  bool thinned_out = false;         ///< Rows were left out: what is not there may be in the run.

  static constexpr std::size_t kNotesMax = 10;

  /// The place of the column of this name; an error that names the nearest one.
  [[nodiscard]] Result<std::size_t> column(std::string_view name) const;
};

constexpr std::string_view kRunColumn = "run";  ///< Where there are several runs.
/// What trainyard knows of each task.
constexpr std::string_view kStatusColumn = "status";
constexpr std::string_view kTaskColumn = "task";  ///< Its id, where ids do not come from matrices.
constexpr std::string_view kTimeColumn = "time";
constexpr std::string_view kTasksColumn = "tasks";  ///< So many were averaged.
/// What code it ran, where not all ran the same of their work trees.
constexpr std::string_view kCodeColumn = "code";

/// "FINISHED, edited, out of date", as in the table of a run.
std::string shown_status(const TaskStanding& task);

/// The cell of a key that has this value.
ResultCell key_cell(std::string_view text);

/// Numbers by their size, then other text.
bool comes_before(const ResultCell& a, const ResultCell& b);

/// Gathers tasks as rows.
class ResultRows {
 public:
  void add(std::string_view run, journal::TaskRow row);

  /// A row for each task in the order in which they came. The run, the group and the id are columns
  /// where they tell tasks apart.
  [[nodiscard]] ResultTable table() &&;

  /// For people: how many ran other code than what was started last of their run; empty: none did.
  [[nodiscard]] const OtherCode& other_code() const { return other_code_; }
  /// For people: the fields that are lists or objects; empty: none is.
  [[nodiscard]] std::string nested_note() const { return nested_text(fields_.nested()); }
  /// For people: which of them are out of date; empty: none is.
  [[nodiscard]] std::string out_of_date_note() const;

 private:
  struct Row {
    std::string run;
    std::string group;
    std::string id;
    std::vector<std::pair<std::string, std::string>> matrix;
    TaskStanding task;
    std::optional<Duration> took;
    std::string code;
    Fields fields;
  };
  [[nodiscard]] std::vector<std::string> matrix_keys() const;
  [[nodiscard]] bool codes_differ() const;

  std::deque<Row> rows_;
  FieldColumns fields_;
  OtherCode other_code_;
  std::vector<std::string> out_of_date_;  ///< Their names: "report/all".
};

/// Which numbers of the rows are NaN or infinite ("loss is NaN in 2 results (shown as -)"), and
/// which fields are text where a number was to be expected.
/// Precondition: the table is not averaged.
std::vector<std::string> number_notes(const ResultTable& table);

/// For each run of the table, how many of its rows ran an earlier command, and what runs these
/// again. `run` is the run where the table has no column of it.
/// Precondition: the table is not averaged.
std::vector<std::string> edited_notes(const ResultTable& table, std::string_view run);

/// By a column, upwards; with a minus before its name downwards. In both, numbers come before other
/// text, and what is not there comes last. Equal ones stay in their order.
Result<void> sort_by(ResultTable& table, std::string_view name);

}  // namespace trainyard::report
