#include "report/dry_run.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>
#include <nlohmann/json_fwd.hpp>

#include "base/bytes.h"
#include "base/duration_text.h"
#include "base/score.h"
#include "job/early_signal.h"
#include "job/gpu_caps.h"
#include "job/job.h"
#include "job/keep.h"
#include "job/retry_text.h"
#include "job/task_keys.h"
#include "model/ids.h"
#include "model/launch.h"
#include "model/plan.h"
#include "model/resources.h"
#include "model/terms.h"
#include "report/learned_numbers.h"
#include "report/terminal_text.h"
#include "schedule/gpu_room.h"
#include "schedule/scheduler.h"
#include "settings/configuration.h"
#include "settings/machine_text.h"
#include "text/readable_json.h"
#include "text/shell_quote.h"

namespace trainyard::report {
namespace {

using Json = nlohmann::ordered_json;

double as_number(model::Cpus cpus) { return static_cast<double>(cpus.milli) / 1000; }

std::string command_line(const std::vector<std::string>& arguments) {
  std::vector<std::string> words;
  words.reserve(arguments.size());
  for (const std::string& argument : arguments) words.push_back(text::shell_word(argument));
  return fmt::format("{}", fmt::join(words, " "));
}

/// Lines that a person can paste.
struct CommandLines {
  std::string command;  ///< With all values in their places.
  std::string runs_as;  ///< What runs, where that is something else.
};

/// A preloaded command is started without a shell.
std::optional<job::WrittenCommand> written_command(const job::Job& job, model::TaskIndex task,
                                                   const model::Launch& launch) {
  return launch.preload.modules.empty() ? job.written_command(task) : std::nullopt;
}

CommandLines command_lines(const model::Launch& launch,
                           const std::optional<job::WrittenCommand>& written) {
  const std::string runs = command_line(launch.arguments);
  if (!written) return {.command = runs, .runs_as = ""};
  std::string assigned;
  for (const auto& [name, value] : written->variables) {
    assigned += fmt::format("{}={} ", name, text::shell_word(value));
  }
  if (!written->arguments) return {.command = assigned + runs, .runs_as = ""};
  return {.command = command_line(*written->arguments), .runs_as = assigned + runs};
}

std::string request_text(const model::Shape& shape) {
  const model::Request& request = shape.terms.request;
  const bool memory_grows = shape.terms.memory_least > Bytes{};
  std::string text = fmt::format("{} CPU{}, {}{} of memory", as_number(request.cpus),
                                 request.cpus == model::cpus(1) ? "" : "s",
                                 memory_grows ? "at least " : "", to_text(request.memory));
  if (request.disk > Bytes{}) text += fmt::format(", {} of disk", to_text(request.disk));
  if (request.gpus == 0) return text;
  const std::string which =
      request.gpu ? fmt::format("cuda:{}", request.gpu->value) : counted(request.gpus, "GPU");
  if (shape.terms.gpu_memory_least > Bytes{}) {
    return text + fmt::format(", at least {} on {}, more as its group is seen to need",
                              to_text(request.gpu_memory), which);
  }
  if (shape.terms.learns_gpu_memory && request.gpu_memory == Bytes{}) {
    return text + fmt::format(", {} with as much memory as its group is seen to need", which);
  }
  if (request.gpu_memory == Bytes{}) return text + fmt::format(", {} of its own", which);
  return text + fmt::format(", {} on {}", to_text(request.gpu_memory), which);
}

/// "uses 40 % of it, at most 2 tasks at once"
std::string sharing_text(const model::GpuSharing& sharing) {
  std::vector<std::string> facts;
  if (sharing.utilization > 0) {
    facts.push_back(fmt::format("uses {} % of it", static_cast<double>(sharing.utilization) / 10));
  }
  if (sharing.max_per_gpu > 0) {
    facts.push_back(fmt::format("at most {} at once", counted(sharing.max_per_gpu, "task")));
  }
  return fmt::format("{}", fmt::join(facts, ", "));
}

/// "torch 2.10.0: what of its GPU nobody else is promised"; empty for one that shares no GPU.
std::string cap_text(const job::Job& job, model::TaskIndex task) {
  const model::Terms& terms = job.plan().shape_of(task).terms;
  const bool shares = terms.request.gpu_memory > Bytes{} || terms.learns_gpu_memory;
  if (terms.request.gpus == 0 || !shares) return {};
  if (terms.gpu_memory_limit == model::GpuMemoryLimit::None) return "none (gpu-memory-limit)";
  const bool hard = terms.gpu_memory_limit == model::GpuMemoryLimit::Hard;
  const std::string most = hard ? fmt::format("hard: {}, and it is ended when it takes more",
                                              to_text(terms.request.gpu_memory))
                                : std::string("what of its GPU nobody else is promised");
  if (terms.two_phase) return most + ", told with its device";
  const job::Cappers cappers = job.cappers(task);
  if (!cappers.found.empty()) return fmt::format("{}, told to {}", most, job::to_text(cappers));
  return fmt::format("{}not told: {}", hard ? most + "; " : std::string(), cappers.why_not);
}

/// What its launch sets, and what it would be told of its GPU besides.
std::vector<std::string> environment_of(const job::Job& job, model::TaskIndex task,
                                        const model::Launch& launch) {
  std::vector<std::string> environment = launch.environment;
  if (!job::is_capped_at_start(job.plan().shape_of(task).terms)) return environment;
  for (const auto& [name, value] : job::cap_variables(job.cappers(task), std::nullopt)) {
    // What is said there is part of it.
    const std::string begins = name + "=";
    std::erase_if(environment,
                  [&begins](const std::string& variable) { return variable.starts_with(begins); });
    environment.push_back(begins + value);
  }
  return environment;
}

std::string limits_text(const job::Job& job) {
  const model::Policy policy = job.policy();
  const model::Capacity& machine = job.capacity();
  std::string text = settings::machine_text(machine, policy) + settings::gpus_text(machine, policy);
  text += policy.processes_max > 0
              ? fmt::format("at once: at most {}", counted(policy.processes_max, "task"))
              : std::string("at once: as many tasks as their CPUs and memory allow");
  if (machine.processes_max > 0) {
    text += fmt::format(", and at most {} processes ({})", machine.processes_max,
                        machine.processes_max_reason);
  }
  text += '\n';
  return text;
}

/// Who of a group is tried first, as far as it is known before the run begins; nothing where all
/// start at once.
std::optional<model::TaskIndex> tried_first(const model::Plan& plan, std::size_t group) {
  if (!plan.groups[group].try_first) return std::nullopt;
  std::map<model::TaskIndex, const model::Reached*> reached;
  for (const model::Reached& it : plan.reached) reached[it.task] = &it;
  const auto request_of = [&](model::TaskIndex task) {
    model::Request request = plan.shape_of(task).terms.request;
    const auto before = reached.find(task);
    if (before == reached.end()) return request;
    request.memory = std::max(request.memory, before->second->memory);
    if (request.gpus > 0 && before->second->largest) request.gpu_memory = {};
    if (!model::wants_whole_gpus(request)) {
      request.gpu_memory = std::max(request.gpu_memory, before->second->gpu_memory);
    }
    return request;
  };
  std::optional<model::TaskIndex> largest;
  int open = 0;
  for (std::uint32_t i = 0; i < plan.tasks.size(); ++i) {
    const model::TaskIndex task{i};
    if (plan.shape_of(task).group.value != group || !plan.tasks[i].is_open()) continue;
    ++open;
    const bool more = !largest || schedule::asks_for_less(request_of(*largest), request_of(task));
    if (more) largest = task;
  }
  return open > 1 ? largest : std::nullopt;
}

/// "keeps the best 3 by acc (the largest); what the others hold but logs and results goes when
/// 'report' has finished"; empty: it keeps all.
std::string keep_text(const job::Job& job, std::size_t number) {
  const job::KeptGroup group = job.kept_groups()[number];
  if (!group.keep) return {};
  std::vector<std::string> readers;
  for (const model::PlannedGroup& other : job.plan().groups) {
    const bool reads =
        std::ranges::find(other.needs, number, &model::GroupIndex::value) != other.needs.end();
    if (reads) readers.push_back(fmt::format("'{}'", other.shown()));
  }
  if (group.is_for_rounds) readers = {"the last round"};
  if (group.round) readers.emplace_back("the next round");
  const std::string when = readers.empty()
                               ? std::string("as soon as that is known")
                               : fmt::format("when {} {} finished", fmt::join(readers, " and "),
                                             readers.size() == 1 ? "has" : "have");
  return fmt::format("keeps {}; what the others hold but logs and results goes {}",
                     job::to_text(*group.keep), when);
}

std::string group_text(const job::Job& job, const model::Plan& plan, std::size_t number) {
  const model::PlannedGroup& group = job.plan().groups[number];
  std::vector<std::string> facts;
  facts.reserve(group.needs.size() + 2);
  for (const model::GroupIndex need : group.needs) {
    facts.push_back(fmt::format("needs {}", job.plan().groups[need.value].shown()));
  }
  for (const model::GroupIndex need : group.needs_by_task) {
    facts.push_back(fmt::format("each task needs those of its cell in {}",
                                job.plan().groups[need.value].shown()));
  }
  if (group.parallel_max > 0)
    facts.push_back(fmt::format("at most {} at once", group.parallel_max));
  if (group.fail_fast) facts.emplace_back("ends with the first failure");
  if (const auto first = tried_first(plan, number)) {
    facts.push_back(fmt::format("tries {} first", job.task_id(*first)));
  }
  if (const std::string kept = keep_text(job, number); !kept.empty()) facts.push_back(kept);
  return facts.empty() ? fmt::format("group {}\n", group.shown())
                       : fmt::format("group {}: {}\n", group.shown(), fmt::join(facts, ", "));
}

std::string ranks_text(const model::Shape& shape) {
  const int ranks = shape.terms.ranks;
  const int gpus = shape.terms.request.gpus;
  if (gpus == 0) return fmt::format("{} processes", ranks);
  if (gpus < ranks) return fmt::format("{} processes that share the GPUs", ranks);
  const auto each = counted(gpus / ranks, "GPU");
  return fmt::format("{} processes with {} each", ranks, each);
}

std::string task_text(const job::Job& job, model::AttemptKey key, const LearnedNumbers& learned) {
  const model::Launch launch = job.launch(key);
  const model::Shape& shape = job.plan().shape_of(key.task);
  std::string text = fmt::format("  task {}\n", job.task_id(key.task));
  const auto line = [&text](std::string_view name, std::string_view value) {
    text += fmt::format("    {:<12} {}\n", name, value);
  };
  if (key.attempt > 1) line("attempt", fmt::format("{}", key.attempt));
  const CommandLines lines = command_lines(launch, written_command(job, key.task, launch));
  line("command", lines.command);
  if (!lines.runs_as.empty()) line("runs as", lines.runs_as);
  line("directory", launch.working_directory);
  line("asks for", request_text(shape));
  for (const auto& [about, what] : learned.lines(key.task)) line(about, what);
  if (const std::string sharing = sharing_text(shape.terms.request.sharing); !sharing.empty()) {
    line("on its GPU", sharing);
  }
  if (const std::string cap = cap_text(job, key.task); !cap.empty()) line("GPU cap", cap);
  if (shape.terms.ranks > 0) line("ranks", ranks_text(shape));
  if (shape.terms.memory_hard) line("memory limit", "hard: it is ended when it takes more");
  if (shape.terms.start_after > Duration{0}) {
    line("start after", to_text(shape.terms.start_after));
  }
  if (shape.terms.run_if != model::RunIf::Success) {
    line("runs if", model::to_text(shape.terms.run_if));
  }
  if (shape.terms.priority != 0) line("priority", fmt::format("{}", shape.terms.priority));
  if (!shape.terms.preemptible) line("preempt", "no: it is not interrupted when memory runs short");
  if (shape.terms.train_expected > Duration{0}) {
    line("expected", trainyard::to_text(shape.terms.train_expected));
  }
  line("time limit",
       shape.terms.time_limit.count() == 0 ? "none" : trainyard::to_text(shape.terms.time_limit));
  if (const std::string tries = job::to_text(shape.terms.retries); !tries.empty())
    line("retries", tries);
  if (shape.terms.early_signal.number != 0) line("signal", job::to_text(shape.terms.early_signal));
  if (shape.terms.two_phase) line("phases", "loads, then waits for a device to train on");
  if (const auto metrics = job.said_value(key.task, job::TaskKey::Metrics)) {
    line("metrics", metrics->text);
  }
  if (!launch.preload.modules.empty()) {
    line("preload", fmt::format("{}", fmt::join(launch.preload.modules, ", ")));
  }
  line("stdout", launch.stdout_path);
  line("stderr", launch.stderr_path);
  line("result", launch.result_path);
  std::string_view name = "environment";
  for (const std::string& variable : environment_of(job, key.task, launch)) {
    const auto equals = variable.find('=');
    line(name, variable.substr(0, equals + 1) + text::shell_word(variable.substr(equals + 1)));
    name = "";
  }
  return text;
}

/// The next attempts of the tasks that have not finished before.
struct ToRun {
  std::vector<model::AttemptKey> shown;
  std::size_t count = 0;
};

ToRun to_run(const model::Plan& plan, std::int64_t tasks_max) {
  const auto most = static_cast<std::size_t>(std::max<std::int64_t>(0, tasks_max));
  ToRun found;
  for (std::uint32_t i = 0; i < plan.tasks.size(); ++i) {
    if (!plan.tasks[i].is_open()) continue;
    ++found.count;
    if (found.shown.size() == most) continue;
    found.shown.push_back({.task = {i}, .attempt = plan.tasks[i].first_attempt});
  }
  return found;
}

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

/// By whose words it would be kept to its part; null: by nobody's.
Json cap_json(const job::Job& job, model::TaskIndex task) {
  if (!job::is_capped_at_start(job.plan().shape_of(task).terms)) return nullptr;
  const std::string names = job::to_text(job.cappers(task));
  return names.empty() ? Json(nullptr) : Json(names);
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
  const auto metrics = job.said_value(key.task, job::TaskKey::Metrics);
  Json values = Json::object();
  if (written) {
    for (const auto& [name, value] : written->variables) values[name] = value;
  }
  Json json{
      {"group", job.plan().groups[shape.group.value].shown()},
      {"id", job.task_id(key.task)},
      {"attempt", key.attempt},
      {"matrix", matrix},
      {"command_line", command_lines(launch, written).command},
      {"command", launch.arguments},
      {"command_values", values},
      {"working_directory", launch.working_directory},
      {"task_directory", launch.task_directory},
      {"environment", environment},
      {"stdout", launch.stdout_path},
      {"stderr", launch.stderr_path},
      {"result", launch.result_path},
      {"cpus", as_number(shape.terms.request.cpus)},
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
      {"memory_limit", shape.terms.memory_hard ? "hard" : "none"},
      {"preempt", shape.terms.preemptible},
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
      {"two_phase", shape.terms.two_phase},
      {"ranks", shape.terms.ranks > 0 ? Json(shape.terms.ranks) : Json(nullptr)},
      {"preload", launch.preload.modules},
      {"metrics", metrics ? Json(metrics->text) : Json(nullptr)}};
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

std::string rounds_text(const job::Job::Repeat& repeat) {
  std::string text = fmt::format("repeat: at most {}", counted(repeat.rounds_max, "round"));
  if (!repeat.until.empty()) text += fmt::format(", until {}", repeat.until);
  return text + "; round 0 is shown\n";
}

}  // namespace

std::string dry_run_text(const job::Job& job, std::int64_t tasks_max, const ResumedPlan* resumed) {
  const model::Plan& plan = resumed == nullptr ? job.plan() : resumed->plan;
  std::string text =
      fmt::format("job {}: {} in {}\n", job.name(), counted(std::ssize(plan.tasks), "task"),
                  counted(std::ssize(plan.groups), "group"));
  text += fmt::format("job file: {}\n", job.paths().file);
  text += fmt::format("run directory: {}\n", job.paths().run_directory);
  text += limits_text(job);
  if (const auto repeat = job.repeat()) text += rounds_text(*repeat);
  for (const std::string& note : job.notes()) text += note + "\n";
  if (resumed != nullptr) {
    for (const std::string& note : resumed->notes) text += note + "\n";
  }
  std::size_t groups = 0;
  const ToRun tasks = to_run(plan, tasks_max);
  const LearnedNumbers learned(job, plan);
  for (const model::AttemptKey key : tasks.shown) {
    if (job.group_of(key.task).value >= groups) {
      groups = job.group_of(key.task).value;
      text += "\n" + group_text(job, plan, groups);
      ++groups;
    }
    text += task_text(job, key, learned);
  }
  const auto more = static_cast<std::int64_t>(tasks.count - tasks.shown.size());
  if (more > 0) text += fmt::format("\nand {} more\n", counted(more, "task"));
  return text;
}

std::string dry_run_json(const job::Job& job, std::int64_t tasks_max, const ResumedPlan* resumed) {
  const model::Plan& plan = resumed == nullptr ? job.plan() : resumed->plan;
  const model::Policy policy = job.policy();
  Json json{{"name", job.name()},
            {"job_file", job.paths().file},
            {"run_directory", job.paths().run_directory},
            {"machine",
             {{"cpus", as_number(job.capacity().cpus)},
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
  std::vector<std::string> notes = job.notes();
  if (resumed != nullptr) std::ranges::copy(resumed->notes, std::back_inserter(notes));
  json["notes"] = notes;
  Json tasks = Json::array();
  const LearnedNumbers learned(job, plan);
  for (const model::AttemptKey key : to_be_run.shown) tasks.push_back(task_json(job, key, learned));
  json["tasks"] = tasks;
  return text::readable_json(json);
}

}  // namespace trainyard::report
