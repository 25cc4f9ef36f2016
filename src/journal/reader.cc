#include "journal/reader.h"

#include <algorithm>
#include <cstddef>
#include <expected>
#include <map>

#include <fmt/format.h>

#include "base/nearest.h"
#include "journal/journal_file.h"
#include "journal/json_text.h"
#include "journal/reader_rows.h"
#include "journal/rows.h"
#include "journal/schema.h"
#include "journal/sqlite.h"
#include "journal/waiting_table.h"
#include "model/machine_rooms.h"

namespace trainyard::journal {
namespace {

/// Up to so many tasks, every id is compared with a name that is none.
constexpr std::int64_t kComparedMax = 5'000;
constexpr std::size_t kNearMax = 3;

/// A condition for the `tasks t` of a group that are still in its job file. It names the batch,
/// which has an index, because the rounds of a run are thousands of groups.
std::string of_group(model::GroupIndex group) {
  return fmt::format(
      "t.batch = (SELECT batch FROM groups WHERE number = {0}) AND t.group_number = {0} "
      "AND t.position >= 0",
      group.value);
}

/// The first of at most one.
template <class Row>
Result<std::optional<Row>> first_of(Result<std::vector<Row>> rows) {
  if (!rows) return std::unexpected(std::move(rows.error()));
  if (rows->empty()) return std::nullopt;
  return std::move(rows->front());
}

SampleRow read_sample(const Statement& row) {
  return {.at = {Duration(row.integer(0))},
          .memory_available = {row.integer(1)},
          .memory_of_tasks = {row.integer(2)},
          .cpu_used_by_others = row.real(3)};
}

/// Marks the groups that were skipped for others which have finished since, as after a retry of
/// these alone.
void note_finished_needs(std::vector<GroupRow>& groups) {
  std::map<std::pair<std::uint32_t, std::string>, model::GroupPhase> phases;
  for (const GroupRow& group : groups) phases[{group.batch, group.name_in_file}] = group.phase;
  for (GroupRow& group : groups) {
    const std::string& why = group.message.empty() ? group.why_skipped : group.message;
    if (group.skipped == 0 || !why.starts_with("needs ")) continue;
    std::vector<std::string> needs = group.needs;
    needs.insert(needs.end(), group.needs_tasks.begin(), group.needs_tasks.end());
    group.needs_finished_since =
        !needs.empty() && std::ranges::all_of(needs, [&](const std::string& needed) {
          const auto found = phases.find({group.batch, needed});
          return found != phases.end() && found->second == model::GroupPhase::Finished;
        });
  }
}

std::string with_group(std::string_view group, std::string_view id) {
  return fmt::format("{}/{}", group, id);
}

/// `which`: a condition in SQL on `gpus g`.
Result<std::vector<GpuRow>> read_gpus(Database& database, std::string_view which) {
  return collect(
      database,
      fmt::format("SELECT g.execution, coalesce(m.name, ''), g.label, g.name, g.memory FROM gpus g "
                  "LEFT JOIN machines m ON m.execution = g.execution AND m.number = g.machine "
                  "WHERE {} ORDER BY g.execution, g.machine, g.position",
                  which),
      [](const Statement& row) {
        return GpuRow{.execution = row.integer(0),
                      .machine = std::string(row.text(1)),
                      .label = std::string(row.text(2)),
                      .name = std::string(row.text(3)),
                      .memory = {row.integer(4)}};
      });
}

}  // namespace

struct JournalReader::State {
  Database database;
  /// A view can be held only where readers do not block the yard: with a write-ahead log. Elsewhere
  /// each call sees its own moment.
  bool holds_view = false;
  /// Names of the view, read with the first request for tasks.
  std::optional<Known> names;

