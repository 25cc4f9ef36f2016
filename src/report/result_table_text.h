// A table of results as people and programs read it. Pure; any thread.
#pragma once

#include <string>
#include <string_view>

#include "report/result_table.h"

namespace trainyard::report {

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
