#include "journal/resume.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/result.h"
#include "base/time.h"
#include "journal/changes.h"
#include "journal/event_text.h"
#include "journal/journal.h"
#include "journal/options.h"
#include "journal/plan_rows.h"
#include "journal/schema.h"
#include "journal/sqlite.h"
#include "journal/turn_writer.h"
#include "model/ids.h"
#include "model/plan.h"
#include "model/resources.h"
#include "model/status.h"

namespace trainyard {
namespace {

constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();

/// Closes what the dead execution left open. The attempts that ran are lost; every attempt but the
/// last one of a finished task is put with those that another one comes after.
constexpr const char* kCloseAttempts = R"sql(
UPDATE tasks SET attempt_before = l.attempt FROM live l
  WHERE l.task = tasks.number AND l.attempt > tasks.attempt_before;
UPDATE tasks SET attempt_before = e.attempt FROM ended e
  WHERE e.task = tasks.number AND e.attempt > tasks.attempt_before;
INSERT OR REPLACE INTO attempts SELECT task, attempt, stage,
    CASE WHEN ended_ms IS NULL THEN {lost} ELSE failure END, exit_code, started_ms,
    coalesce(ended_ms, {at}), memory_requested, memory_peak, cpu_ms,
    CASE WHEN ended_ms IS NULL THEN 'the yard died while it ran' ELSE message END,
    gpus, gpu_memory_requested, gpu_memory_peak
  FROM live WHERE attempt > 0;
DELETE FROM live;
INSERT OR REPLACE INTO attempts SELECT task, attempt, stage, failure, exit_code, started_ms,
    ended_ms, memory_requested, memory_peak, cpu_ms, message, gpus, gpu_memory_requested,
    gpu_memory_peak
  FROM ended WHERE attempt > 0 AND verdict <> {finished};
DELETE FROM ended WHERE verdict <> {finished};
UPDATE executions SET ended_ms = {at}, how = 'died' WHERE ended_ms IS NULL;
)sql";

constexpr const char* kForgetResult = R"sql(
INSERT OR REPLACE INTO attempts SELECT task, attempt, stage, failure, exit_code, started_ms,
    ended_ms, memory_requested, memory_peak, cpu_ms, message, gpus, gpu_memory_requested,
    gpu_memory_peak
  FROM ended WHERE attempt > 0 AND task = {task};
DELETE FROM ended WHERE task = {task};
)sql";

/// A row of `tasks` from before.
struct OldTask {
  std::uint32_t number = 0;
  std::uint32_t attempt_before = 0;
  std::int64_t fingerprint = 0;
  std::uint32_t position = kNone;  ///< kNone: it was not in the job file.
  std::uint32_t group = 0;
  std::uint32_t shape = kNone;
  bool finished = false;
  bool edited = false;
};

/// Which row a task without a place is: its group, its id, and its turn among equals.
struct Lone {
  std::uint32_t group = 0;
  std::string id;
  std::uint32_t place = 0;  ///< In `old` or in the plan.

  friend auto operator<=>(const Lone&, const Lone&) = default;
};

class TakingOver {
 public:
  TakingOver(Database& database, Plan plan, const PlanNames& names, Edited edited)
      : database_(database), names_(names), edited_(edited) {
    taken_.plan = std::move(plan);
  }

  Result<TakenOver> run(const Execution& execution) {
    Result<void> done = close_executions();
    if (done) done = match_groups();
    if (done) done = match_tasks();
    if (done) done = write_tasks();
    if (done) done = put_shapes(database_, taken_.plan, numbers());
    if (done) done = put_execution(database_, taken_.book.execution, taken_.at, execution);
    for (const Gpu& gpu : execution.gpus) numbers().gpus.push_back(gpu.label());
    if (done) done = note();
    if (!done) return std::unexpected(std::move(done.error()));
    taken_.changes = changes_.lines();
    return std::move(taken_);
  }

