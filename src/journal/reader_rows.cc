#include "journal/reader_rows.h"

#include <algorithm>
#include <cstddef>
#include <expected>
#include <utility>

#include <fmt/format.h>

#include "journal/json_text.h"
#include "journal/rows.h"
#include "journal/stale_tasks.h"
#include "model/code.h"
#include "model/ids.h"
#include "model/plan.h"
#include "model/status.h"

namespace trainyard::journal {
namespace {

Instant instant(const Statement& row, int column) { return {Duration(row.integer(column))}; }

std::optional<Duration> optional_duration(const Statement& row, int column) {
  if (row.null(column)) return std::nullopt;
  return Duration(row.integer(column));
}

std::uint32_t index(const Statement& row, int column) {
  return static_cast<std::uint32_t>(row.integer(column));
}

/// An enum as it was written; `first` for a number that it cannot have.
template <class Enum>
Enum one_of(const Statement& row, int column, Enum first, Enum last) {
  const std::int64_t number = row.integer(column);
  if (number < 0 || number > static_cast<std::int64_t>(last)) return first;
  return static_cast<Enum>(number);
}

model::Failure failure(const Statement& row, int column) {
  return one_of(row, column, model::Failure::None, model::Failure::Crashed);
}

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
                if (group == run.groups.end()) return;
                run.plan.tasks.push_back({.shape = {group->second}});
                run.numbers.push_back(static_cast<std::uint32_t>(row.integer(0)));
                run.group_numbers.push_back(static_cast<std::uint32_t>(row.integer(1)));
                const auto verdict = static_cast<model::Verdict>(row.small(2));
                run.last_runs.push_back(
                    last_run(verdict, optional_instant(row, 3), optional_instant(row, 4)));
                run.finished.push_back(verdict == model::Verdict::Finished);
              });
}

Result<void> read_task_needs(Database& database, RunNeeds& run) {
  std::map<std::int64_t, std::uint32_t> places;
  for (std::uint32_t i = 0; i < run.numbers.size(); ++i) places[run.numbers[i]] = i;
  const Result<void> read =
      each(database, "SELECT task, needed FROM task_needs", [&](const Statement& row) {
        const auto task = places.find(row.integer(0));
        const auto needed = places.find(row.integer(1));
        if (task == places.end() || needed == places.end()) return;
        run.plan.task_needs.push_back({.task = {task->second}, .needed = {needed->second}});
      });
  std::ranges::sort(run.plan.task_needs);
  return read;
}

/// The tasks that have finished, and of which find_stale() says that what they need ran after they
/// had started: their numbers, each with that of its group. Costs O(tasks) where a task or a group
/// needs another one, else next to nothing.
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

}  // namespace

std::optional<Instant> optional_instant(const Statement& row, int column) {
  if (row.null(column)) return std::nullopt;
  return instant(row, column);
}

