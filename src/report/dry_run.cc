#include "report/dry_run.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "base/bytes.h"
#include "base/duration_text.h"
#include "base/list_text.h"
#include "base/score.h"
#include "base/time.h"
#include "job/gpu_caps.h"
#include "job/keep.h"
#include "job/learned.h"
#include "job/task_keys.h"
#include "job/term_text.h"
#include "model/ids.h"
#include "model/launch.h"
#include "model/resources.h"
#include "model/site_wish.h"
#include "model/terms.h"
#include "report/planned_task.h"
#include "report/terminal_text.h"
#include "schedule/another_try.h"
#include "schedule/estimates.h"
#include "schedule/gpu_room.h"
#include "settings/configuration.h"
#include "text/readable_json.h"
#include "text/shell_quote.h"

namespace trainyard::report {
namespace {

using Json = nlohmann::ordered_json;

std::int64_t count_of(Bytes bytes) { return bytes.count; }
std::int64_t count_of(Duration time) { return time.count(); }

std::string text_of(Bytes bytes) { return to_text(bytes); }
std::string text_of(Duration time) { return exact_text(time); }

/// Estimates from this run override those from others.
template <class Value>
Json number_json(const std::optional<job::Expected<Value>>& number, Bytes of_this_run) {
  if (of_this_run > Bytes{}) return {{"value", of_this_run.count}, {"of_this_run", true}};
  if (!number) return nullptr;
  const job::LearnedFrom& from = number->from;
  return {{"value", count_of(number->value)},
          {"of_this_run", false},
          {"at_least", number->at_least},
          {"run", text::text_or_null(from.run)},
          {"started_unix_ms", text::number_or_null(from.started_unix_ms)},
          {"host", text::text_or_null(from.host)},
          {"gpu", text::text_or_null(from.gpu)}};
}

std::string reached_text(const model::Reached& reached, const model::Terms& terms) {
  std::string text = to_text(reached.memory) + " of memory";
  if (reached.largest) {
    text += fmt::format(", alone on the largest GPU{}", terms.request.gpus > 1 ? "s" : "");
  } else if (reached.gpu_memory > terms.request.gpu_memory && terms.request.gpus > 0) {
    text += fmt::format(", {} on its GPU{}", to_text(reached.gpu_memory),
                        terms.request.gpus > 1 ? "s" : "");
  }
  const int tries = reached.tries.load + reached.tries.train;
  return tries == 0 ? text : text + fmt::format(", as memory ran out {}", counted(tries, "time"));
}

/// The numbers of a task that differ from the job file: learned from earlier runs or from this one,
/// or reached by the task itself before the run was resumed.
class LearnedNumbers {
 public:
  /// `plan` is the job's, or that of a run that is resumed. Both must outlive it.
  LearnedNumbers(const job::Job& job, const model::Plan& plan);

  /// Lines of a name and its text; none if all numbers are as configured.
  [[nodiscard]] std::vector<std::pair<std::string, std::string>> lines(model::TaskIndex task) const;

  /// `learned` and `reached`, as docs/reports.md has them.
  void add_to(nlohmann::ordered_json& json, model::TaskIndex task) const;

 private:
  /// The amount learned in this run so far; 0: nothing.
  [[nodiscard]] schedule::Peak of_this_run(model::TaskIndex task) const;