 private:
  RowNumbers& numbers() { return taken_.book.numbers; }
  GroupIndex group_of(std::uint32_t task) const {
    return taken_.plan.shapes.at(taken_.plan.tasks[task].shape.value).group;
  }
  std::string name_of(std::uint32_t task) const {
    return fmt::format("{}/{}", taken_.plan.groups[group_of(task).value].name,
                       names_.task_id(TaskIndex{task}));
  }

  Result<void> note() {
    return database_.run(
        fmt::format("INSERT INTO events (execution, at_ms, kind, data) VALUES ({}, {}, 'resumed', "
                    "'{{\"finished\":{}}}')",
                    taken_.book.execution, taken_.at.since_start.count(), taken_.finished));
  }
  Result<void> close_executions();
  Result<void> match_groups();
  Result<void> match_tasks();
  Result<void> read_old_tasks(std::vector<Lone>& lone_old);
  void match_lone(std::vector<Lone> lone_old);
  Result<void> write_tasks();
  Result<void> write_task(TaskRows& rows, TaskIndex task);
  Result<void> forget_result(std::uint32_t number);
  Result<void> remove_old_tasks();

  Database& database_;
  const PlanNames& names_;
  Edited edited_;
  TakenOver taken_;
  Changes changes_;
  std::map<std::uint32_t, std::string> group_names_;
  std::vector<bool> group_is_new_;  ///< By index in the plan.
  std::vector<OldTask> old_;
  std::vector<std::uint32_t> old_of_task_;  ///< By index in the plan; kNone for a new one.
};

Result<void> TakingOver::close_executions() {
  const Result<std::int64_t> at = database_.number(kLastInstant);
  if (!at) return std::unexpected(at.error());
  taken_.at = Instant{Duration(*at)};
  const Result<std::int64_t> last = database_.number("SELECT max(number) FROM executions");
  if (!last) return std::unexpected(last.error());
  taken_.book.execution = *last + 1;
  return database_.run(fmt::format(kCloseAttempts, fmt::arg("at", *at),
                                   fmt::arg("lost", std::to_underlying(Failure::Lost)),
                                   fmt::arg("finished", std::to_underlying(Verdict::Finished))));
}

Result<void> TakingOver::match_groups() {
  struct OldGroup {
    std::string name;
    GroupSettings settings;
    bool present = false;
    bool taken = false;
  };
  std::map<std::uint32_t, OldGroup> old;
  Result<Statement> rows = database_.prepare(
      "SELECT number, name, needs, parallel_max, fail_fast, position FROM groups");
  if (!rows) return std::unexpected(std::move(rows.error()));
  while (true) {
    const Result<bool> row = rows->next();
    if (!row) return std::unexpected(row.error());
    if (!*row) break;
    old[static_cast<std::uint32_t>(rows->integer(0))] = {
        .name = std::string(rows->text(1)),
        .settings = {.needs = std::string(rows->text(2)),
                     .parallel_max = rows->small(3),
                     .fail_fast = rows->small(4) != 0},
        .present = !rows->null(5)};
  }
  std::uint32_t next_number = old.empty() ? 0 : old.rbegin()->first + 1;
  const Plan& plan = taken_.plan;
  for (std::uint32_t i = 0; i < plan.groups.size(); ++i) {
    const PlannedGroup& group = plan.groups[i];
    const auto known = std::ranges::find_if(old, [&](const auto& entry) {
      return !entry.second.taken && entry.second.name == group.name;
    });
    const bool is_new = known == old.end() || !known->second.present;
    if (is_new) {
      changes_.add(fmt::format("group '{}' is new", group.name));
    } else {
      const GroupSettings settings = settings_of(plan, group);
      changes_.compare(group.name, known->second.settings, settings);
    }
    if (known != old.end()) known->second.taken = true;
    numbers().groups.push_back(known == old.end() ? next_number++ : known->first);
    group_is_new_.push_back(is_new);
    group_names_[numbers().groups.back()] = group.name;
    const Result<void> put = put_group(database_, numbers().groups.back(), GroupIndex{i}, plan);
    if (!put) return put;
  }
  for (const auto& [number, group] : old) {
    if (group.taken || !group.present) continue;
    changes_.add(
        fmt::format("group '{}' is no longer in the job file; its results are kept", group.name));
    const Result<void> gone =
        database_.run(fmt::format("UPDATE groups SET position = NULL WHERE number = {}", number));
    if (!gone) return gone;
  }
  return {};
}

