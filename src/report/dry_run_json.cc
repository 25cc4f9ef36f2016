#include "report/dry_run_json.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <nlohmann/json_fwd.hpp>

#include "base/score.h"
#include "job/early_signal.h"
#include "job/gpu_caps.h"
#include "job/keep.h"
#include "job/task_keys.h"
#include "job/workers_text.h"
#include "model/ids.h"
#include "model/launch.h"
#include "model/plan.h"
#include "model/resources.h"
#include "model/site_wish.h"
#include "model/terms.h"
#include "report/learned_numbers.h"
#include "report/planned_task.h"
#include "schedule/gpu_room.h"
#include "settings/configuration.h"
#include "text/readable_json.h"

namespace trainyard::report {
namespace {

using Json = nlohmann::ordered_json;

Json gpus_json(const model::Capacity& machine, const model::Policy& policy) {
  Json gpus = Json::array();
  for (const model::Gpu& gpu : machine.gpus) {
    gpus.push_back(
        {{"number", gpu.number},
         {"uuid", gpu.uuid},
         {"name", gpu.name},
         {"late", gpu.late},
         {"memory_bytes", gpu.memory.count},
         {"memory_to_give_bytes", (gpu.memory - schedule::memory_kept_free(policy, gpu)).count}});
  }
  return gpus;
}

/// The frameworks that would cap it; null: none.
Json cap_json(const job::Job& job, model::TaskIndex task) {
  if (!job::is_capped_at_start(job.plan().shape_of(task).terms)) return nullptr;
  const std::string names = job::to_text(job.cappers(task));
  return names.empty() ? Json(nullptr) : Json(names);
}

/// The number of workers and their roles; null: it is not a parallel run.
Json workers_json(const job::Job& job, model::TaskIndex task) {
  const job::Workers workers = job.workers(task);
  if (workers.count == 0) return nullptr;
  return {{"count", workers.count}, {"roles", workers.roles}};
}

/// Null: anywhere.
Json where_json(const model::SiteWish& where) {
  if (where.says_nothing()) return nullptr;
  const auto said = [](const std::string& pattern) {
    return pattern.empty() ? Json(nullptr) : Json(pattern);
  };
  return {{"machine", said(where.machine)}, {"gpu", said(where.gpu)}};
}

/// The variables that stand for values in a command for the shell, with these values.
Json values_json(const std::optional<job::WrittenCommand>& written) {
  Json values = Json::object();
  if (!written) return values;
  for (const auto& [name, value] : written->variables) values[name] = value;
  return values;
}

Json task_json(const job::Job& job, model::AttemptKey key, const LearnedNumbers& learned) {
  const model::Launch launch = job.launch(key);
  const model::Shape& shape = job.plan().shape_of(key.task);
  Json matrix = Json::object();
  for (const auto& [name, value] : job.matrix_values(key.task)) matrix[name] = value;
  Json environment = Json::object();
  for (const std::string& variable : environment_of(job, key.task, launch)) {
    const auto equals = variable.find('=');
    environment[variable.substr(0, equals)] = variable.substr(equals + 1);
  }
  const std::optional<job::WrittenCommand> written = written_command(job, key.task, launch);
  Json json{
      {"group", job.plan().groups[shape.group.value].shown()},
      {"id", job.task_id(key.task)},
      {"attempt", key.attempt},
      {"matrix", matrix},
      {"command_line", command_lines(launch, written).command},
      {"command", launch.arguments},
      {"command_values", values_json(written)},
      {"working_directory", launch.working_directory},
      {"task_directory", launch.task_directory},
      {"environment", environment},
      {"stdout", launch.stdout_path},
      {"stderr", launch.stderr_path},
      {"result", launch.result_path},
      {"cpus", model::as_number(shape.terms.request.cpus)},
      {"memory_bytes", shape.terms.request.memory.count},
      {"disk_bytes", shape.terms.request.disk.count},
      {"gpus", shape.terms.request.gpus},
      {"gpu_memory_bytes", shape.terms.request.gpu_memory.count},
      {"memory_learned", shape.terms.learns_memory},
      {"memory_at_least_bytes", shape.terms.memory_least.count},
      {"gpu_memory_learned", shape.terms.learns_gpu_memory},
      {"gpu_memory_at_least_bytes", shape.terms.gpu_memory_least.count},
      {"gpu_memory_limit", model::to_text(shape.terms.gpu_memory_limit)},
      {"gpu_memory_cap", cap_json(job, key.task)},
      {"gpu_utilization", static_cast<double>(shape.terms.request.sharing.utilization) / 1000},
      {"max_per_gpu", shape.terms.request.sharing.max_per_gpu},
      {"device", shape.terms.request.gpu
                     ? Json(fmt::format("cuda:{}", shape.terms.request.gpu->value))
                     : Json(nullptr)},
      {"where", where_json(shape.terms.request.where)},
      {"memory_limit", shape.terms.memory_hard ? "hard" : "none"},
      {"preemptible", shape.terms.preemptible},
      {"priority", shape.terms.priority},
      {"start_after_ms", shape.terms.start_after.count()},
      {"if", model::to_text(shape.terms.run_if)},
      {"duration_ms", shape.terms.train_expected.count() == 0
                          ? Json(nullptr)
                          : Json(shape.terms.train_expected.count())},
      {"time_limit_ms", shape.terms.time_limit.count()},
      {"retries", shape.terms.retries.failures},
      {"oom_retries", shape.terms.retries.out_of_memory ? Json(*shape.terms.retries.out_of_memory)
                                                        : Json(nullptr)},
      {"retry_on",
       shape.terms.retries.after_time_limit ? Json::array({"time-limit"}) : Json::array()},
      {"retry_delay_ms", shape.terms.retries.delay.count()},
      {"signal", shape.terms.early_signal.number == 0
                     ? Json(nullptr)
                     : Json(job::to_text(shape.terms.early_signal))},
      {"checkpoint", shape.terms.checkpoints},
      {"two_phase", shape.terms.two_phase},
      {"ranks", shape.terms.ranks > 0 ? Json(shape.terms.ranks) : Json(nullptr)},
      {"workers", workers_json(job, key.task)},
      {"preload", launch.preload.modules}};
  for (const job::TaskKeyInfo& info : job::task_keys()) {
    if (!info.shown_as_set) continue;
    std::string name(info.name);
    std::ranges::replace(name, '-', '_');
    const auto value = job.said_value(key.task, info.key);
    json[name] = value ? Json(value->text) : Json(nullptr);
  }
  learned.add_to(json, key.task);
  return json;
}

Json keep_json(const job::Job& job, std::size_t number) {
  const std::optional<job::Keep> keep = job.kept_groups()[number].keep;
  if (!keep) return nullptr;
  return {{"best", keep->best}, {"by", keep->key}, {"largest", keep->better == Better::More}};
}

Json names_of(const job::Job& job, const std::vector<model::GroupIndex>& groups) {
  Json names = Json::array();
  for (const model::GroupIndex it : groups) names.push_back(job.plan().groups[it.value].shown());
  return names;
}

}  // namespace

std::string dry_run_json(const job::Job& job, std::int64_t tasks_max, const ResumedPlan* resumed,
                         const std::string& command) {
  const model::Plan& plan = resumed == nullptr ? job.plan() : resumed->plan;
  const model::Policy policy = job.policy();
  Json json{{"name", job.name()},
            {"job_file", command.empty() ? Json(job.paths().file) : Json(nullptr)},
            {"run_directory", job.paths().run_directory},
            {"machine",
             {{"cpus", model::as_number(job.capacity().cpus)},
              {"memory_bytes", job.capacity().memory.count},
              {"memory_to_give_bytes", settings::memory_to_give(policy, job.capacity()).count},
              {"processes_max", job.capacity().processes_max},
              {"gpus", gpus_json(job.capacity(), policy)}}},
            {"tasks_max", policy.processes_max},
            {"repeat", nullptr},
            {"configuration", Json::parse(settings::show_json(job.configuration()))}};
  if (const auto repeat = job.repeat()) {
    json["repeat"] = {{"rounds_max", repeat->rounds_max}, {"until", repeat->until}};
  }
  Json groups = Json::array();
  for (std::size_t number = 0; number < job.plan().groups.size(); ++number) {
    const model::PlannedGroup& group = job.plan().groups[number];
    const std::optional<model::TaskIndex> first = tried_first(plan, number);
    groups.push_back({{"name", group.shown()},
                      {"needs", names_of(job, group.needs)},
                      {"needs_by_task", names_of(job, group.needs_by_task)},
                      {"max_parallel", group.parallel_max},
                      {"fail_fast", group.fail_fast},
                      {"try_first", first ? Json(job.task_id(*first)) : Json(nullptr)},
                      {"keep", keep_json(job, number)}});
  }
  json["groups"] = groups;
  const ToRun to_be_run = to_run(plan, tasks_max);
  json["task_count"] = plan.tasks.size();
  json["finished_before"] = plan.tasks.size() - to_be_run.count;
  json["notes"] = notes_of(job, resumed);
  Json tasks = Json::array();
  const LearnedNumbers learned(job, plan);
  for (const model::AttemptKey key : to_be_run.shown) tasks.push_back(task_json(job, key, learned));
  json["tasks"] = tasks;
  return text::readable_json(json);
}

}  // namespace trainyard::report