  Result<const Known*> known();
  Result<std::vector<std::string>> near(std::string_view name);
};

JournalReader::JournalReader(std::unique_ptr<State> state) : state_(std::move(state)) {}
JournalReader::JournalReader(JournalReader&&) noexcept = default;
JournalReader& JournalReader::operator=(JournalReader&&) noexcept = default;
JournalReader::~JournalReader() = default;

Result<JournalReader> JournalReader::open(const std::string& path) {
  Result<Database> database = open_for_reading(path);
  if (!database) return std::unexpected(std::move(database.error()));
  const Result<std::string> mode = database->text("PRAGMA journal_mode");
  if (!mode) return std::unexpected(mode.error());
  JournalReader reader(std::make_unique<State>(
      State{.database = std::move(*database), .holds_view = *mode == "wal"}));
  const Result<void> view = reader.refresh();
  if (!view) return std::unexpected(view.error());
  return reader;
}

Result<const Known*> JournalReader::State::known() {
  if (!names) {
    Result<Known> read = read_known(database);
    if (!read) return std::unexpected(std::move(read.error()));
    names = std::move(*read);
  }
  return &*names;
}

Result<void> JournalReader::rest() {
  state_->names.reset();
  if (!state_->database.in_transaction()) return {};
  return state_->database.run("COMMIT");
}

Result<void> JournalReader::refresh() {
  state_->names.reset();
  if (!state_->holds_view) return {};
  const Result<void> ended = rest();
  if (!ended) return ended;
  // A transaction sees the moment of its first read.
  return state_->database.run("BEGIN; SELECT job_name FROM run");
}

Result<std::string> JournalReader::job_name() {
  return state_->database.text("SELECT job_name FROM run");
}

Result<std::vector<ExecutionRow>> JournalReader::executions() {
  return collect(state_->database, kExecutions, read_execution);
}

Result<std::vector<GpuRow>> JournalReader::gpus() { return read_gpus(state_->database); }

Result<std::vector<MachineRow>> JournalReader::machines() {
  return read_machines(state_->database);
}

Result<std::vector<BatchRow>> JournalReader::batches() {
  return collect(state_->database, kBatches, read_batch);
}

Result<std::vector<GroupRow>> JournalReader::groups() {
  std::map<std::int64_t, std::size_t> places;
  std::vector<GroupRow> groups;
  const Result<void> named = each(
      state_->database,
      "SELECT g.number, g.batch, g.called, g.phase, g.message, g.needs, g.name, g.needs_tasks FROM "
      "groups g "
      "JOIN batches b ON b.number = g.batch WHERE g.position IS NOT NULL AND b.complete "
      "ORDER BY g.batch, g.position",
      [&](const Statement& row) {
        places[row.integer(0)] = groups.size();
        groups.push_back({.index = {static_cast<std::uint32_t>(row.integer(0))},
                          .batch = static_cast<std::uint32_t>(row.integer(1)),
                          .name = std::string(row.text(2)),
                          .phase = static_cast<model::GroupPhase>(std::clamp(row.small(3), 0, 5)),
                          .message = std::string(row.text(4)),
                          .needs = strings_from_json(row.text(5)),
                          .needs_tasks = strings_from_json(row.text(7)),
                          .name_in_file = std::string(row.text(6))});
      });
  if (!named) return std::unexpected(named.error());
  const Result<void> counted =
      each(state_->database,
           "SELECT group_number, waiting, running, retrying, finished, failed, skipped, stopped "
           "FROM shapes",
           [&](const Statement& row) {
             const auto place = places.find(row.integer(0));
             if (place == places.end()) return;
             GroupRow& group = groups[place->second];
             group.waiting += row.small(1);
             group.running += row.small(2);
             group.retrying += row.small(3);
             group.finished += row.small(4);
             group.failed += row.small(5);
             group.skipped += row.small(6);
             group.stopped += row.small(7);
             for (int column = 1; column <= 7; ++column) group.tasks += row.small(column);
           });
  if (!counted) return std::unexpected(counted.error());
  if (const Result<void> marked = tell_apart_skipped(state_->database, groups); !marked) {
    return std::unexpected(marked.error());
  }
  for (GroupRow& group : groups) {
    if (group.skipped == 0 || !group.message.empty()) continue;
    Result<std::string> why = state_->database.text(
        fmt::format("SELECT coalesce((SELECT e.message FROM ended e CROSS JOIN tasks t "
                    "ON t.number = e.task WHERE e.verdict = {} AND t.group_number = {} LIMIT 1), "
                    "'')",
                    std::to_underlying(model::Verdict::Skipped), group.index.value));
    if (!why) return std::unexpected(std::move(why.error()));
    group.why_skipped = std::move(*why);
  }
  note_finished_needs(groups);
  const Result<const Known*> known = state_->known();
  if (!known) return std::unexpected(known.error());
  for (const auto& [task, group] : (*known)->out_of_date) {
    if (const auto place = places.find(group); place != places.end()) {
      groups[place->second].out_of_date += 1;
    }
  }
  return groups;
}

Result<std::vector<LearnedRow>> JournalReader::learned() {
  return collect(state_->database,
                 "SELECT g.called, s.learned_memory, s.learned_gpu_memory, s.learned_tasks "
                 "FROM shapes s JOIN groups g ON g.number = s.group_number "
                 "WHERE s.learned_memory + s.learned_gpu_memory > 0 ORDER BY s.number",
                 [](const Statement& row) {
                   return LearnedRow{.group_name = std::string(row.text(0)),
                                     .memory = {row.integer(1)},
                                     .gpu_memory = {row.integer(2)},
                                     .tasks = row.small(3)};
                 });
}

Result<std::vector<SharingRow>> JournalReader::sharing() {
  return collect(
      state_->database,
      "SELECT g.called, s.sharing_best, s.sharing_factor, s.sharing_tasks, s.sharing_max "
      "FROM shapes s JOIN groups g ON g.number = s.group_number "
      "WHERE s.sharing_best + s.sharing_max > 0 ORDER BY s.number",
      [](const Statement& row) {
        return SharingRow{.group_name = std::string(row.text(0)),
                          .measured = {.shape = {},
                                       .to_a_gpu = row.small(1),
                                       .factor = row.real(2),
                                       .tasks = row.small(3),
                                       .to_a_gpu_max = row.small(4)}};
      });
}

Result<std::vector<WaitingReason>> JournalReader::waiting() {
  return read_waiting(state_->database);
}

Result<std::optional<SampleRow>> JournalReader::last_sample() {
  return first_of(
      collect(state_->database,
              "SELECT at_ms, memory_available, memory_of_tasks, cpu_used_by_others FROM samples "
              "ORDER BY number DESC LIMIT 1",
              read_sample));
}

Result<Instant> JournalReader::last_instant() {
  const Result<std::int64_t> at = state_->database.number(kLastInstant);
  if (!at) return std::unexpected(at.error());
  return Instant{Duration(*at)};
}

Result<std::vector<SampleRow>> JournalReader::samples() {
  return collect(state_->database,
                 "SELECT at_ms, memory_available, memory_of_tasks, cpu_used_by_others FROM samples "
                 "ORDER BY number",
                 read_sample);
}

Result<void> JournalReader::tasks(const TaskFilter& filter,
                                  std::move_only_function<bool(TaskRow)> row) {
  std::string sql(kTaskColumns);
  // From the few to the many: CROSS JOIN keeps the order.
  if (filter.running) {
    sql +=
        "FROM live l CROSS JOIN tasks t ON t.number = l.task JOIN groups g "
        "ON g.number = t.group_number JOIN shapes s ON s.number = t.shape "
        "LEFT JOIN ended e ON e.task = t.number ";
  } else if (filter.failed || filter.warned) {
    sql +=
        "FROM ended e CROSS JOIN tasks t ON t.number = e.task JOIN groups g "
        "ON g.number = t.group_number JOIN shapes s ON s.number = t.shape "
        "LEFT JOIN live l ON l.task = t.number ";
  } else {
    sql += "FROM tasks t ";
    sql += kTaskJoins;
  }
  sql += "WHERE t.position >= 0 AND t.batch IN (SELECT number FROM batches WHERE complete) ";
  if (filter.failed) sql += "AND e.verdict = 2 ";
  if (filter.warned) sql += "AND e.warning <> '' ";
  if (filter.group) sql += fmt::format("AND {} ", of_group(*filter.group));
  sql += fmt::format("ORDER BY t.batch, t.position LIMIT {}", filter.at_most);
  const Result<const Known*> known = state_->known();
  if (!known) return std::unexpected(known.error());
  return each(state_->database, sql,
              [&](const Statement& found) { return row(read_task(found, **known)); });
}

Result<std::vector<std::string>> JournalReader::task_directories() {
  return collect(state_->database,
                 "SELECT CASE g.directory WHEN '' THEN t.id ELSE g.directory || '/' || t.id END "
                 "FROM tasks t JOIN groups g ON g.number = t.group_number",
                 [](const Statement& row) { return std::string(row.text(0)); });
}

Result<std::vector<TaskPlace>> JournalReader::unfinished_places() {
  return collect(
      state_->database,
      fmt::format(
          "SELECT directory, max(attempt) FROM (SELECT CASE g.directory WHEN '' THEN t.id ELSE "
          "g.directory || '/' || t.id END AS directory, max(coalesce(e.attempt, l.attempt, 0), "
          "t.attempt_before) AS attempt, coalesce(e.verdict, 0) = {} AS finished "
          "FROM tasks t JOIN groups g ON g.number = t.group_number "
          "LEFT JOIN ended e ON e.task = t.number LEFT JOIN live l ON l.task = t.number) "
          "GROUP BY directory HAVING min(finished) = 0 ORDER BY directory",
          std::to_underlying(model::Verdict::Finished)),
      [](const Statement& row) {
        return TaskPlace{.directory = std::string(row.text(0)),
                         .attempt = static_cast<std::uint32_t>(row.integer(1))};
      });
}

Result<std::vector<TaskNeedRow>> JournalReader::task_needs() {
  return collect(state_->database, "SELECT task, needed FROM task_needs ORDER BY task, needed",
                 [](const Statement& row) {
                   return TaskNeedRow{.task = {static_cast<std::uint32_t>(row.integer(0))},
                                      .needed = {static_cast<std::uint32_t>(row.integer(1))}};
                 });
}

Result<int> JournalReader::count_warned() {
  const Result<std::int64_t> count = state_->database.number(
      "SELECT count(*) FROM ended e CROSS JOIN tasks t ON t.number = e.task "
      "WHERE e.warning <> '' AND t.position >= 0");
  if (!count) return std::unexpected(count.error());
  return static_cast<int>(*count);
}

Result<bool> JournalReader::has_several_codes() {
  const Result<std::int64_t> spare =
      state_->database.number("SELECT count(*) - count(DISTINCT root) FROM codes");
  if (!spare) return std::unexpected(spare.error());
  return *spare > 0;
}

Result<std::vector<JournalReader::FinishedCode>> JournalReader::finished_codes() {
  return collect(state_->database,
                 fmt::format("SELECT c.root, c.git_commit, c.changes, count(*) FROM ended e "
                             "JOIN tasks t ON t.number = e.task JOIN codes c ON c.number = e.code "
                             "WHERE e.verdict = {} AND t.position >= 0 GROUP BY c.number "
                             "ORDER BY count(*) DESC, c.number",
                             std::to_underlying(model::Verdict::Finished)),
                 [](const Statement& row) {
                   return FinishedCode{.code = {.root = std::string(row.text(0)),
                                                .commit = std::string(row.text(1)),
                                                .changes = std::string(row.text(2))},
                                       .tasks = row.small(3)};
                 });
}

Result<std::optional<TaskRow>> JournalReader::find(model::TaskIndex task) {
  const std::string sql = fmt::format("{}FROM tasks t {}WHERE t.number = {} AND +t.position >= 0",
                                      kTaskColumns, kTaskJoins, task.value);
  const Result<const Known*> known = state_->known();
  if (!known) return std::unexpected(known.error());
  return first_of(collect(state_->database, sql,
                          [&known](const Statement& row) { return read_task(row, **known); }));
}

Result<std::optional<TaskRow>> JournalReader::find(std::string_view group, std::string_view id) {
  const std::string sql = fmt::format(
      "{}FROM tasks t {}WHERE +t.position >= 0 AND t.id = ?2 AND g.called = ?1 "
      "ORDER BY +t.batch, +t.position LIMIT 1",
      kTaskColumns, kTaskJoins);
  const Result<const Known*> known = state_->known();
  if (!known) return std::unexpected(known.error());
  const auto read = [&known](const Statement& row) { return read_task(row, **known); };
  return first_of(collect(state_->database, sql, read, group, id));
}

Result<std::optional<std::string>> JournalReader::find_result(std::uint32_t batch,
                                                              model::TaskIndex in_batch) {
  return first_of(collect(
      state_->database,
      "SELECT coalesce(e.result, l.result) FROM tasks t "
      "LEFT JOIN ended e ON e.task = t.number LEFT JOIN live l ON l.task = t.number "
      "WHERE t.batch = ?1 AND t.position = ?2",
      [](const Statement& row) { return std::string(row.text(0)); }, batch, in_batch.value));
}

Result<JournalReader::Lookup> JournalReader::look_up(std::string_view name) {
  const std::size_t slash = name.find('/');
  const bool has_group = slash != std::string_view::npos;
  const std::string sql = fmt::format(
      "{}FROM tasks t {}WHERE +t.position >= 0 AND (t.id = ?1 OR (t.id = ?3 AND ?2 IN (g.called, "
      "g.name))) "
      "ORDER BY +t.batch, +t.position",
      kTaskColumns, kTaskJoins);
  const std::string_view group = has_group ? name.substr(0, slash) : std::string_view();
  const std::string_view id = has_group ? name.substr(slash + 1) : name;
  const Result<const Known*> known = state_->known();
  if (!known) return std::unexpected(known.error());
  const auto read = [&known](const Statement& row) { return read_task(row, **known); };
  Result<std::vector<TaskRow>> found = collect(state_->database, sql, read, name, group, id);
  if (!found) return std::unexpected(std::move(found.error()));
  Lookup lookup{.found = std::move(*found), .near = {}};
  if (!lookup.found.empty()) return lookup;
  Result<std::vector<std::string>> near = state_->near(name);
  if (!near) return std::unexpected(std::move(near.error()));
  lookup.near = std::move(*near);
  return lookup;
}

Result<std::vector<std::string>> JournalReader::State::near(std::string_view name) {
  const bool has_group = name.find('/') != std::string_view::npos;
  const auto written = [has_group](const Statement& row) {
    return has_group ? with_group(row.text(0), row.text(1)) : std::string(row.text(1));
  };
  std::vector<std::string> near;
  const Result<std::int64_t> count =
      database.number("SELECT count(*) FROM tasks WHERE position >= 0");
  if (!count) return std::unexpected(count.error());
  if (*count <= kComparedMax) {
    const Result<std::vector<std::string>> all =
        collect(database,
                "SELECT DISTINCT g.called, t.id FROM tasks t JOIN groups g ON g.number = "
                "t.group_number WHERE t.position >= 0 ORDER BY t.batch, t.position",
                written);
    if (!all) return std::unexpected(all.error());
    std::vector<std::string_view> candidates(all->begin(), all->end());
    while (near.size() < kNearMax) {
      const std::optional<std::string_view> next = nearest(name, candidates);
      if (!next) break;
      near.emplace_back(*next);
      std::erase(candidates, std::string_view(near.back()));
    }
  }
  // A user who left the end away meant a name that begins so.
  const Result<void> begun = each(
      database,
      "SELECT g.called, t.id FROM tasks t JOIN groups g ON g.number = t.group_number WHERE "
      "t.position >= 0 AND substr(CASE WHEN ?2 THEN g.called || '/' || t.id ELSE t.id END, 1, "
      "length(?1)) = ?1 ORDER BY t.batch, t.position",
      [&](const Statement& row) {
        std::string id = written(row);
        const bool is_new = std::ranges::find(near, id) == near.end();
        if (near.size() < kNearMax && is_new) near.push_back(std::move(id));
        return near.size() < kNearMax;
      },
      name, has_group ? 1 : 0);
  if (!begun) return std::unexpected(begun.error());
  return near;
}

Result<std::vector<AttemptRow>> JournalReader::attempts(model::TaskIndex task) {
  const Result<const Known*> known = state_->known();
  if (!known) return std::unexpected(known.error());
  const auto read = [&known](const Statement& row) { return read_attempt(row, **known); };
  return collect(state_->database, all_attempts("task = ?1") + " ORDER BY attempt", read,
                 task.value);
}

Result<bool> JournalReader::its_end_tells(model::AttemptKey key) {
  // A later report that it ran out of memory takes back the report that it trains.
  const Result<std::string> last = state_->database.text(
      fmt::format("SELECT kind FROM events WHERE task = {} AND attempt = {} AND kind IN "
                  "('training', 'out_of_memory') ORDER BY seq DESC LIMIT 1",
                  key.task.value, key.attempt));
  if (!last) return std::unexpected(last.error());
  return *last == "training";
}

Result<std::vector<AttemptRow>> JournalReader::attempts_of(model::GroupIndex group) {
  const std::string sql = fmt::format(
      "SELECT a.* FROM ({}) a JOIN tasks t ON t.number = a.task "
      "ORDER BY t.position, a.attempt",
      all_attempts(
          fmt::format("task IN (SELECT t.number FROM tasks t WHERE {})", of_group(group))));
  const Result<const Known*> known = state_->known();
  if (!known) return std::unexpected(known.error());
  return collect(state_->database, sql,
                 [&known](const Statement& row) { return read_attempt(row, **known); });
}

Result<void> JournalReader::progress_of(model::GroupIndex group,
                                        std::move_only_function<bool(ProgressRow)> row) {
  return each(
      state_->database,
      fmt::format("SELECT t.number, p.attempt, p.at_ms, p.fraction, p.\"values\" FROM tasks t "
                  "CROSS JOIN progress p ON p.task = t.number WHERE {} AND p.attempt = "
                  "(SELECT max(attempt) FROM progress WHERE task = t.number) "
                  "ORDER BY t.position, p.at_ms",
                  of_group(group)),
      [&row](const Statement& found) { return row(read_progress(found)); });
}

Result<std::vector<GpuRow>> read_gpus(Database& database) { return read_gpus(database, "TRUE"); }

Result<std::vector<MachineRow>> read_machines(Database& database) {
  constexpr std::string_view kLast = "(SELECT max(number) FROM executions)";
  Result<std::vector<MachineRow>> machines =
      collect(database,
              fmt::format("SELECT name, cpus_milli, memory, joined_ms, gone_ms, why, silent_ms, "
                          "until_ms FROM machines WHERE execution = {} ORDER BY number",
                          kLast),
              [](const Statement& row) {
                return MachineRow{.name = std::string(row.text(0)),
                                  .cpus = {row.integer(1)},
                                  .memory = {row.integer(2)},
                                  .joined = {Duration(row.integer(3))},
                                  .gone = optional_instant(row, 4),
                                  .why = std::string(row.text(5)),
                                  .silent = optional_instant(row, 6),
                                  .until = optional_instant(row, 7),
                                  .gpus = {}};
              });
  if (!machines) return machines;
  // They are numbered as they join, without a gap.
  for (std::size_t number = 0; number < machines->size(); ++number) {
    Result<std::vector<GpuRow>> gpus =
        read_gpus(database, fmt::format("g.execution = {} AND g.machine = {}", kLast, number));
    if (!gpus) return std::unexpected(std::move(gpus.error()));
    (*machines)[number].gpus = std::move(*gpus);
  }
  return machines;
}

Result<std::vector<WaitingReason>> read_waiting(Database& database) {
  const Result<model::MachineRooms> rooms = read_rooms(database);
  if (!rooms) return std::unexpected(rooms.error());
  std::vector<WaitingReason> waiting;
  constexpr int kShape = 6;
  constexpr int kCpus = 7;
  const auto add = [&](const Statement& row, int tasks, const model::Reason& reason) {
    if (tasks <= 0 || reason.cause == model::Cause::None) return;
    waiting.push_back({.group_name = std::string(row.text(0)),
                       .shape = static_cast<std::uint32_t>(row.integer(kShape)),
                       .tasks = tasks,
                       .memory = {row.integer(2)},
                       .cpus = {row.integer(kCpus)},
                       .cause = reason.cause,
                       .machine = std::string(rooms->name_for(reason)),
                       .reason = rooms->reason_text(reason, row.text(3)),
                       .help = model::help_for(reason, rooms->room_of(reason),
                                               static_cast<std::uint32_t>(row.small(4)))});
  };
  // A shape has one reason, and its tasks that are on hold wait for nothing but their release.
  const Result<void> read = each(
      database,
      fmt::format(
          "SELECT g.called, s.waiting + s.retrying, s.memory, "
          "(SELECT id FROM tasks WHERE number = s.needs_task), g.batch, "
          "coalesce(h.tasks, 0), s.number, s.cpus_milli, {} FROM shapes s "
          "JOIN groups g ON g.number = s.group_number "
          "LEFT JOIN (SELECT t.shape, count(*) AS tasks FROM said d JOIN tasks t ON t.number = "
          "d.task WHERE d.on_hold <> 0 AND NOT EXISTS (SELECT 1 FROM ended WHERE task = d.task) "
          "GROUP BY t.shape) h ON h.shape = s.number "
          "WHERE s.waiting + s.retrying > 0 ORDER BY s.number",
          kReasonColumns),
      [&add](const Statement& row) {
        constexpr int kFirst = kCpus + 1;
        const int on_hold = row.small(5);
        const model::Reason reason = read_reason(row, kFirst);
        // The others of a shape whose waiting tasks are all on hold wait for their retries.
        if (reason.cause != model::Cause::Held) add(row, row.small(1) - on_hold, reason);
        add(row, on_hold, {.cause = model::Cause::Held, .needs = {}});
      });
  if (!read) return std::unexpected(read.error());
  return waiting;
}

}  // namespace trainyard::journal
