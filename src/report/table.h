// The table of tasks in a terminal or a log: printed at the end of a run, and by `status --all`.
// Pure: rows in, text out. The code that reads the journal for it is in report/status.h.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "journal/reader.h"
#include "report/digest.h"
#include "report/result_fields.h"

namespace trainyard::report {

struct TableOptions {
  int width = 0;        ///< Columns of the terminal; 0: as wide as it gets.
  bool colour = false;  ///< ANSI colours for what went wrong and what went well.
  bool all = false;     ///< Every task, of big groups too.
  std::optional<Instant> now = std::nullopt;  ///< For how long the tasks that run have run.
  bool over = false;                          ///< No run is active: tasks that run are lost.
  bool machines = false;                      ///< There are several: rows name them.
  std::string run_directory = {};             ///< As the user reaches it, in commands to type.
};

/// A group with more tasks than this is shown in part: failures first, then the first others.
constexpr int kRowsMax = 40;
constexpr int kFailuresShown = 20;
constexpr int kOthersShown = 20;

/// The rows of one group as lines. The columns are those of the digest. Their widths come from the
/// rows, and only grow from one call to the next, except those of names for which there is no room.
class TaskTable {
 public:
  TaskTable(const GroupDigest& digest, const TableOptions& options);

  /// Lines for these rows; the first call puts the heading above them.
  std::string lines(std::span<const journal::TaskRow> rows);

  /// As given; the footer of a table names the run.
  [[nodiscard]] const std::string& run_directory() const { return options_.run_directory; }

  /// The columns for which there was no room: of the matrix, what tasks took, and of results.
  [[nodiscard]] const std::vector<std::string>& left_out() const { return left_out_; }
  /// Number of columns of results that are shown.
  [[nodiscard]] std::size_t result_columns() const { return results_.size(); }

 private:
  struct Column {
    std::string title;
    bool right = false;
    int width = 0;
    std::function<std::string(const journal::TaskRow&)> cell = {};  ///< Empty: of a result.
  };
  using Cells = std::vector<std::string>;

  [[nodiscard]] Cells cells_of(const journal::TaskRow& row) const;
  void widen(const std::vector<Cells>& rows);
  void fit();
  void narrow_names(std::size_t columns, int least);
  void drop_result(std::size_t place);
  void drop_column(std::size_t column);
  [[nodiscard]] std::string heading() const;
  [[nodiscard]] std::string line(const journal::TaskRow& row, const Cells& cells) const;
  [[nodiscard]] int width_of(std::size_t columns) const;
  [[nodiscard]] int total_width() const { return width_of(columns_.size()); }

  TableOptions options_;
  std::vector<std::string> matrix_keys_;
  std::vector<FieldColumn> results_;
  std::vector<Column> columns_;  ///< Names, then the fixed ones, then the results.
  std::size_t status_column_ = 0;
  bool first_ = true;
  std::vector<std::string> left_out_;
};

/// The rows of a group to show: all of a small group, some of a big one. Tasks that were not
/// selected have no row: the heading counts them.
class ShownRows {
 public:
  explicit ShownRows(const journal::GroupRow& group)
      : big_(group.tasks - group.not_selected > kRowsMax) {}
  void look_at(const journal::TaskRow& row);
  [[nodiscard]] std::vector<journal::TaskRow> take();

 private:
  bool big_;
  std::vector<journal::TaskRow> failures_;
  std::vector<journal::TaskRow> others_;
};

/// "train: 18 tasks, 17 finished in 2m5s; 1 skipped". The run directory as the user reaches it, in a
/// command to type.
std::string group_heading(const GroupDigest& digest, const std::string& run_directory);

/// The whole text for a group: heading, rows, how many more there are, the best task.
std::string group_table(const GroupDigest& digest, std::span<const journal::TaskRow> rows,
                        const TableOptions& options);

/// The text below the rows of a group: the number of rows left out, notes about the tasks of the
/// digest, and the best of them under `best_title` (empty: no such line). `rows_known` counts the
/// rows shown and the tasks that need no row.
std::string group_footer(const GroupDigest& digest, int rows_known, const TaskTable& table,
                         std::string_view best_title = "best");

}  // namespace trainyard::report