  const job::Job& job_;
  const model::Plan& plan_;
  schedule::Estimates estimates_;
  std::map<model::TaskIndex, const model::Reached*> reached_;
};

LearnedNumbers::LearnedNumbers(const job::Job& job, const model::Plan& plan)
    : job_(job), plan_(plan) {
  for (const model::TakenBefore& taken : plan.taken) {
    estimates_.finished(plan.tasks.at(taken.task.value).shape,
                        {.memory = taken.memory, .gpu_memory = taken.gpu_memory});
  }
  for (const model::Reached& reached : plan.reached) reached_[reached.task] = &reached;
}

schedule::Peak LearnedNumbers::of_this_run(model::TaskIndex task) const {
  const model::ShapeIndex shape = plan_.tasks.at(task.value).shape;
  const model::Terms& terms = plan_.shapes.at(shape.value).terms;
  const schedule::Peak needed = estimates_.needed(shape);
  schedule::Peak peak;
  const bool learns = job_.policy().auto_adjust;
  if (learns && terms.learns_memory) peak.memory = std::max(needed.memory, terms.memory_least);
  if (needed.memory == Bytes{}) peak.memory = {};
  const bool is_automatic = terms.learns_gpu_memory && terms.request.gpu_memory == Bytes{};
  const Bytes gpu_memory = is_automatic && !schedule::ends_without_gpu_memory(terms, job_.policy())
                               ? estimates_.usual_gpu_memory(shape)
                               : needed.gpu_memory;
  if (terms.learns_gpu_memory && gpu_memory > terms.request.gpu_memory) {
    peak.gpu_memory = gpu_memory;
  }
  return peak;
}

std::vector<std::pair<std::string, std::string>> LearnedNumbers::lines(
    model::TaskIndex task) const {
  std::vector<std::pair<std::string, std::string>> lines;
  const job::Job::LearnedNumbers known = job_.learned_numbers(task);
  const schedule::Peak here = of_this_run(task);
  const auto add = [&](std::string_view key, const auto& number, Bytes of_this_run) {
    const std::string_view name = lines.empty() ? "learned" : "";
    if (of_this_run > Bytes{}) {
      lines.emplace_back(name, fmt::format("{} {}, in this run", key, to_text(of_this_run)));
    } else if (number) {
      lines.emplace_back(name, fmt::format("{} {}{}, from {}", key, text_of(number->value),
                                           number->at_least ? " (it may need more)" : "",
                                           job::to_text(number->from, job_.here())));
    }
  };
  add("memory", known.memory, here.memory);
  add("gpu-memory", known.gpu_memory, here.gpu_memory);
  add("duration", known.duration, {});
  if (const auto found = reached_.find(task); found != reached_.end()) {
    lines.emplace_back("resumes with", reached_text(*found->second, plan_.shape_of(task).terms));
  }
  return lines;
}

void LearnedNumbers::add_to(Json& json, model::TaskIndex task) const {
  const job::Job::LearnedNumbers known = job_.learned_numbers(task);
  const schedule::Peak here = of_this_run(task);
  json["learned"] = {{"memory_bytes", number_json(known.memory, here.memory)},
                     {"gpu_memory_bytes", number_json(known.gpu_memory, here.gpu_memory)},
                     {"duration_ms", number_json(known.duration, {})}};
  json["reached"] = nullptr;
  const auto found = reached_.find(task);
  if (found == reached_.end()) return;
  const model::Reached& reached = *found->second;
  json["reached"] = {{"memory_bytes", reached.memory.count},
                     {"gpu_memory_bytes", reached.gpu_memory.count},
                     {"alone", reached.largest},
                     {"tries", reached.tries.load + reached.tries.train}};
}

std::string request_text(const model::Shape& shape) {
  const model::Terms& terms = shape.terms;
  const model::Request& request = terms.request;
  const bool memory_grows = terms.memory_least > Bytes{};
  std::string text = fmt::format("{} CPU{}, {}{} of memory", model::as_number(request.cpus),
                                 request.cpus == model::cpus(1) ? "" : "s",
                                 memory_grows ? "at least " : "", to_text(request.memory));
  if (request.disk > Bytes{}) text += fmt::format(", {} of disk", to_text(request.disk));
  if (request.gpus == 0) return text;
  const std::string which =
      request.gpu ? fmt::format("cuda:{}", request.gpu->value) : counted(request.gpus, "GPU");
  if (terms.gpu_memory_least > Bytes{}) {
    return text + fmt::format(", at least {} on {}, or more if its group is measured to need it",
                              to_text(request.gpu_memory), which);
  }
  if (terms.learns_gpu_memory && request.gpu_memory == Bytes{}) {
    return text + fmt::format(", {} with as much memory as its group is measured to need", which);
  }
  if (request.gpu_memory == Bytes{}) {
    return text + (request.gpu ? fmt::format(", all of {}", which)
                               : fmt::format(", {}", counted(request.gpus, "whole GPU")));
  }
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

/// "the GPU memory that no other task has reserved, set through torch 2.10.0"; empty for a task
/// that shares no GPU.
std::string gpu_cap_text(const job::Job& job, model::TaskIndex task) {
  const model::Terms& terms = job.plan().shape_of(task).terms;
  const bool shares = terms.request.gpu_memory > Bytes{} || terms.learns_gpu_memory;
  if (terms.request.gpus == 0 || !shares) return {};
  if (terms.gpu_memory_limit == model::GpuMemoryLimit::None) return "none (gpu-memory-limit)";
  const bool hard = terms.gpu_memory_limit == model::GpuMemoryLimit::Hard;
  const std::string most =
      hard ? fmt::format("hard: {}, killed when it uses more", to_text(terms.request.gpu_memory))
           : std::string("the GPU memory that no other task has reserved");
  if (terms.two_phase) return most + ", set with its device";
  const job::Cappers cappers = job.cappers(task);
  if (!cappers.found.empty()) return fmt::format("{}, set through {}", most, job::to_text(cappers));
  return fmt::format("{}not set: {}", hard ? most + "; " : std::string(), cappers.why_not);
}

std::string limits_text(const job::Job& job) {
  const model::Policy policy = job.policy();
  const model::Capacity& machine = job.capacity();
  std::string text = settings::machine_text(machine, policy) + settings::gpus_text(machine, policy);
  text += policy.processes_max > 0
              ? fmt::format("at once: at most {}", counted(policy.processes_max, "task"))
              : std::string("at once: as many tasks as their CPUs and memory allow");
  if (machine.processes_max > 0) {
    text += fmt::format(", and at most {} processes, limited by {}", machine.processes_max,
                        machine.processes_max_reason);
  }
  text += '\n';
  return text;
}

/// "keeps the best 3 by acc (the largest); the files of the other tasks except logs and results are
/// deleted when 'report' has finished"; empty: it keeps all.
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
  const std::string when = readers.empty() ? std::string("as soon as that is known")
                                           : fmt::format("when {} {} finished", list_text(readers),
                                                         readers.size() == 1 ? "has" : "have");
  return fmt::format(
      "keeps {}; the files of the other tasks except logs and results are deleted {}",
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
    facts.push_back(fmt::format("each task needs the tasks of {} with its matrix values",
                                job.plan().groups[need.value].shown()));
  }
  if (group.parallel_max > 0)
    facts.push_back(fmt::format("at most {} at once", group.parallel_max));
  if (group.fail_fast) facts.emplace_back("ends with the first failure");
  if (const auto first = tried_first(plan, number)) {
    facts.push_back(fmt::format("runs {} first", job.task_id(*first)));
  }
  if (const std::string kept = keep_text(job, number); !kept.empty()) facts.push_back(kept);
  return facts.empty() ? fmt::format("group {}\n", group.shown())
                       : fmt::format("group {}: {}\n", group.shown(), fmt::join(facts, ", "));
}

/// The lines of a task.
struct TaskLines {
  struct Line {
    std::string name;
    std::string value;
    bool own = false;  ///< Every task has another: its command, its files.
  };
  std::string id;
  std::string command;
  std::vector<Line> lines;
  std::vector<std::string> environment;  ///< Words for a shell.
};

/// "4 processes with 1 GPU each"
std::string ranks_text(const model::Shape& shape) {
  const int ranks = shape.terms.ranks;
  const int gpus = shape.terms.request.gpus;
  if (gpus == 0) return fmt::format("{} processes", ranks);
  if (gpus < ranks) return fmt::format("{} processes that share the GPUs", ranks);
  const auto each = counted(gpus / ranks, "GPU");
  return fmt::format("{} processes with {} each", ranks, each);
}

TaskLines lines_of(const job::Job& job, model::AttemptKey key, const LearnedNumbers& learned) {
  const model::Launch launch = job.launch(key);
  const model::Shape& shape = job.plan().shape_of(key.task);
  const model::Terms& terms = shape.terms;
  TaskLines task{.id = job.task_id(key.task)};
  const auto line = [&task](std::string_view name, std::string_view value) {
    task.lines.push_back({.name = std::string(name), .value = std::string(value)});
  };
  const auto own_line = [&task](std::string_view name, std::string_view value) {
    task.lines.push_back({.name = std::string(name), .value = std::string(value), .own = true});
  };
  if (key.attempt > 1) line("attempt", fmt::format("{}", key.attempt));
  const CommandLines lines = command_lines(launch, written_command(job, key.task, launch));
  task.command = lines.command;
  own_line("command", lines.command);
  if (!lines.runs_as.empty()) own_line("runs as", lines.runs_as);
  line("directory", launch.working_directory);
  line("requests", request_text(shape));
  for (const auto& [about, what] : learned.lines(key.task)) line(about, what);
  if (const std::string sharing = sharing_text(terms.request.sharing); !sharing.empty()) {
    line("on its GPU", sharing);
  }
  if (const std::string where = model::to_text(terms.request.where); !where.empty()) {
    line("where", where);
  }
  if (const std::string cap = gpu_cap_text(job, key.task); !cap.empty()) line("GPU cap", cap);
  if (terms.ranks > 0) line("ranks", ranks_text(shape));
  if (terms.workers > 0) line("workers", job::to_text(job.workers(key.task)));
  if (terms.memory_hard) line("memory limit", "hard: killed when it uses more");
  if (terms.start_after > Duration{0}) {
    line("start after", exact_text(terms.start_after));
  }
  if (terms.run_if != model::RunIf::Success) {
    line("runs if", model::to_text(terms.run_if));
  }
  if (terms.priority != 0) line("priority", fmt::format("{}", terms.priority));
  if (!terms.preemptible) line("preemptible", "no: it is not interrupted when memory runs short");
  if (terms.train_expected > Duration{0}) {
    line("expected", exact_text(terms.train_expected));
  }
  line("time limit", terms.time_limit.count() == 0 ? "none" : exact_text(terms.time_limit));
  if (const std::string tries = job::to_text(terms.retries); !tries.empty()) line("retries", tries);
  if (terms.early_signal.number != 0) line("signal", job::to_text(terms.early_signal));
  if (terms.checkpoints) line("checkpoint", "yes: a retry continues from what the task has saved");
  if (terms.two_phase) line("phases", "loads, then waits for a device to train on");
  for (const job::TaskKeyInfo& info : job::task_keys()) {
    const auto value = info.shown_as_set ? job.said_value(key.task, info.key) : std::nullopt;
    if (value) line(info.name, value->text);
  }
  if (!launch.preload.modules.empty()) {
    line("preload", fmt::format("{}", fmt::join(launch.preload.modules, ", ")));
  }
  own_line("stdout", launch.stdout_path);
  own_line("stderr", launch.stderr_path);
  own_line("result", launch.result_path);
  for (const std::string& variable : environment_of(job, key.task, launch)) {
    const auto equals = variable.find('=');
    task.environment.push_back(variable.substr(0, equals + 1) +
                               text::shell_word(variable.substr(equals + 1)));
  }
  return task;
}

std::string full_text(const TaskLines& task) {
  std::string text = fmt::format("  task {}\n", task.id);
  const auto line = [&text](std::string_view name, std::string_view value) {
    text += fmt::format("    {:<12} {}\n", name, value);
  };
  for (const TaskLines::Line& it : task.lines) line(it.name, it.value);
  std::string_view name = "environment";
  for (const std::string& variable : task.environment) {
    line(name, variable);
    name = "";
  }
  return text;
}

/// Whether two tasks differ only in their commands, files and environments.
bool are_alike(const TaskLines& one, const TaskLines& other) {
  return std::ranges::equal(one.lines, other.lines, [](const auto& a, const auto& b) {
    return a.name == b.name && a.own == b.own && (a.own || a.value == b.value);
  });
}

/// A line for a task that is like the one before it: its command, with the variables of the job
/// file that are set otherwise.
std::string short_text(const TaskLines& task, const TaskLines& like) {
  std::string text = fmt::format("  task {}: ", task.id);
  for (const std::string& variable : task.environment) {
    if (variable.starts_with("TRAINYARD_")) continue;
    const bool is_same = std::ranges::find(like.environment, variable) != like.environment.end();
    if (!is_same) text += variable + " ";
  }
  return text + task.command + "\n";
}

std::string rounds_text(const job::Job::Repeat& repeat) {
  std::string text = fmt::format("repeat: at most {}", counted(repeat.rounds_max, "round"));
  if (!repeat.until.empty()) text += fmt::format(", until {}", repeat.until);
  return text + "; round 0 is shown\n";
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

/// The frameworks that would cap it; null: none.
Json cap_json(const job::Job& job, model::TaskIndex task) {
  if (!job::is_capped_at_start(job.plan().shape_of(task).terms)) return nullptr;
  return text::text_or_null(job::to_text(job.cappers(task)));
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
  return {{"machine", text::text_or_null(where.machine)}, {"gpu", text::text_or_null(where.gpu)}};
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
  const model::Terms& terms = shape.terms;
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
      {"cpus", model::as_number(terms.request.cpus)},
      {"memory_bytes", terms.request.memory.count},
      {"disk_bytes", terms.request.disk.count},
      {"gpus", terms.request.gpus},
      {"gpu_memory_bytes", terms.request.gpu_memory.count},
      {"memory_learned", terms.learns_memory},
      {"memory_at_least_bytes", terms.memory_least.count},
      {"gpu_memory_learned", terms.learns_gpu_memory},
      {"gpu_memory_at_least_bytes", terms.gpu_memory_least.count},
      {"gpu_memory_limit", model::to_text(terms.gpu_memory_limit)},
      {"gpu_memory_cap", cap_json(job, key.task)},
      {"gpu_utilization", static_cast<double>(terms.request.sharing.utilization) / 1000},
      {"max_per_gpu", terms.request.sharing.max_per_gpu},
      {"device",
       terms.request.gpu ? Json(fmt::format("cuda:{}", terms.request.gpu->value)) : Json(nullptr)},
      {"where", where_json(terms.request.where)},
      {"memory_limit", terms.memory_hard ? "hard" : "none"},
      {"preemptible", terms.preemptible},
      {"priority", terms.priority},
      {"start_after_ms", terms.start_after.count()},
      {"if", model::to_text(terms.run_if)},
      {"duration_ms", text::number_or_null(terms.train_expected.count())},
      {"time_limit_ms", terms.time_limit.count()},
      {"retries", terms.retries.failures},
      {"oom_retries",
       terms.retries.out_of_memory ? Json(*terms.retries.out_of_memory) : Json(nullptr)},
      {"retry_on", terms.retries.after_time_limit ? Json::array({"time-limit"}) : Json::array()},
      {"retry_delay_ms", terms.retries.delay.count()},
      {"signal",
       terms.early_signal.number == 0 ? Json(nullptr) : Json(job::to_text(terms.early_signal))},
      {"checkpoint", terms.checkpoints},
      {"two_phase", terms.two_phase},
      {"ranks", text::number_or_null(terms.ranks)},
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

std::string dry_run_text(const job::Job& job, std::int64_t tasks_max, const ResumedPlan* resumed,
                         const std::string& command) {
  const model::Plan& plan = resumed == nullptr ? job.plan() : resumed->plan;
  std::string text =
      fmt::format("job {}: {} in {}\n", job.name(), counted(std::ssize(plan.tasks), "task"),
                  counted(std::ssize(plan.groups), "group"));
  text += command.empty() ? fmt::format("job file: {}\n", job.paths().file)
                          : fmt::format("command: {}\n", command);
  text += fmt::format("run directory: {}\n", job.paths().run_directory);
  text += limits_text(job);
  if (const auto repeat = job.repeat()) text += rounds_text(*repeat);
  for (const std::string& note : notes_of(job, resumed)) text += note + "\n";
  std::size_t groups = 0;
  const ToRun tasks = to_run(plan, tasks_max);
  const LearnedNumbers learned(job, plan);
  std::optional<TaskLines> full;  // The last task of the group that was shown in full.
  bool any_short = false;
  for (const model::AttemptKey key : tasks.shown) {
    if (job.group_of(key.task).value >= groups) {
      groups = job.group_of(key.task).value;
      text += "\n" + group_text(job, plan, groups);
      ++groups;
      full.reset();
    }
    TaskLines task = lines_of(job, key, learned);
    if (full && are_alike(task, *full)) {
      text += short_text(task, *full);
      any_short = true;
      continue;
    }
    text += full_text(task);
    full = std::move(task);
  }
  if (any_short) {
    text +=
        "\ntasks in one line have the requests and options of the task above them: --json shows "
        "each in "
        "full\n";
  }
  const auto more = static_cast<std::int64_t>(tasks.count - tasks.shown.size());
  if (more > 0) text += fmt::format("\nand {} more\n", counted(more, "task"));
  return text;
}

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