Result<void> TakingOver::read_old_tasks(std::vector<Lone>& lone_old) {
  Result<Statement> rows = database_.prepare(
      "SELECT t.number, t.attempt_before, t.fingerprint, t.position, t.group_number, t.shape, "
      "e.task IS NOT NULL, t.id, t.edited FROM tasks t LEFT JOIN ended e ON e.task = t.number "
      "ORDER BY t.position");
  if (!rows) return std::unexpected(std::move(rows.error()));
  while (true) {
    const Result<bool> row = rows->next();
    if (!row) return std::unexpected(row.error());
    if (!*row) return {};
    const auto place = static_cast<std::uint32_t>(old_.size());
    const OldTask& task = old_.emplace_back(
        OldTask{.number = static_cast<std::uint32_t>(rows->integer(0)),
                .attempt_before = static_cast<std::uint32_t>(rows->integer(1)),
                .fingerprint = rows->integer(2),
                .position = rows->null(3) ? kNone : static_cast<std::uint32_t>(rows->integer(3)),
                .group = static_cast<std::uint32_t>(rows->integer(4)),
                .shape = rows->null(5) ? kNone : static_cast<std::uint32_t>(rows->integer(5)),
                .finished = rows->small(6) != 0,
                .edited = rows->small(8) != 0});
    // Most files come back as they were: then every task is where it was, and nothing is sorted.
    const std::uint32_t at = task.position;
    const bool same = at < taken_.plan.tasks.size() &&
                      numbers().groups[group_of(at).value] == task.group &&
                      names_.task_id(TaskIndex{at}) == rows->text(7);
    if (same) {
      old_of_task_[at] = place;
    } else {
      lone_old.push_back({.group = task.group, .id = std::string(rows->text(7)), .place = place});
    }
  }
}

void TakingOver::match_lone(std::vector<Lone> lone_old) {
  std::vector<Lone> lone_new;
  for (std::uint32_t i = 0; i < old_of_task_.size(); ++i) {
    if (old_of_task_[i] != kNone) continue;
    lone_new.push_back({.group = numbers().groups[group_of(i).value],
                        .id = names_.task_id(TaskIndex{i}),
                        .place = i});
  }
  std::ranges::sort(lone_old);
  std::ranges::sort(lone_new);
  auto old = lone_old.cbegin();
  for (const Lone& task : lone_new) {
    const auto before = [&task](const Lone& other) {
      return std::tie(other.group, other.id) < std::tie(task.group, task.id);
    };
    while (old != lone_old.cend() && before(*old)) ++old;
    if (old == lone_old.cend() || old->group != task.group || old->id != task.id) continue;
    old_of_task_[task.place] = old->place;
    ++old;
  }
}

Result<void> TakingOver::match_tasks() {
  old_of_task_.assign(taken_.plan.tasks.size(), kNone);
  std::vector<Lone> lone_old;
  Result<void> read = read_old_tasks(lone_old);
  if (read) match_lone(std::move(lone_old));
  return read;
}

