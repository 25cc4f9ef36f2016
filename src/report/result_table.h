// The results of the tasks of one or more runs as a table: `trainyard results`. Rows of journals
// in, a table out. Users filter it, average and pivot it, and read it as text. Pure; any thread.
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
#include "text/condition.h"

namespace trainyard::report {

enum class ColumnKind : std::uint8_t {
  Key,    ///< Tells tasks apart: the run, the group, the id, keys of the matrix.
  Fact,   ///< Known to trainyard itself: the status, the duration, the number of tasks.
  Field,  ///< Reported by tasks as a result.
};

/// The state of the task of a row, as the journal has it.
struct TaskStanding {
  model::Standing standing;
  bool edited = false;       ///< See TaskRow::edited.
  bool out_of_date = false;  ///< See TaskRow::out_of_date.
  bool lost = false;         ///< The result was not kept.
  std::string warning = {};  ///< The mistake in its result, for people.
};

/// A mark after the word of a status, as in "FINISHED, edited", and a key of its row in JSON.
struct StatusMark {
  std::string_view key;  ///< In JSON.
  std::string_view text;
  bool TaskStanding::* holds;
};
constexpr std::array<StatusMark, 2> kStatusMarks{
    {{.key = "edited", .text = "edited", .holds = &TaskStanding::edited},
     {.key = "out_of_date", .text = kOutOfDate, .holds = &TaskStanding::out_of_date}}};

struct ResultCell {
  /// The value as the task wrote it, also for a mean of one task; empty where the task has none. A
  /// status is its word alone: shown_status() adds the marks.
  std::string text = {};
  std::optional<double> number = {};  ///< The same as a number, or the mean of several tasks.
  /// Standard deviation of two or more tasks, with n - 1 in the denominator.
  std::optional<double> deviation = {};
  bool is_truth = false;  ///< A result that is `true` or `false` in JSON.
  int count = 0;          ///< Number of tasks that have the value.
  int tasks = 0;          ///< For the mean of a field: number of tasks with a result.
  std::optional<TaskStanding> task = {};  ///< Set in the column of the status alone.
};

struct ResultColumn {
  std::string name;
  ColumnKind kind = ColumnKind::Key;
  FieldColumn shown;      ///< Format of the numbers of a field for people.
  bool averaged = false;  ///< Its cells are of several tasks.
};

struct ResultTable {
  std::vector<ResultColumn> columns;
  std::vector<std::vector<ResultCell>> rows;  ///< A cell for each column.
  /// Notes for people on cells of the matrix that are missing or have no result; at most kNotesMax.
  std::vector<std::string> notes;
  /// Fields that are text where a number was to be expected, before rows were left out.
  std::vector<TextField> text_fields;
  /// Fields without a number in any finished task: averages have no columns for them.
  std::vector<std::string> left_out_fields;
  bool has_no_results = false;  ///< No task has reported a result: there is no column of a field.
  bool has_nested_results = false;  ///< Some task has reported a list or an object.
  bool thinned_out = false;         ///< Rows were left out: a missing row may be in the run.

  static constexpr std::size_t kNotesMax = 10;

  /// The place of the column of this name; an error that names the nearest one.
  [[nodiscard]] Result<std::size_t> column(std::string_view name) const;
};

constexpr std::string_view kRunColumn = "run";  ///< Present if there are several runs.
constexpr std::string_view kStatusColumn = "status";
constexpr std::string_view kTaskColumn = "task";  ///< The id, where ids do not come from matrices.
constexpr std::string_view kTimeColumn = "time";
constexpr std::string_view kTasksColumn = "tasks";  ///< Number of tasks in an average.
/// Code version of the task, where the tasks of a work tree did not all run the same one.
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
  /// `last` is the last instant of a run that is over: the tasks that were lost with it ran until
  /// then, at least.
  void add(std::string_view run, journal::TaskRow row, std::optional<Instant> last = std::nullopt);