const std::string_view kTaskColumns =
    "SELECT t.number, g.number, g.called, t.id, coalesce(e.status, l.status, 1), "
    "coalesce(e.verdict, 0), coalesce(e.failure, l.failure, 0), "
    "coalesce(e.exit_code, l.exit_code, 0), coalesce(e.stage, l.stage, 1), "
    "max(coalesce(e.attempt, l.attempt, 0), t.attempt_before), coalesce(l.pid, 0), "
    "coalesce(e.started_ms, l.started_ms), coalesce(e.ended_ms, l.ended_ms), "
    "coalesce(nullif(e.memory_requested, 0), nullif(l.memory_requested, 0), s.memory), "
    "coalesce(l.memory_now, 0), coalesce(e.memory_peak, l.memory_peak, 0), "
    "coalesce(e.cpu_ms, l.cpu_ms, 0), coalesce(e.result, l.result), "
    "coalesce(e.warning, l.warning), coalesce(e.message, l.message), t.matrix, "
    "coalesce(e.load_numbers, l.load_numbers, 0), coalesce(e.train_numbers, l.train_numbers, 0), "
    "coalesce(e.load_ms, l.load_ms), coalesce(e.train_ms, l.train_ms), "
    "(SELECT p.fraction FROM progress p WHERE p.task = t.number ORDER BY p.attempt DESC, p.at_ms "
    "DESC LIMIT 1), "
    "(SELECT p.\"values\" FROM progress p WHERE p.task = t.number ORDER BY p.attempt DESC, "
    "p.at_ms DESC LIMIT 1), "
    "(SELECT b.text FROM tracebacks b WHERE b.task = t.number AND b.attempt = "
    "coalesce(e.attempt, l.attempt)), "
    "coalesce(e.gpus, l.gpus), coalesce(e.gpu_memory_requested, l.gpu_memory_requested, 0), "
    "coalesce(l.gpu_memory_now, 0), coalesce(e.gpu_memory_peak, l.gpu_memory_peak, 0), t.edited, "
    "t.batch, "
    "CASE g.directory WHEN '' THEN t.id ELSE g.directory || '/' || t.id END, "
    "coalesce(e.memory_at_least, l.memory_at_least, 0), coalesce(e.gpu_capped, l.gpu_capped, 0), "
    "g.name, coalesce(e.gpu_memory_max, l.gpu_memory_max, 0), coalesce(e.capped_by, l.capped_by), "
    "coalesce((SELECT min(a.started_ms) FROM attempts a WHERE a.task = t.number), "
    "e.started_ms, l.started_ms), "
    "coalesce((SELECT d.on_hold FROM said d WHERE d.task = t.number), 0), "
    "coalesce(e.code, l.code, 0), coalesce(e.machine, l.machine, 0), "
    "(SELECT sum(max(a.ended_ms - a.started_ms, 0)) FROM attempts a WHERE a.task = t.number), "
    "s.cpus_milli, s.number, t.position, s.memory, s.gpu_memory, s.time_limit_ms, "
    "(SELECT json_extract(v.data, '$.time_limit_ms') FROM events v WHERE v.kind = 'retry' AND "
    "v.task = t.number AND json_extract(v.data, '$.time_limit_ms') > 0 ORDER BY v.seq DESC LIMIT "
    "1), s.signal_ms, l.retry_at_ms, coalesce(e.with_group, 0) ";

const std::string_view kTaskJoins =
    "JOIN groups g ON g.number = t.group_number JOIN shapes s ON s.number = t.shape "
    "LEFT JOIN ended e ON e.task = t.number LEFT JOIN live l ON l.task = t.number ";

KnownCodes::One KnownCodes::find(std::int64_t number) const {
  const auto found = by_number.find(number);
  return found == by_number.end() ? One{} : found->second;
}

Result<KnownCodes> read_codes(Database& database) {
  KnownCodes codes;
  std::map<std::string, std::vector<std::int64_t>> of_root;
  Result<void> read = each(database, "SELECT number, root, git_commit, changes FROM codes",
                           [&](const Statement& row) {
                             const std::string root(row.text(1));
                             codes.by_number[row.integer(0)].name =
                                 model::to_text({.root = root,
                                                 .commit = std::string(row.text(2)),
                                                 .changes = std::string(row.text(3))});
                             of_root[root].push_back(row.integer(0));
                           });
  if (!read) return std::unexpected(std::move(read.error()));
  if (codes.by_number.size() == of_root.size()) return codes;
  read = each(
      database,
      "SELECT c.root, a.code, max(a.started_ms) FROM (SELECT code, started_ms FROM live WHERE code "
      "> 0 UNION ALL SELECT code, started_ms FROM ended WHERE code > 0) a JOIN codes c ON c.number "
      "= a.code GROUP BY c.root",
      [&](const Statement& row) {
        const std::int64_t newest = row.integer(1);
        for (const std::int64_t number : of_root[std::string(row.text(0))]) {
          if (number != newest) codes.by_number[number].newer = codes.by_number[newest].name;
        }
      });
  if (!read) return std::unexpected(std::move(read.error()));
  return codes;
}

