#include "journal/plan_rows.h"

#include <bit>
#include <cstddef>
#include <expected>
#include <string_view>

#include <fmt/format.h>

#include "journal/code_table.h"
#include "journal/json_text.h"
#include "journal/machine_table.h"
#include "journal/turn_writer.h"
#include "model/code.h"
#include "model/status.h"

namespace trainyard::journal {

namespace {

std::string names_of(const model::Plan& plan, const std::vector<model::GroupIndex>& groups) {
  std::string names = "[";
  for (const model::GroupIndex group : groups) {
    if (names.size() > 1) names.push_back(',');
    append_json_string(names, plan.groups.at(group.value).name);
  }
  names.push_back(']');
  return names;
}

}  // namespace

GroupSettings settings_of(const model::Plan& plan, const model::PlannedGroup& group) {
  return {.needs = names_of(plan, group.needs),
          .needs_tasks = names_of(plan, group.needs_by_task),
          .parallel_max = group.parallel_max,
          .fail_fast = group.fail_fast,
          .try_first = group.try_first};
}

Result<std::uint32_t> next_number(Database& database, std::string_view table) {
  const Result<std::int64_t> last =
      database.number(fmt::format("SELECT coalesce(max(number), -1) FROM {}", table));
  if (!last) return std::unexpected(last.error());
  return static_cast<std::uint32_t>(*last + 1);
}

Result<void> put_batch(Database& database, const Batch& batch, Instant at, bool complete) {
  Result<Statement> put = database.prepare(
      "INSERT OR REPLACE INTO batches (number, complete, added_ms, command_line, job_file, "
      "job_text, config_file, settings, environment) "
      "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)");
  if (!put) return std::unexpected(std::move(put.error()));
  const BatchSource& source = batch.source;
  return put->run(batch.number, complete ? 1 : 0, at, source.command_line, source.job_file,
                  source.job_text, source.config_file, strings_to_json(source.settings),
                  strings_to_json(source.environment));
}

Result<void> put_group(Database& database, std::uint32_t number, const Batch& batch,
                       model::GroupIndex index) {
  Result<Statement> put = database.prepare(
      "INSERT OR REPLACE INTO groups (number, batch, position, directory, name, needs, "
      "parallel_max, fail_fast, called, try_first, needs_tasks) "
      "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)");
  if (!put) return std::unexpected(std::move(put.error()));
  const model::PlannedGroup& group = batch.plan->groups.at(index.value);
  const GroupSettings settings = settings_of(*batch.plan, group);
  return put->run(number, batch.number, index.value, group.directory, group.name, settings.needs,
                  settings.parallel_max, settings.fail_fast ? 1 : 0, group.shown(),
                  settings.try_first ? 1 : 0, settings.needs_tasks);
}

Result<void> put_shapes(Database& database, const model::Plan& plan, const model::PlanStart& start,
                        const RowNumbers& numbers) {
  std::vector<Counts> counts(plan.shapes.size());
  for (const model::PlannedTask& task : plan.tasks) {
    counts.at(task.shape.value).at(std::to_underlying(counted_as(Status::Init, task.before))) += 1;
  }
  Result<Statement> insert = database.prepare(
      "INSERT INTO shapes (number, group_number, memory, cpus_milli, gpus, gpu_memory, "
      "time_limit_ms, signal_ms, waiting, finished, failed, skipped, stopped) "
      "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)");
  if (!insert) return std::unexpected(std::move(insert.error()));
  for (std::size_t i = 0; i < plan.shapes.size(); ++i) {
    const model::Shape& shape = plan.shapes[i];
    const model::GroupIndex group{start.group + shape.group.value};
    const auto count_of = [&counts, i](Counted what) {
      return counts[i].at(std::to_underlying(what));
    };
    Result<void> done = insert->run(
        numbers.of(model::ShapeIndex{start.shape + static_cast<std::uint32_t>(i)}),
        numbers.of(group), shape.terms.request.memory, shape.terms.request.cpus.milli,
        shape.terms.request.gpus, shape.terms.request.gpu_memory, shape.terms.time_limit,
        shape.terms.early_signal.before, count_of(Counted::Waiting), count_of(Counted::Finished),
        count_of(Counted::Failed), count_of(Counted::Skipped), count_of(Counted::Stopped));
    if (!done) return done;
  }
  return {};
}

Result<void> put_task_needs(Database& database, const Batch& batch, const model::PlanStart& start,
                            const RowNumbers& numbers) {
  Result<void> done = database.run(fmt::format(
      "DELETE FROM task_needs WHERE task IN (SELECT number FROM tasks WHERE batch = {})",
      batch.number));
  Result<Statement> insert = database.prepare("INSERT INTO task_needs VALUES (?1, ?2)");
  if (!insert) return std::unexpected(std::move(insert.error()));
  for (const model::TaskNeed& need : batch.plan->task_needs) {
    if (!done) return done;
    done = insert->run(numbers.of(model::TaskIndex{start.task + need.task.value}),
                       numbers.of(model::TaskIndex{start.task + need.needed.value}));
  }
  return done;
}

Result<void> put_not_selected(Database& database, const model::Plan& plan,
                              const model::PlanStart& start, const RowNumbers& numbers) {
  Result<Statement> insert = database.prepare(
      "INSERT OR IGNORE INTO ended (task, verdict, status, stage, attempt, failure, exit_code, "
      "memory_requested, memory_peak, cpu_ms, message, warning, result, load_numbers, "
      "train_numbers, gpus, gpu_memory_requested, gpu_memory_peak) "
      "VALUES (?1, ?2, ?3, ?4, 0, 0, 0, 0, 0, 0, 'not selected when the run started', '', '', 0, "
      "0, '', "
      "0, 0)");
  if (!insert) return std::unexpected(std::move(insert.error()));
  for (std::uint32_t i = 0; i < plan.tasks.size(); ++i) {
    if (plan.tasks[i].before != model::Verdict::NotSelected) continue;
    Result<void> done =
        insert->run(numbers.of(model::TaskIndex{start.task + i}),
                    std::to_underlying(model::Verdict::NotSelected),
                    std::to_underlying(Status::Init), std::to_underlying(Stage::Train));
    if (!done) return done;
  }
  return {};
}

Result<TaskRows> TaskRows::open(Database& database, const Batch& batch,
                                const model::PlanStart& start, const RowNumbers& numbers) {
  Result<Statement> insert = database.prepare(
      "INSERT INTO tasks (number, batch, position, group_number, shape, fingerprint, "
      "attempt_before, id, matrix) VALUES (?1, ?2, ?3, ?4, ?5, ?6, 0, ?7, ?8)");
  if (!insert) return std::unexpected(std::move(insert.error()));
  Result<Statement> update = database.prepare(
      "UPDATE tasks SET position = ?2, group_number = ?3, shape = ?4, "
      "fingerprint = coalesce(?5, fingerprint), matrix = ?6, edited = ?7 WHERE number = ?1");
  if (!update) return std::unexpected(std::move(update.error()));
  return TaskRows(std::move(*insert), std::move(*update), batch, start, numbers);
}

namespace {

std::optional<std::string> matrix_of(const TaskNames& names, model::TaskIndex task) {
  if (!names.matrix_values) return std::nullopt;
  std::string json = matrix_to_json(names.matrix_values(task));
  if (json.empty()) return std::nullopt;
  return json;
}

}  // namespace

TaskRows::Numbers TaskRows::numbers_of(model::TaskIndex task) const {
  const model::ShapeIndex shape = batch_->plan->tasks.at(task.value).shape;
  const model::GroupIndex group = batch_->plan->shapes.at(shape.value).group;
  return {.task = numbers_->of(model::TaskIndex{start_.task + task.value}),
          .group = numbers_->of(model::GroupIndex{start_.group + group.value}),
          .shape = numbers_->of(model::ShapeIndex{start_.shape + shape.value})};
}

Result<void> TaskRows::insert(model::TaskIndex task) {
  const Numbers numbers = numbers_of(task);
  return insert_.run(numbers.task, batch_->number, task.value, numbers.group, numbers.shape,
                     std::bit_cast<std::int64_t>(batch_->names.fingerprint(task)),
                     batch_->names.task_id(task), matrix_of(batch_->names, task));
}

Result<void> TaskRows::update(model::TaskIndex task, Update how) {
  const Numbers numbers = numbers_of(task);
  std::optional<std::int64_t> fingerprint;
  if (!how.fingerprint_stays) {
    fingerprint = std::bit_cast<std::int64_t>(batch_->names.fingerprint(task));
  }
  return update_.run(numbers.task, task.value, numbers.group, numbers.shape, fingerprint,
                     matrix_of(batch_->names, task), how.edited ? 1 : 0);
}

namespace {

Result<void> put_code(Database& database, Instant at, const model::Code& code,
                      const std::string& diff) {
  Result<CodeTable> codes = CodeTable::open(database);
  if (!codes) return std::unexpected(std::move(codes.error()));
  const Result<std::uint32_t> put = codes->put(at, code, diff);
  return put ? Result<void>() : std::unexpected(put.error());
}

}  // namespace

Result<void> put_execution(Database& database, std::int64_t number, Instant at,
                           const Execution& execution) {
  Result<Statement> insert = database.prepare(
      "INSERT INTO executions (number, started_ms, started_unix_ms, host, yard_pid, "
      "socket_path, command_line, version, job_file, git_commit, config_file, settings, "
      "configuration, job_text, git_diff, forecast_ms, forecast_worst_ms, run_directory) "
      "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18)");
  if (!insert) return std::unexpected(std::move(insert.error()));
  Result<void> put = insert->run(
      number, at, execution.started_unix_ms, execution.host, execution.yard_pid,
      execution.socket_path, execution.command_line, execution.version, execution.job_file,
      execution.git_commit, execution.config_file, strings_to_json(execution.settings),
      execution.configuration, execution.job_text, execution.git_diff, execution.forecast,
      execution.forecast_at_the_worst, execution.run_directory);
  if (put) put = put_gpus(database, number, {}, execution.gpus);
  if (put && execution.code) put = put_code(database, at, *execution.code, execution.git_diff);
  return put;
}

Result<void> put_sharing(Database& database,
                         const std::map<std::uint32_t, model::SharingMeasured>& measured) {
  Result<void> done;
  for (const auto& [row, it] : measured) {
    if (!done) return done;
    done = database.run(
        fmt::format("UPDATE shapes SET sharing_best = {}, sharing_factor = {}, sharing_tasks = {}, "
                    "sharing_max = {} WHERE number = {}",
                    it.to_a_gpu, it.factor, it.tasks, it.to_a_gpu_max, row));
  }
  return done;
}

}  // namespace trainyard::journal
