#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>
#include <nlohmann/json_fwd.hpp>

#include "base/check.h"
#include "base/score.h"
#include "report/result_table.h"
#include "report/terminal_text.h"
#include "text/readable_json.h"

namespace trainyard::report {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kCellColumnsMax = 40;
constexpr int kGapColumns = 2;

Field as_field(double number) { return {.kind = FieldKind::Decimal, .number = number}; }

/// Whether a number is shown verbatim: in a column of whole numbers, or of numbers without a common
/// form.
bool is_whole(const FieldColumn& shown, const ResultCell& cell) {
  if (shown.decimals == 0) return true;
  return shown.decimals < 0 && !shown.percent &&
         cell.text.find_first_of(".eE") == std::string::npos;
}

std::string verbatim(const ResultCell& cell) {
  return cell.task ? shown_status(*cell.task) : cell.text;
}

/// "93.8 %", "0.938 ± 0.012"
std::string shown_value(const ResultColumn& column, const ResultCell& cell) {
  if (cell.count == 0) return "-";
  const bool formed = column.kind == ColumnKind::Field && cell.number;
  if (!formed && !column.averaged) return verbatim(cell);
  if (column.kind == ColumnKind::Fact) {
    const std::string mean = fmt::format("{:.1f} s", cell.number.value_or(0));
    return cell.deviation ? fmt::format("{} ± {:.1f}", mean, *cell.deviation) : mean;
  }
  FieldColumn shown = column.shown;
  const bool is_mean = cell.count > 1;
  const bool whole = !is_mean && is_whole(shown, cell);
  // The mean of whole numbers need not be whole.
  if (is_mean && shown.decimals == 0) shown.decimals = 2;
  const Field field = as_field(cell.number.value_or(0));
  std::string number = whole ? cell.text : show_field(shown, &field);
  if (!cell.deviation) return number;
  if (shown.percent) return fmt::format("{} ± {:.1f}", number, *cell.deviation * 100);
  const Field deviation = as_field(*cell.deviation);
  return fmt::format("{} ± {}", number, show_field(shown, &deviation));
}

/// "0.938 ± 0.012 (2 of 3)" where only two of three results have the number.
std::string shown_cell(const ResultColumn& column, const ResultCell& cell) {
  const std::string value = shown_value(column, cell);
  return cell.count == 0 || cell.count >= cell.tasks
             ? value
             : fmt::format("{} ({} of {})", value, cell.count, cell.tasks);
}

bool stands_right(const ResultTable& table, std::size_t column) {
  return std::ranges::all_of(table.rows, [column](const auto& row) {
    return row[column].count == 0 || row[column].number.has_value();
  });
}

/// The order in which columns are left out; nothing: the column stays.
std::optional<int> leaves_in(const ResultColumn& column, std::string_view kept) {
  if (column.name == kept) return std::nullopt;
  switch (column.kind) {
    case ColumnKind::Key:
      return std::nullopt;
    case ColumnKind::Fact:
      return column.name == kStatusColumn ? std::nullopt : std::optional(0);
    case ColumnKind::Field:
      break;
  }
  return score_direction(column.name) ? 2 : 1;
}

/// Whether each column is shown, by the widths of all.
std::vector<bool> columns_shown(const ResultTable& table, const std::vector<int>& widths,
                                const ResultTableRoom& room) {
  const std::vector<ResultColumn>& columns = table.columns;
  std::vector<bool> shown(columns.size(), true);
  if (room.width == 0) return shown;
  int width = -kGapColumns;
  for (const int each : widths) width += each + kGapColumns;
  auto results = std::ranges::count(columns, ColumnKind::Field, &ResultColumn::kind);
  for (int turn = 0; turn <= 2; ++turn) {
    for (std::size_t i = columns.size(); i-- > 0 && width > room.width;) {
      if (leaves_in(columns[i], room.kept) != turn) continue;
      const bool is_result = columns[i].kind == ColumnKind::Field;
      if (is_result && results == 1) continue;
      results -= is_result ? 1 : 0;
      shown[i] = false;
      width -= widths[i] + kGapColumns;
    }
  }
  return shown;
}

std::string csv_word(std::string_view word) {
  if (word.find_first_of(",\"\r\n") == std::string_view::npos) return std::string(word);
  std::string quoted = "\"";
  for (const char byte : word) {
    if (byte == '"') quoted += '"';
    quoted += byte;
  }
  return quoted + "\"";
}

/// Whether the text of a number is as the task wrote it, or a count, so that it need not be an
/// exact double.
bool is_verbatim(const ResultColumn& column, const ResultCell& cell) {
  return cell.count == 1 && (column.kind == ColumnKind::Field || column.name == kTasksColumn);
}

std::string csv_number(const ResultColumn& column, const ResultCell& cell) {
  if (cell.count == 0) return "";
  return cell.number && !is_verbatim(column, cell) ? fmt::format("{}", *cell.number)
                                                   : verbatim(cell);
}

std::string markdown_word(std::string_view word) {
  std::string escaped;
  for (const char byte : word) {
    if (byte == '|' || byte == '\\') escaped += '\\';
    escaped += byte;
  }
  return escaped;
}

std::string_view kind_text(ColumnKind kind) {
  switch (kind) {
    case ColumnKind::Key:
      return "key";
    case ColumnKind::Fact:
      return "fact";
    case ColumnKind::Field:
      break;
  }
  return "field";
}

std::string json_number(const ResultColumn& column, const ResultCell& cell) {
  return is_verbatim(column, cell) ? cell.text : text::one_line_json(cell.number.value_or(0));
}

/// In a row of result_table_json().
std::string json_of_cell(const ResultColumn& column, const ResultCell& cell) {
  if (cell.count == 0) return "null";
  if (!column.averaged) {
    if (cell.is_truth) return cell.text;
    // Keys are the job file's text: "1e-3" is a word of its author.
    const bool is_number = column.kind != ColumnKind::Key && cell.number;
    return is_number ? json_number(column, cell) : text::one_line_json(cell.text);
  }
  constexpr std::string_view kIndent = "        ";
  return fmt::format("{{\n{0}\"mean\": {1},\n{0}\"deviation\": {2},\n{0}\"count\": {3}\n      }}",
                     kIndent, json_number(column, cell),
                     cell.deviation ? text::one_line_json(*cell.deviation) : "null", cell.count);
}

}  // namespace