Result<void> tell_apart_skipped(Database& database, std::vector<GroupRow>& groups) {
  if (std::ranges::none_of(groups, [](const GroupRow& it) { return it.skipped > 0; })) return {};
  return each(
      database,
      fmt::format("SELECT t.group_number, sum(e.verdict = {0}), sum(e.verdict = {1}) FROM ended e "
                  "CROSS JOIN tasks t ON t.number = e.task WHERE e.verdict IN ({0}, {1}) "
                  "AND t.position >= 0 GROUP BY t.group_number",
                  std::to_underlying(model::Verdict::NotNeeded),
                  std::to_underlying(model::Verdict::NotSelected)),
      [&](const Statement& row) {
        const model::GroupIndex index{static_cast<std::uint32_t>(row.integer(0))};
        const auto group = std::ranges::find(groups, index, &GroupRow::index);
        if (group == groups.end()) return;
        group->not_needed = row.small(1);
        group->not_selected = row.small(2);
        group->skipped -= group->not_needed + group->not_selected;
      });
}

Result<Known> read_known(Database& database) {
  Result<KnownCodes> codes = read_codes(database);
  if (!codes) return std::unexpected(std::move(codes.error()));
  Result<KnownMachines> machines = KnownMachines::read(database);
  if (!machines) return std::unexpected(std::move(machines.error()));
  Result<std::map<std::uint32_t, std::uint32_t>> out_of_date = read_out_of_date(database);
  if (!out_of_date) return std::unexpected(std::move(out_of_date.error()));
  return Known{.codes = std::move(*codes),
               .machines = std::move(*machines),
               .out_of_date = std::move(*out_of_date)};
}

TaskRow read_task(const Statement& row, const Known& known) {
  KnownCodes::One code = known.codes.find(row.integer(42));
  // The failure of an attempt does not explain a task that finished in a later one.
  const bool finished = row.integer(5) == std::to_underlying(model::Verdict::Finished);
  // A task that was not needed has produced nothing, so no code of it is out of date.
  if (row.integer(5) == std::to_underlying(model::Verdict::NotNeeded)) code.newer.clear();
  return {.index = {index(row, 0)},
          .group = {index(row, 1)},
          .group_name = std::string(row.text(2)),
          .shape = index(row, 46),
          .id = std::string(row.text(3)),
          .standing = {.status = one_of(row, 4, Status::Unknown, Status::Interrupt),
                       .verdict = one_of(row, 5, model::Verdict::None, model::Verdict::NotNeeded),
                       .failure = failure(row, 6),
                       .exit_code = row.small(7),
                       .on_hold = row.small(41) != 0},
          .stage = one_of(row, 8, Stage::Train, Stage::Train),
          .attempt = index(row, 9),
          .pid = row.integer(10),
          .started = optional_instant(row, 11),
          .first_started = optional_instant(row, 40),
          .ended = optional_instant(row, 12),
          .cpus_requested = {row.integer(45)},
          .memory_requested = {row.integer(13)},
          .memory_now = {row.integer(14)},
          .memory_peak = {row.integer(15)},
          .cpu_time = Duration(row.integer(16)),
          .result = std::string(row.text(17)),
          .warning = std::string(row.text(18)),
          .message = std::string(row.text(19)),
          .traceback = std::string(finished ? "" : row.text(27)),
          .matrix = matrix_from_json(row.text(20)),
          .times = {.load_numbers = row.small(21),
                    .train_numbers = row.small(22),
                    .load = optional_duration(row, 23),
                    .train = optional_duration(row, 24)},
          .progress = row.null(25) ? std::nullopt : std::optional(row.real(25)),
          .progress_values = std::string(row.text(26)),
          .machine =
              row.null(11) ? std::string() : known.machines.name(instant(row, 11), row.integer(43)),
          .gpus = std::string(row.text(28)),
          .gpu_memory_requested = {row.integer(29)},
          .gpu_memory_now = {row.integer(30)},
          .gpu_memory_peak = {row.integer(31)},
          .edited = row.small(32) != 0,
          .out_of_date = known.out_of_date.contains(index(row, 0)),
          .batch = index(row, 33),
          .in_batch = {index(row, 47)},
          .directory = std::string(row.text(34)),
          .memory_at_least = row.small(35) != 0,
          .gpu_capped = row.small(36) != 0,
          .group_in_file = std::string(row.text(37)),
          .gpu_memory_max = {row.integer(38)},
          .capped_by = std::string(row.text(39)),
          .code = std::move(code.name),
          .newer_code = std::move(code.newer),
          .earlier_attempts = optional_duration(row, 44).value_or(Duration{0}),
          .memory_planned = {row.integer(48)},
          .gpu_memory_planned = {row.integer(49)},
          .time_limit = Duration(row.integer(50)),
          .retry_time_limit = optional_duration(row, 51).value_or(Duration{0}),
          .signal_before_term = Duration(row.integer(52)),
          .retry_at = optional_instant(row, 53),
          .with_group = row.small(54) != 0};
}

