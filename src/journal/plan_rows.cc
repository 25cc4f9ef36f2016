#include "journal/plan_rows.h"

#include <bit>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "journal/event_text.h"
#include "journal/journal.h"
#include "journal/json_text.h"
#include "journal/sqlite.h"
#include "model/ids.h"
#include "model/plan.h"
#include "model/resources.h"

namespace trainyard {

GroupSettings settings_of(const Plan& plan, const PlannedGroup& group) {
  std::string needs = "[";
  for (const GroupIndex need : group.needs) {
    if (needs.size() > 1) needs.push_back(',');
    append_json_string(needs, plan.groups.at(need.value).name);
  }
  needs.push_back(']');
  return {
      .needs = std::move(needs), .parallel_max = group.parallel_max, .fail_fast = group.fail_fast};
}

Result<void> put_group(Database& database, std::uint32_t number, GroupIndex index,
                       const Plan& plan) {
  Result<Statement> put = database.prepare(
      "INSERT OR REPLACE INTO groups (number, position, name, needs, parallel_max, fail_fast) "
      "VALUES (?1, ?2, ?3, ?4, ?5, ?6)");
  if (!put) return std::unexpected(std::move(put.error()));
  const PlannedGroup& group = plan.groups.at(index.value);
  const GroupSettings settings = settings_of(plan, group);
  return put->run(number, index.value, group.name, settings.needs, settings.parallel_max,
                  settings.fail_fast ? 1 : 0);
}

Result<void> put_shapes(Database& database, const Plan& plan, const RowNumbers& numbers) {
  struct Counts {
    int waiting = 0;
    int finished = 0;
  };
  std::vector<Counts> counts(plan.shapes.size());
  for (const PlannedTask& task : plan.tasks) {
    Counts& of_shape = counts.at(task.shape.value);
    (task.finished_before ? of_shape.finished : of_shape.waiting) += 1;
  }
  Result<void> cleared =
      database.run("DELETE FROM shapes; DELETE FROM headroom; DELETE FROM headroom_gpus");
  if (!cleared) return cleared;
  Result<Statement> insert = database.prepare(
      "INSERT INTO shapes (number, group_number, memory, cpus_milli, gpus, gpu_memory, "
      "time_limit_ms, waiting, finished) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)");
  if (!insert) return std::unexpected(std::move(insert.error()));
  for (std::size_t i = 0; i < plan.shapes.size(); ++i) {
    const Shape& shape = plan.shapes[i];
    Result<void> done =
        insert->run(static_cast<std::int64_t>(i), numbers.of(shape.group), shape.request.memory,
                    shape.request.cpus.milli, shape.request.gpus, shape.request.gpu_memory,
                    shape.time_limit, counts[i].waiting, counts[i].finished);
    if (!done) return done;
  }
  return {};
}

Result<TaskRows> TaskRows::open(Database& database, const Plan& plan, const PlanNames& names,
                                const RowNumbers& numbers) {
  Result<Statement> insert = database.prepare(
      "INSERT INTO tasks (number, position, group_number, shape, fingerprint, attempt_before, id, "
      "matrix) VALUES (?1, ?2, ?3, ?4, ?5, 0, ?6, ?7)");
  if (!insert) return std::unexpected(std::move(insert.error()));
  Result<Statement> update = database.prepare(
      "UPDATE tasks SET position = ?2, group_number = ?3, shape = ?4, "
      "fingerprint = coalesce(?5, fingerprint), matrix = ?6, edited = ?7 WHERE number = ?1");
  if (!update) return std::unexpected(std::move(update.error()));
  return TaskRows(std::move(*insert), std::move(*update), plan, names, numbers);
}

namespace {

std::optional<std::string> matrix_of(const PlanNames& names, TaskIndex task) {
  if (!names.matrix_values) return std::nullopt;
  std::string json = matrix_to_json(names.matrix_values(task));
  if (json.empty()) return std::nullopt;
  return json;
}

}  // namespace

Result<void> TaskRows::insert(TaskIndex task) {
  const ShapeIndex shape = plan_.tasks.at(task.value).shape;
  const GroupIndex group = plan_.shapes.at(shape.value).group;
  return insert_.run(numbers_.of(task), task.value, numbers_.of(group), shape.value,
                     std::bit_cast<std::int64_t>(names_.fingerprint(task)), names_.task_id(task),
                     matrix_of(names_, task));
}

Result<void> TaskRows::update(TaskIndex task, Update how) {
  const ShapeIndex shape = plan_.tasks.at(task.value).shape;
  const GroupIndex group = plan_.shapes.at(shape.value).group;
  std::optional<std::int64_t> fingerprint;
  if (!how.fingerprint_stays) {
    fingerprint = std::bit_cast<std::int64_t>(names_.fingerprint(task));
  }
  return update_.run(numbers_.of(task), task.value, numbers_.of(group), shape.value, fingerprint,
                     matrix_of(names_, task), how.edited ? 1 : 0);
}

namespace {

Result<void> put_gpus(Database& database, std::int64_t execution, const std::vector<Gpu>& gpus) {
  Result<Statement> insert =
      database.prepare("INSERT INTO gpus VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)");
  if (!insert) return std::unexpected(std::move(insert.error()));
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    const Result<void> put = insert->run(execution, static_cast<std::int64_t>(i), gpus[i].label(),
                                         gpus[i].uuid, gpus[i].name, gpus[i].pci, gpus[i].memory);
    if (!put) return put;
  }
  return {};
}

}  // namespace

Result<void> put_execution(Database& database, std::int64_t number, Instant at,
                           const Execution& execution) {
  Result<Statement> insert = database.prepare(
      "INSERT INTO executions (number, started_ms, started_unix_ms, host, yard_pid, keeper_pid, "
      "socket_path, command_line, version, job_file, git_commit, config_file, settings, "
      "configuration, job_text, git_diff) "
      "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16)");
  if (!insert) return std::unexpected(std::move(insert.error()));
  Result<void> put =
      insert->run(number, at, execution.started_unix_ms, execution.host, execution.yard_pid,
                  execution.keeper_pid, execution.socket_path, execution.command_line,
                  execution.version, execution.job_file, execution.git_commit,
                  execution.config_file, strings_to_json(execution.settings),
                  execution.configuration, execution.job_text, execution.git_diff);
  if (put) put = put_gpus(database, number, execution.gpus);
  return put;
}

}  // namespace trainyard
