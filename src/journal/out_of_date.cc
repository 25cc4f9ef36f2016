#include "journal/out_of_date.h"

#include <algorithm>
#include <cstddef>
#include <expected>
#include <string>
#include <utility>
#include <vector>

#include "journal/json_text.h"
#include "journal/reader_rows.h"
#include "journal/rows.h"
#include "journal/stale_tasks.h"
#include "model/plan.h"
#include "model/status.h"

namespace trainyard::journal {
namespace {

/// The run as find_stale() takes it: a shape for each group, and no more than what needs what.
struct RunNeeds {
  model::Plan plan;
  std::map<std::int64_t, std::uint32_t> groups;  ///< Their places, by number.
  std::vector<std::uint32_t> numbers;            ///< By place of the task, as those of the groups:
  std::vector<std::uint32_t> group_numbers;
  std::vector<LastRun> last_runs;
  std::vector<bool> finished;
};

/// The groups of the run. False where none of them needs another one.
Result<bool> read_groups(Database& database, RunNeeds& run) {
  std::map<std::pair<std::int64_t, std::string>, std::uint32_t> places;
  std::vector<std::pair<std::int64_t, std::vector<std::string>>> needs;
  const Result<void> read =
      each(database,
           "SELECT g.number, g.batch, g.name, g.needs FROM groups g JOIN batches b ON b.number = "
           "g.batch "
           "WHERE g.position IS NOT NULL AND b.complete",
           [&](const Statement& row) {
             const auto place = static_cast<std::uint32_t>(run.plan.groups.size());
             run.plan.groups.push_back({});
             run.plan.shapes.push_back({.group = {place}, .terms = {}});
             run.groups[row.integer(0)] = place;
             places[{row.integer(1), std::string(row.text(2))}] = place;
             needs.emplace_back(row.integer(1), strings_from_json(row.text(3)));
             return true;
           });
  if (!read) return std::unexpected(read.error());
  bool any = false;
  for (std::size_t i = 0; i < needs.size(); ++i) {
    const auto& [batch, names] = needs[i];
    for (const std::string& name : names) {
      const auto found = places.find({batch, name});
      if (found == places.end()) continue;
      run.plan.groups[i].needs.push_back({found->second});
      any = true;
    }
  }
  return any;
}

Result<void> read_tasks(Database& database, RunNeeds& run) {
  return each(database,
              "SELECT t.number, t.group_number, coalesce(e.verdict, 0), "
              "coalesce(e.started_ms, l.started_ms), coalesce(e.ended_ms, l.ended_ms) FROM tasks t "
              "LEFT JOIN ended e ON e.task = t.number LEFT JOIN live l ON l.task = t.number "
              "WHERE t.position >= 0 AND t.batch IN (SELECT number FROM batches WHERE complete)",
              [&run](const Statement& row) {
                const auto group = run.groups.find(row.integer(1));
                if (group == run.groups.end()) return true;
                run.plan.tasks.push_back({.shape = {group->second}});
                run.numbers.push_back(static_cast<std::uint32_t>(row.integer(0)));
                run.group_numbers.push_back(static_cast<std::uint32_t>(row.integer(1)));
                const auto verdict = static_cast<model::Verdict>(row.small(2));
                run.last_runs.push_back(
                    last_run(verdict, optional_instant(row, 3), optional_instant(row, 4)));
                run.finished.push_back(verdict == model::Verdict::Finished);
                return true;
              });
}

Result<void> read_task_needs(Database& database, RunNeeds& run) {
  std::map<std::int64_t, std::uint32_t> places;
  for (std::uint32_t i = 0; i < run.numbers.size(); ++i) places[run.numbers[i]] = i;
  const Result<void> read =
      each(database, "SELECT task, needed FROM task_needs", [&](const Statement& row) {
        const auto task = places.find(row.integer(0));
        const auto needed = places.find(row.integer(1));
        if (task == places.end() || needed == places.end()) return true;
        run.plan.task_needs.push_back({.task = {task->second}, .needed = {needed->second}});
        return true;
      });
  std::ranges::sort(run.plan.task_needs);
  return read;
}

}  // namespace

Result<std::map<std::uint32_t, std::uint32_t>> read_out_of_date(Database& database) {
  std::map<std::uint32_t, std::uint32_t> out_of_date;
  RunNeeds run;
  const Result<bool> by_group = read_groups(database, run);
  if (!by_group) return std::unexpected(by_group.error());
  const Result<std::int64_t> by_task = database.number("SELECT EXISTS (SELECT 1 FROM task_needs)");
  if (!by_task) return std::unexpected(by_task.error());
  if (!*by_group && *by_task == 0) return out_of_date;
  if (const Result<void> read = read_tasks(database, run); !read) {
    return std::unexpected(read.error());
  }
  if (const Result<void> read = read_task_needs(database, run); !read) {
    return std::unexpected(read.error());
  }
  const std::vector<bool> stale =
      find_stale(run.plan, std::vector<bool>(run.numbers.size()), run.last_runs);
  for (std::size_t i = 0; i < stale.size(); ++i) {
    if (stale[i] && run.finished[i]) out_of_date[run.numbers[i]] = run.group_numbers[i];
  }
  return out_of_date;
}

}  // namespace trainyard::journal