std::string all_attempts(std::string_view chosen) {
  const auto of = [chosen](std::string_view table) {
    return fmt::format(
        "SELECT task, attempt, started_ms, ended_ms, failure, exit_code, memory_peak, message, "
        "gpus, gpu_memory_peak, memory_at_least, code, machine FROM {} WHERE attempt > 0 AND {}",
        table, chosen);
  };
  return fmt::format("{} UNION ALL {} UNION ALL {}", of("attempts"), of("ended"), of("live"));
}

ProgressRow read_progress(const Statement& row) {
  return {.task = {index(row, 0)},
          .attempt = index(row, 1),
          .at = instant(row, 2),
          .fraction = row.null(3) ? std::nullopt : std::optional(row.real(3)),
          .values = std::string(row.text(4))};
}

AttemptRow read_attempt(const Statement& row, const Known& known) {
  return {.key = {.task = {index(row, 0)}, .attempt = index(row, 1)},
          .started = instant(row, 2),
          .ended = optional_instant(row, 3),
          .failure = failure(row, 4),
          .exit_code = row.small(5),
          .memory_peak = {row.integer(6)},
          .message = std::string(row.text(7)),
          .machine = known.machines.name(instant(row, 2), row.integer(12)),
          .gpus = std::string(row.text(8)),
          .gpu_memory_peak = {row.integer(9)},
          .memory_at_least = row.small(10) != 0,
          .code = known.codes.find(row.integer(11)).name};
}

const std::string_view kExecutions =
    "SELECT number, yard_pid, host, socket_path, command_line, version, job_file, "
    "git_commit, started_unix_ms, started_ms, ended_ms, how, config_file, settings, "
    "forecast_ms, forecast_worst_ms, run_directory "
    "FROM executions ORDER BY number";

const std::string_view kBatches =
    "SELECT number, command_line, job_file, job_text, config_file, settings, environment, added_ms "
    "FROM batches WHERE complete ORDER BY number";

BatchRow read_batch(const Statement& row) {
  return {.number = index(row, 0),
          .source = {.command_line = std::string(row.text(1)),
                     .job_file = std::string(row.text(2)),
                     .job_text = std::string(row.text(3)),
                     .config_file = std::string(row.text(4)),
                     .settings = strings_from_json(row.text(5)),
                     .environment = strings_from_json(row.text(6))},
          .added = instant(row, 7)};
}

ExecutionRow read_execution(const Statement& row) {
  return {.number = row.integer(0),
          .yard_pid = row.integer(1),
          .host = std::string(row.text(2)),
          .run_directory = std::string(row.text(16)),
          .socket_path = std::string(row.text(3)),
          .command_line = std::string(row.text(4)),
          .version = std::string(row.text(5)),
          .job_file = std::string(row.text(6)),
          .git_commit = std::string(row.text(7)),
          .config_file = std::string(row.text(12)),
          .settings = strings_from_json(row.text(13)),
          .started_unix_ms = row.integer(8),
          .started = instant(row, 9),
          .ended = optional_instant(row, 10),
          .how = std::string(row.text(11)),
          .forecast = Duration{row.integer(14)},
          .forecast_at_the_worst = Duration{row.integer(15)}};
}

}  // namespace trainyard::journal