Result<void> TakingOver::write_tasks() {
  Plan& plan = taken_.plan;
  std::uint32_t next_number = 0;
  for (const OldTask& task : old_) next_number = std::max(next_number, task.number + 1);
  numbers().tasks.resize(plan.tasks.size());
  for (std::uint32_t i = 0; i < plan.tasks.size(); ++i) {
    numbers().tasks[i] = old_of_task_[i] == kNone ? next_number++ : old_[old_of_task_[i]].number;
  }
  Result<void> removed = remove_old_tasks();
  if (!removed) return removed;
  Result<TaskRows> rows = TaskRows::open(database_, plan, names_, numbers());
  if (!rows) return std::unexpected(std::move(rows.error()));
  taken_.book.ended.resize(plan.tasks.size());
  for (std::uint32_t i = 0; i < plan.tasks.size(); ++i) {
    Result<void> written = write_task(*rows, TaskIndex{i});
    if (!written) return written;
    taken_.book.shape_of_task.push_back(plan.tasks[i].shape.value);
    taken_.book.ended[i] = plan.tasks[i].finished_before;
    taken_.finished += plan.tasks[i].finished_before ? 1 : 0;
  }
  return {};
}

Result<void> TakingOver::write_task(TaskRows& rows, TaskIndex task) {
  PlannedTask& planned = taken_.plan.tasks[task.value];
  const bool tell = !group_is_new_[group_of(task.value).value];
  if (old_of_task_[task.value] == kNone) {
    if (tell) changes_.add(fmt::format("task '{}' is new", name_of(task.value)));
    return rows.insert(task);
  }
  const OldTask& old = old_[old_of_task_[task.value]];
  planned.first_attempt = old.attempt_before + 1;
  planned.finished_before = old.finished;
  const bool changed = std::bit_cast<std::int64_t>(names_.fingerprint(task)) != old.fingerprint;
  if (old.position == kNone && tell) {
    changes_.add(fmt::format("task '{}' is in the job file again", name_of(task.value)));
  }
  const bool again = changed && old.finished && edited_ == Edited::RunAgain;
  if (again) {
    changes_.add(fmt::format("task '{}' was changed after it had finished; it is run again",
                             name_of(task.value)));
    planned.finished_before = false;
    if (Result<void> forgotten = forget_result(old.number); !forgotten) return forgotten;
  } else if (changed && old.finished) {
    changes_.add(
        fmt::format("task '{}' was changed after it had finished; its result is kept "
                    "(--rerun-changed runs it again)",
                    name_of(task.value)));
  } else if (changed) {
    changes_.add(fmt::format("task '{}' was changed", name_of(task.value)));
  }
  const bool kept = changed && planned.finished_before;
  const bool as_it_was = !changed && old.edited == kept && old.position == task.value &&
                         old.shape == planned.shape.value;
  if (as_it_was) return {};
  return rows.update(task, {.fingerprint_stays = planned.finished_before, .edited = kept});
}

/// Its attempt is one that another one comes after.
Result<void> TakingOver::forget_result(std::uint32_t number) {
  return database_.run(fmt::format(kForgetResult, fmt::arg("task", number)));
}

Result<void> TakingOver::remove_old_tasks() {
  std::vector<bool> taken(old_.size());
  for (const std::uint32_t place : old_of_task_) {
    if (place != kNone) taken[place] = true;
  }
  Result<Statement> remove =
      database_.prepare("UPDATE tasks SET position = NULL, shape = NULL WHERE number = ?1");
  if (!remove) return std::unexpected(std::move(remove.error()));
  for (std::size_t i = 0; i < old_.size(); ++i) {
    if (taken[i] || old_[i].position == kNone) continue;
    Result<void> done = remove->run(old_[i].number);
    if (!done) return done;
    const auto group = group_names_.find(old_[i].group);
    if (group == group_names_.end()) continue;
    const Result<std::string> id =
        database_.text(fmt::format("SELECT id FROM tasks WHERE number = {}", old_[i].number));
    if (!id) return std::unexpected(id.error());
    changes_.add(fmt::format("task '{}/{}' is no longer in the job file{}", group->second, *id,
                             old_[i].finished ? "; its result is kept" : ""));
  }
  return {};
}

}  // namespace

Result<TakenOver> take_over(Database& database, Plan plan, const PlanNames& names,
                            const Execution& execution, Edited edited) {
  return TakingOver(database, std::move(plan), names, edited).run(execution);
}

}  // namespace trainyard
