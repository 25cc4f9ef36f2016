#include "config/dry_run.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>
#include <nlohmann/json_fwd.hpp>

#include "base/bytes.h"
#include "base/duration_text.h"
#include "config/configuration.h"
#include "config/early_signal.h"
#include "config/job.h"
#include "config/machine_text.h"
#include "config/shell_quote.h"
#include "model/ids.h"
#include "model/launch.h"
#include "model/plan.h"
#include "model/resources.h"
#include "schedule/gpu_room.h"

namespace trainyard {
namespace {

using Json = nlohmann::ordered_json;

std::string dump(const Json& json) {
  return json.dump(2, ' ', false, Json::error_handler_t::replace);
}

double as_number(Cpus cpus) { return static_cast<double>(cpus.milli) / 1000; }

std::string command_line(const Launch& launch) {
  std::vector<std::string> words;
  words.reserve(launch.arguments.size());
  for (const std::string& argument : launch.arguments) words.push_back(shell_word(argument));
  return fmt::format("{}", fmt::join(words, " "));
}

std::string counted(std::size_t count, std::string_view thing) {
  return fmt::format("{} {}{}", count, thing, count == 1 ? "" : "s");
}

std::string request_text(const Shape& shape) {
  const Request& request = shape.request;
  std::string text = fmt::format("{} CPU{}, {} of memory", as_number(request.cpus),
                                 request.cpus == cpus(1) ? "" : "s", to_text(request.memory));
  if (request.gpus == 0) return text;
  const std::string which = request.gpu ? fmt::format("cuda:{}", request.gpu->value)
                                        : counted(static_cast<std::size_t>(request.gpus), "GPU");
  if (shape.learns_gpu_memory) {
    return text + fmt::format(", {} with as much memory as its group is seen to need", which);
  }
  if (request.gpu_memory == Bytes{}) return text + fmt::format(", {} of its own", which);
  return text + fmt::format(", {} on {}", to_text(request.gpu_memory), which);
}

std::string limits_text(const Job& job) {
  const Limits limits = job.limits();
  const Capacity& machine = job.capacity();
  std::string text = machine_text(machine, limits) + gpus_text(machine, limits);
  text += limits.processes_max > 0
              ? fmt::format("at once: at most {}",
                            counted(static_cast<std::size_t>(limits.processes_max), "task"))
              : std::string("at once: as many tasks as their CPUs and memory allow");
  if (machine.processes_max > 0) {
    text += fmt::format(", and at most {} processes ({})", machine.processes_max,
                        machine.processes_max_reason);
  }
  text += '\n';
  return text;
}

std::string group_text(const Job& job, std::size_t number) {
  const PlannedGroup& group = job.plan().groups[number];
  std::vector<std::string> facts;
  facts.reserve(group.needs.size() + 2);
  for (const GroupIndex need : group.needs) {
    facts.push_back(fmt::format("needs {}", job.plan().groups[need.value].name));
  }
  if (group.parallel_max > 0)
    facts.push_back(fmt::format("at most {} at once", group.parallel_max));
  if (group.fail_fast) facts.emplace_back("ends with the first failure");
  return facts.empty() ? fmt::format("group {}\n", group.name)
                       : fmt::format("group {}: {}\n", group.name, fmt::join(facts, ", "));
}

std::string ranks_text(const Shape& shape) {
  const int ranks = shape.ranks;
  const int gpus = shape.request.gpus;
  if (gpus == 0) return fmt::format("{} processes", ranks);
  if (gpus < ranks) return fmt::format("{} processes that share the GPUs", ranks);
  const auto each = counted(static_cast<std::size_t>(gpus / ranks), "GPU");
  return fmt::format("{} processes with {} each", ranks, each);
}

std::string task_text(const Job& job, AttemptKey key) {
  const Launch launch = job.launch(key);
  const Shape& shape = job.plan().shape_of(key.task);
  std::string text = fmt::format("  task {}\n", job.task_id(key.task));
  const auto line = [&text](std::string_view name, std::string_view value) {
    text += fmt::format("    {:<12} {}\n", name, value);
  };
  if (key.attempt > 1) line("attempt", fmt::format("{}", key.attempt));
  line("command", command_line(launch));
  line("directory", launch.working_directory);
  line("asks for", request_text(shape));
  if (shape.ranks > 0) line("ranks", ranks_text(shape));
  line("time limit", shape.time_limit.count() == 0 ? "none" : to_text(shape.time_limit));
  if (shape.early_signal.number != 0) line("signal", to_text(shape.early_signal));
  if (shape.two_phase) line("phases", "loads, then waits for a device to train on");
  if (!launch.preload.modules.empty()) {
    line("preload", fmt::format("{}", fmt::join(launch.preload.modules, ", ")));
  }
  line("stdout", launch.stdout_path);
  line("stderr", launch.stderr_path);
  line("result", launch.result_path);
  std::string_view name = "environment";
  for (const std::string& variable : launch.environment) {
    const auto equals = variable.find('=');
    line(name, variable.substr(0, equals + 1) + shell_word(variable.substr(equals + 1)));
    name = "";
  }
  return text;
}

/// The next attempts of the tasks that have not finished before.
struct ToRun {
  std::vector<AttemptKey> shown;
  std::size_t count = 0;
};

ToRun to_run(const Plan& plan, std::int64_t tasks_max) {
  const auto most = static_cast<std::size_t>(std::max<std::int64_t>(0, tasks_max));
  ToRun found;
  for (std::uint32_t i = 0; i < plan.tasks.size(); ++i) {
    if (plan.tasks[i].finished_before) continue;
    ++found.count;
    if (found.shown.size() == most) continue;
    found.shown.push_back({.task = {i}, .attempt = plan.tasks[i].first_attempt});
  }
  return found;
}

Json gpus_json(const Capacity& machine, const Limits& limits) {
  Json gpus = Json::array();
  for (const Gpu& gpu : machine.gpus) {
    gpus.push_back({{"number", gpu.number},
                    {"uuid", gpu.uuid},
                    {"name", gpu.name},
                    {"memory_bytes", gpu.memory.count},
                    {"memory_to_give_bytes", (gpu.memory - memory_kept_free(limits, gpu)).count}});
  }
  return gpus;
}

Json task_json(const Job& job, AttemptKey key) {
  const Launch launch = job.launch(key);
  const Shape& shape = job.plan().shape_of(key.task);
  Json matrix = Json::object();
  for (const auto& [name, value] : job.matrix_values(key.task)) matrix[name] = value;
  Json environment = Json::object();
  for (const std::string& variable : launch.environment) {
    const auto equals = variable.find('=');
    environment[variable.substr(0, equals)] = variable.substr(equals + 1);
  }
  return {{"group", job.plan().groups[shape.group.value].name},
          {"id", job.task_id(key.task)},
          {"attempt", key.attempt},
          {"matrix", matrix},
          {"command", launch.arguments},
          {"working_directory", launch.working_directory},
          {"task_directory", launch.task_directory},
          {"environment", environment},
          {"stdout", launch.stdout_path},
          {"stderr", launch.stderr_path},
          {"result", launch.result_path},
          {"cpus", as_number(shape.request.cpus)},
          {"memory_bytes", shape.request.memory.count},
          {"gpus", shape.request.gpus},
          {"gpu_memory_bytes", shape.request.gpu_memory.count},
          {"gpu_memory_learned", shape.learns_gpu_memory},
          {"device", shape.request.gpu ? Json(fmt::format("cuda:{}", shape.request.gpu->value))
                                       : Json(nullptr)},
          {"time_limit_ms", shape.time_limit.count()},
          {"signal",
           shape.early_signal.number == 0 ? Json(nullptr) : Json(to_text(shape.early_signal))},
          {"two_phase", shape.two_phase},
          {"ranks", shape.ranks > 0 ? Json(shape.ranks) : Json(nullptr)},
          {"preload", launch.preload.modules}};
}

}  // namespace

std::string dry_run_text(const Job& job, std::int64_t tasks_max, const ResumedPlan* resumed) {
  const Plan& plan = resumed == nullptr ? job.plan() : resumed->plan;
  std::string text =
      fmt::format("job {}: {} in {}\n", job.name(), counted(plan.tasks.size(), "task"),
                  counted(plan.groups.size(), "group"));
  text += fmt::format("job file: {}\n", job.places().file);
  text += fmt::format("run directory: {}\n", job.places().run_directory);
  text += limits_text(job);
  for (const std::string& note : job.notes()) text += note + "\n";
  if (resumed != nullptr) {
    for (const std::string& note : resumed->notes) text += note + "\n";
  }
  std::size_t groups = 0;
  const ToRun tasks = to_run(plan, tasks_max);
  for (const AttemptKey key : tasks.shown) {
    if (job.group_of(key.task).value >= groups) {
      groups = job.group_of(key.task).value;
      text += "\n" + group_text(job, groups);
      ++groups;
    }
    text += task_text(job, key);
  }
  if (tasks.shown.size() < tasks.count) {
    text += fmt::format("\nand {} more\n", counted(tasks.count - tasks.shown.size(), "task"));
  }
  return text;
}

std::string dry_run_json(const Job& job, std::int64_t tasks_max, const ResumedPlan* resumed) {
  const Plan& plan = resumed == nullptr ? job.plan() : resumed->plan;
  const Limits limits = job.limits();
  Json json{{"name", job.name()},
            {"job_file", job.places().file},
            {"run_directory", job.places().run_directory},
            {"machine",
             {{"cpus", as_number(job.capacity().cpus)},
              {"memory_bytes", job.capacity().memory.count},
              {"memory_to_give_bytes", memory_to_give(limits, job.capacity()).count},
              {"processes_max", job.capacity().processes_max},
              {"gpus", gpus_json(job.capacity(), limits)}}},
            {"tasks_max", limits.processes_max},
            {"configuration", Json::parse(show_json(job.configuration()))}};
  Json groups = Json::array();
  for (const PlannedGroup& group : job.plan().groups) {
    Json needs = Json::array();
    for (const GroupIndex need : group.needs) needs.push_back(job.plan().groups[need.value].name);
    groups.push_back({{"name", group.name},
                      {"needs", needs},
                      {"max_parallel", group.parallel_max},
                      {"fail_fast", group.fail_fast}});
  }
  json["groups"] = groups;
  const ToRun to_be_run = to_run(plan, tasks_max);
  json["task_count"] = plan.tasks.size();
  json["finished_before"] = plan.tasks.size() - to_be_run.count;
  json["notes"] = resumed == nullptr ? std::vector<std::string>() : resumed->notes;
  Json tasks = Json::array();
  for (const AttemptKey key : to_be_run.shown) tasks.push_back(task_json(job, key));
  json["tasks"] = tasks;
  return dump(json);
}

}  // namespace trainyard