  /// A row for each task in the order in which they came. The run, the group and the id are columns
  /// where they tell tasks apart.
  [[nodiscard]] ResultTable table() &&;

  /// For people: the number that ran other code than the tasks of their run that started last;
  /// empty: none did.
  [[nodiscard]] const OtherCode& other_code() const { return other_code_; }
  /// For people: the fields that are lists or objects; empty: none is.
  [[nodiscard]] std::string nested_note() const { return nested_text(fields_.nested()); }
  /// For people: the tasks that are out of date; empty: none is.
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

/// Notes for people on numbers that are NaN or infinite ("loss is NaN in 2 results (shown as -)"),
/// and on fields that are text where a number was to be expected.
/// Precondition: the table is not averaged.
std::vector<std::string> number_notes(const ResultTable& table);

/// For each run of the table, how many of its rows ran an earlier command, and what runs these
/// again. `run` is the run where the table has no column of it.
/// Precondition: the table is not averaged.
std::vector<std::string> edited_notes(const ResultTable& table, std::string_view run);

/// Sorts the rows by a column, upwards; with a minus before its name downwards. In both, numbers
/// come before other text, and rows without a value come last. Equal rows keep their order.
Result<void> sort_by(ResultTable& table, std::string_view name);

/// Reads a condition on a column of the table, as text::parse_condition() does. The error for a text
/// without a comparison names the columns.
Result<text::Condition> read_condition(const ResultTable& table, std::string_view text);

/// Keeps the rows for which it holds. Numbers are compared as numbers, however they are written:
/// 86% is 0.86. The status is compared with a state ("failed", "oom") or with its word ("EXIT 3"),
/// in any case.
Result<void> keep_where(ResultTable& table, const text::Condition& condition);

/// The smallest and the largest number of a column: "acc is 0.81 to 0.9, shown as a percentage".
/// Empty where it has no numbers.
std::string range_text(const ResultTable& table, std::string_view name);

/// Says in the notes which finished tasks have no result; they are counted where no task has one.
/// For a table of tasks, whose status column says why the others have none.
void note_missing(ResultTable& table);

/// One row for all rows that differ in these keys alone, with the means of numbers, also of the
/// time, over the finished tasks. A task that has no result or has not finished is named in the
/// notes, and so is a missing cell that another row has.
Result<ResultTable> averaged_over(ResultTable table, const std::vector<std::string>& keys);

/// A row for each value of one key and a column for each of another one, averaged over all others.
/// `field` may be empty where one is the obvious score, or there is only one.
Result<ResultTable> pivoted(ResultTable table, std::string_view rows, std::string_view columns,
                            std::string_view field);

/// The room for result_table_text().
struct ResultTableRoom {
  int width = 0;               ///< The number of terminal columns; 0: any number.
  std::string_view kept = {};  ///< The name of a column that is never left out; empty: none.
};

/// For a terminal: columns in line, "0.938 ± 0.012" where a cell is of several tasks, and the notes
/// beneath. No more of a cell than 40 columns. Columns without room are left out, from the right:
/// first facts but for the status, then results that are no scores, then scores. Keys, the status
/// and one result stay; a line names the others.
std::string result_table_text(const ResultTable& table, const ResultTableRoom& room = {});

/// RFC 4180 with a heading. Numbers unchanged; averages have extra columns for deviation and count:
/// "acc", "acc_std", "acc_n". Without the notes.
std::string result_table_csv(const ResultTable& table);

/// A table of GitHub's Markdown, with the notes beneath as a list.
std::string result_table_markdown(const ResultTable& table);

/// {"columns": [{"name", "kind"}], "rows": [{...}], "notes": [...]}. A cell over several tasks is
/// {"mean", "deviation", "count"}; a missing cell is null. Rows with a status also have
/// kStatusMarks, which are not columns.
std::string result_table_json(const ResultTable& table);

}  // namespace trainyard::report