std::string result_table_text(const ResultTable& table, const ResultTableRoom& room) {
  const std::size_t columns = table.columns.size();
  // All words one behind the other: a string each would be as large as the table itself.
  std::string words;
  std::vector<std::size_t> ends;
  ends.reserve(columns * (table.rows.size() + 1));
  std::vector<int> widths(columns);
  const auto add = [&](std::size_t column, const std::string& shown) {
    const std::string word = cut(plain(shown), kCellColumnsMax);
    widths[column] = std::max(widths[column], columns_of(word));
    words += word;
    ends.push_back(words.size());
  };
  std::vector<bool> right;
  for (std::size_t i = 0; i < columns; ++i) {
    add(i, table.columns[i].name);
    right.push_back(stands_right(table, i));
  }
  for (const auto& row : table.rows) {
    for (std::size_t i = 0; i < columns; ++i) add(i, shown_cell(table.columns[i], row[i]));
  }
  const std::vector<bool> is_shown = columns_shown(table, widths, room);
  std::string text;
  std::size_t begin = 0;
  std::size_t place = 0;
  for (std::size_t line = 0; line <= table.rows.size(); ++line) {
    bool is_first = true;
    for (std::size_t i = 0; i < columns; ++i) {
      const std::string word = words.substr(begin, ends[place] - begin);
      begin = ends[place++];
      if (!is_shown[i]) continue;
      if (!is_first) text += std::string(kGapColumns, ' ');
      is_first = false;
      text += right[i] ? pad_left(word, widths[i]) : pad_right(word, widths[i]);
    }
    text.erase(text.find_last_not_of(' ') + 1);
    text += '\n';
  }
  std::vector<std::string> left_out;
  for (std::size_t i = 0; i < columns; ++i) {
    if (!is_shown[i]) left_out.push_back(plain(table.columns[i].name));
  }
  if (!left_out.empty()) {
    text += fmt::format("{}: a wider terminal, '| less -S' or --csv shows them\n",
                        columns_left_out(left_out));
  }
  for (const std::string& note : table.notes) text += plain(note) + "\n";
  return text;
}

