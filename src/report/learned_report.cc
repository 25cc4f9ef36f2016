#include "report/learned_report.h"

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <nlohmann/json_fwd.hpp>

#include "base/bytes.h"
#include "base/duration_text.h"
#include "base/time.h"
#include "job/task_keys.h"
#include "report/terminal_text.h"
#include "text/readable_json.h"

namespace trainyard::report {
namespace {

using Json = nlohmann::ordered_json;

std::string number_text(job::TaskKey key, std::int64_t value) {
  if (value == 0) return "-";
  return key == job::TaskKey::Duration ? to_text(Duration{value}) : to_text(Bytes{value});
}

/// "4GB", with its line where other tasks of the group say something else.
std::string said_text(const job::LearnedGroup& group, const job::LearnedNumber& number) {
  if (!number.said) return "-";
  const auto same_key = [&](const job::LearnedNumber& it) { return it.key == number.key; };
  const bool alone = std::ranges::count_if(group.numbers, same_key) == 1;
  const std::string text = plain(number.said->text);
  return alone ? text : fmt::format("{} (line {})", text, number.said->place.line);
}

std::string next_text(const job::LearnedNumber& number) {
  std::string most = number_text(number.key, number.reserved_most);
  // No reserved GPU memory means a whole GPU.
  if (number.key == job::TaskKey::GpuMemory && number.reserved_most == 0) return "all of it";
  if (number.reserved_least == number.reserved_most) return most;
  return fmt::format("{} to {}", number_text(number.key, number.reserved_least), most);
}

using TextRow = std::vector<std::string>;

/// With columns as wide as their content.
std::string table_text(const std::vector<TextRow>& rows, std::string_view indent) {
  const std::vector<int> widths = column_widths(rows);
  std::string text;
  for (const TextRow& row : rows) {
    std::string line(indent);
    for (std::size_t i = 0; i < row.size(); ++i) line += pad_right(row[i], widths[i] + 2);
    text += line.substr(0, line.find_last_not_of(' ') + 1) + '\n';
  }
  return text;
}

std::string cells_text(const job::LearnedGroup& group) {
  const bool gpus = std::ranges::any_of(
      group.numbers, [](const auto& it) { return it.key == job::TaskKey::GpuMemory; });
  std::vector<TextRow> rows{{"TASK", "MEMORY", "RESERVED NEXT"}};
  if (gpus) rows.front().insert(rows.front().end(), {"GPU MEMORY", "RESERVED NEXT"});
  rows.front().insert(rows.front().end(), {"TIME", "EXPECTED NEXT"});
  for (const job::LearnedCell& cell : group.cells) {
    if (rows.size() > kLearnedCellsShown) break;
    const job::LearnedTask& task = cell.taken.task;
    TextRow row{plain(cell.id),
                (task.memory_at_least ? "at least " : "") +
                    number_text(job::TaskKey::Memory, task.memory.count),
                number_text(job::TaskKey::Memory, cell.memory)};
    if (gpus) {
      row.push_back(number_text(job::TaskKey::GpuMemory, task.gpu_memory.count));
      row.push_back(number_text(job::TaskKey::GpuMemory, cell.gpu_memory));
    }
    row.push_back(number_text(job::TaskKey::Duration, task.train.count()));
    row.push_back(number_text(job::TaskKey::Duration, cell.duration));
    rows.push_back(std::move(row));
  }
  std::string text = table_text(rows, "    ");
  const std::size_t shown = rows.size() - 1;
  if (shown < group.cells.size()) {
    text += fmt::format("    and {} more; --json has them all\n", group.cells.size() - shown);
  }
  return text;
}

std::string learned_group_text(const LearnedPage& page, const job::LearnedGroup& group) {
  std::string text = fmt::format("\n{}: {}", plain(group.name), counted(group.tasks, "task"));
  if (group.cells.size() < group.tasks) text += fmt::format(", {} known", group.cells.size());
  text += '\n';
  std::vector<TextRow> rows{{"", "JOB FILE", "USED AT MOST", "NEXT RUN", "SUGGESTED", "FROM"}};
  for (const job::LearnedNumber& number : group.numbers) {
    const bool known = number.taken_most > 0 || number.should_be > 0;
    rows.push_back(
        {std::string(job::info_of(number.key).name), said_text(group, number),
         (number.at_least ? "at least " : "") + number_text(number.key, number.taken_most),
         next_text(number), number.suggested.empty() ? "-" : number.suggested,
         known ? plain(job::to_text(number.from, page.here)) +
                     (number.other_command ? ", another command" : "")
               : ""});
  }
  text += table_text(rows, "  ");
  return group.cells_differ() ? text + cells_text(group) : text;
}

}  // namespace

std::string learned_text(const LearnedPage& page) {
  std::string text = fmt::format("learned estimates of {}", plain(page.job_file));
  if (!page.note.empty()) return text + fmt::format(": none; {}\n", plain(page.note));
  if (page.view.tasks == 0) {
    return text + ": none yet; a run in which a task took 1 s or longer saves them when it ends\n";
  }
  text += fmt::format(", kept in {}\n", plain(page.kept_in));
  if (!page.used) text += "scheduler.auto-adjust is off: no run uses it\n";
  for (const job::LearnedGroup& group : page.view.groups) text += learned_group_text(page, group);
  if (!page.view.gone.empty()) text += "\ntasks that are no longer in the job file:\n";
  for (const auto& [name, tasks] : page.view.gone) {
    text += fmt::format("  {}: {}\n", plain(name), counted(tasks, "task"));
  }
  return text;
}

namespace {

using text::number_or_null;
using text::text_or_null;

Json from_json(const job::LearnedFrom& from) {
  return {{"run", text_or_null(from.run)},
          {"started_unix_ms", number_or_null(from.started_unix_ms)},
          {"host", text_or_null(from.host)},
          {"gpu", text_or_null(from.gpu)}};
}

/// The numbers for a key, with their places and their number of tasks in the group.
Json numbers_json(const job::LearnedGroup& group, job::TaskKey key) {
  Json numbers = Json::array();
  for (const job::LearnedNumber& number : group.numbers) {
    if (number.key != key) continue;
    Json written = nullptr;
    if (number.said) {
      written = {{"text", number.said->text},
                 {"line", number.said->place.line},
                 {"column", number.said->place.column},
                 {"of_matrix", !number.said->fixed}};
    }
    numbers.push_back({{"written", written},
                       {"tasks", number.tasks},
                       {"taken_at_most", number_or_null(number.taken_most)},
                       {"at_least", number.at_least},
                       {"next_at_least", number.reserved_least},
                       {"next_at_most", number.reserved_most},
                       {"suggested", text_or_null(number.suggested)},
                       {"other_command", number.other_command},
                       {"from", from_json(number.from)}});
  }
  return numbers;
}

Json cell_json(const job::LearnedCell& cell) {
  const job::LearnedTask& task = cell.taken.task;
  return {{"id", cell.id},
          {"memory_bytes",
           {{"taken", number_or_null(task.memory.count)},
            {"at_least", task.memory_at_least},
            {"next", cell.memory},
            {"from", from_json(cell.taken.from)}}},
          {"gpu_memory_bytes",
           {{"taken", number_or_null(task.gpu_memory.count)},
            {"next", cell.gpu_memory},
            {"from", from_json(cell.taken.gpu_from)}}},
          {"duration_ms",
           {{"taken", number_or_null(task.train.count())},
            {"next", cell.duration},
            {"from", from_json(cell.taken.from)}}}};
}

}  // namespace

std::string learned_json(const LearnedPage& page) {
  Json json{{"job_file", page.job_file},
            {"learned_file", page.kept_in},
            {"note", text_or_null(page.note)},
            {"used", page.used},
            {"tasks", page.view.tasks},
            {"groups", Json::array()},
            {"gone", Json::array()}};
  for (const job::LearnedGroup& group : page.view.groups) {
    Json cells = Json::array();
    for (const job::LearnedCell& cell : group.cells) cells.push_back(cell_json(cell));
    json["groups"].push_back({{"group", group.name},
                              {"tasks", group.tasks},
                              {"numbers",
                               {{"memory_bytes", numbers_json(group, job::TaskKey::Memory)},
                                {"gpu_memory_bytes", numbers_json(group, job::TaskKey::GpuMemory)},
                                {"duration_ms", numbers_json(group, job::TaskKey::Duration)}}},
                              {"cells", cells}});
  }
  for (const auto& [name, tasks] : page.view.gone) {
    json["gone"].push_back({{"group", name}, {"tasks", tasks}});
  }
  return text::readable_json(json);
}

}  // namespace trainyard::report