std::string result_table_csv(const ResultTable& table) {
  std::vector<std::string> words;
  for (const ResultColumn& column : table.columns) {
    words.push_back(csv_word(column.name));
    if (!column.averaged) continue;
    words.push_back(csv_word(column.name + "_std"));
    words.push_back(csv_word(column.name + "_n"));
  }
  std::string text = fmt::format("{}\n", fmt::join(words, ","));
  for (const auto& row : table.rows) {
    words.clear();
    for (std::size_t i = 0; i < row.size(); ++i) {
      const ResultColumn& column = table.columns[i];
      words.push_back(
          csv_word(column.kind == ColumnKind::Key ? row[i].text : csv_number(column, row[i])));
      if (!column.averaged) continue;
      const std::optional<double>& deviation = row[i].deviation;
      words.push_back(deviation ? fmt::format("{}", *deviation) : "");
      words.push_back(fmt::format("{}", row[i].count));
    }
    text += fmt::format("{}\n", fmt::join(words, ","));
  }
  return text;
}

std::string result_table_markdown(const ResultTable& table) {
  std::string text = "|";
  std::string rule = "|";
  for (std::size_t i = 0; i < table.columns.size(); ++i) {
    text += fmt::format(" {} |", markdown_word(plain(table.columns[i].name)));
    rule += stands_right(table, i) ? " ---: |" : " --- |";
  }
  text += "\n" + rule + "\n";
  for (const auto& row : table.rows) {
    text += "|";
    for (std::size_t i = 0; i < row.size(); ++i) {
      text += fmt::format(" {} |", markdown_word(plain(shown_cell(table.columns[i], row[i]))));
    }
    text += "\n";
  }
  if (!table.notes.empty()) text += "\n";
  for (const std::string& note : table.notes) text += fmt::format("- {}\n", plain(note));
  return text;
}

std::string result_table_json(const ResultTable& table) {
  Json columns = Json::array();
  for (const ResultColumn& column : table.columns) {
    columns.push_back({{"name", column.name}, {"kind", kind_text(column.kind)}});
  }
  std::string rows;
  for (const auto& row : table.rows) {
    std::string members;
    for (std::size_t i = 0; i < row.size(); ++i) {
      members += fmt::format("{}\n      {}: {}", i == 0 ? "" : ",",
                             text::one_line_json(table.columns[i].name),
                             json_of_cell(table.columns[i], row[i]));
      if (const auto& task = row[i].task) {
        for (const StatusMark& mark : kStatusMarks) {
          members +=
              fmt::format(",\n      {}: {}", text::one_line_json(mark.key), (*task).*mark.holds);
        }
      }
    }
    rows += fmt::format("{}\n    {{{}\n    }}", rows.empty() ? "" : ",", members);
  }
  // Written by hand, as the library has no number that is a text: a task may have written any.
  std::string text =
      text::readable_json({{"columns", columns}, {"rows", Json::array()}, {"notes", table.notes}});
  constexpr std::string_view kNoRows = "\"rows\": []";
  const auto place = text.find(kNoRows);
  check(place != std::string::npos, "a list for the rows");
  if (!rows.empty()) text.replace(place, kNoRows.size(), fmt::format("\"rows\": [{}\n  ]", rows));
  return text;
}

}  // namespace trainyard::report
