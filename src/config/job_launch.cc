// What a task is started with: Job::launch() and Job::fingerprint().
#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/bytes.h"
#include "base/check.h"
#include "base/fingerprint.h"
#include "base/result.h"
#include "config/file_name.h"
#include "config/gpu_variables.h"
#include "config/job.h"
#include "config/job_binding.h"
#include "config/job_spec.h"
#include "config/job_state.h"
#include "config/own_program.h"
#include "config/placeholder.h"
#include "config/python_command.h"
#include "config/setting_value.h"
#include "model/ids.h"
#include "model/launch.h"
#include "model/plan.h"
#include "model/resources.h"
#include "model/task_seed.h"

namespace trainyard {
namespace {

using Variables = std::vector<std::pair<std::string, std::string>>;

/// What the job file sets: the group's, with the task's over it, in the order of their names' first
/// appearance.
Variables said_variables(const GroupSpec& group, const TaskSpec& task, const Bindings& bindings) {
  Variables variables;
  for (const Wants* wants : {&group.wants, &task.wants}) {
    for (const auto& [name, text] : wants->environment) {
      const auto found =
          std::ranges::find(variables, name, [](const auto& one) { return one.first; });
      if (found == variables.end()) {
        variables.emplace_back(name, text.text.fill(bindings));
      } else {
        found->second = text.text.fill(bindings);
      }
    }
  }
  return variables;
}

/// "stdout.log" for the first attempt, "stdout.2.log" for the second.
std::string attempt_file(const std::string& directory, std::string_view name,
                         std::string_view ending, std::uint32_t attempt) {
  if (attempt == 1) return fmt::format("{}/{}.{}", directory, name, ending);
  return fmt::format("{}/{}.{}.{}", directory, name, attempt, ending);
}

/// A number that the job file says; -1 where it says nothing.
template <class Parse, class Number>
std::int64_t said_number(const std::optional<Text>& text, const Bindings& bindings, Parse parse,
                         Number number) {
  if (!text) return -1;
  const auto value = parse(text->text.fill(bindings));
  check(value.has_value(), "a value that was checked when the job was loaded");
  return number(*value);
}

/// For a task whose group says `preload`. What its command needs was checked when the job was
/// loaded.
void add_preload(const GroupSpec& group, bool in_shell, const std::string& run_directory,
                 Launch& launch) {
  const auto python = in_shell ? read_python_command(std::string_view(launch.arguments.back()))
                               : read_python_command(launch.arguments);
  // A placeholder in the place of the interpreter may have made it no Python's: it runs as it is.
  if (!python) return;
  launch.arguments = python->arguments;
  launch.preload.modules = group.preload;
  launch.preload.interpreter = python->interpreter;
  if (!python->directory.empty()) {
    launch.preload.path = absolute_path(launch.working_directory, python->directory);
  }
  launch.preload.log_path = run_directory + "/trainyard.preload.log";
  // By this what is left of a run is found whose keeper has died.
  launch.preload.environment.push_back("TRAINYARD_RUN_DIR=" + run_directory);
  for (const auto& [name, text] : group.wants.environment) {
    if (text.text.uses_any()) continue;
    launch.preload.environment.push_back(fmt::format("{}={}", name, text.text.text()));
  }
}

/// What is exec'ed. That of a task of ranks is one of this program, which runs it so often.
std::vector<std::string> command_of(const GroupSpec& group, const TaskSpec& task,
                                    const Bindings& bindings, int ranks) {
  std::vector<std::string> command;
  if (ranks > 0) {
    command = {own_program().value_or("trainyard"), "ranks", "--ranks", fmt::to_string(ranks)};
    const auto& launcher = task.wants.launcher ? task.wants.launcher : group.wants.launcher;
    if (launcher) command.insert(command.end(), {"--launcher", *launcher});
    command.emplace_back("--");
  }
  if (task.in_shell) command.insert(command.end(), {"/bin/sh", "-c"});
  for (const Template& argument : task.arguments) command.push_back(argument.fill(bindings));
  return command;
}

/// How many threads a process may have for itself.
std::string threads_of(const Request& request, int ranks) {
  const std::int64_t cpus_of_each = request.cpus.milli / 1000 / std::max(ranks, 1);
  return fmt::to_string(std::max<std::int64_t>(1, cpus_of_each));
}

}  // namespace

Launch Job::launch(AttemptKey key, const std::vector<GpuIndex>& gpus) const {
  State::Bound bound = state_->bind(key.task);
  const TaskSpec& task = *bound.task;
  const GroupSpec& group = *bound.group;
  const Shape& shape = state_->plan.shape_of(key.task);
  Launch launch;
  launch.task_directory = state_->directory_of(group, bound.id);
  launch.stdout_path = attempt_file(launch.task_directory, "stdout", "log", key.attempt);
  launch.stderr_path = attempt_file(launch.task_directory, "stderr", "log", key.attempt);
  launch.result_path = attempt_file(launch.task_directory, "result", "json", key.attempt);
  bound.bindings[kTaskDirSlot] = launch.task_directory;
  bound.bindings[kRunDirSlot] = state_->places.run_directory;

  launch.arguments = command_of(group, task, bound.bindings, shape.ranks);
  const auto& directory = first_said(task.wants.working_directory, group.wants.working_directory);
  launch.working_directory = state_->places.directory;
  if (directory) {
    launch.working_directory =
        absolute_path(state_->places.directory, directory->text.fill(bound.bindings));
  }

  const Variables said = said_variables(group, task, bound.bindings);
  const auto add = [&launch](std::string_view name, std::string_view value) {
    launch.environment.push_back(fmt::format("{}={}", name, value));
  };
  std::vector<std::string> common;  // What all tasks of this shape have.
  const auto add_unless_set = [&](std::string_view name, std::string_view value) {
    const auto& outside = state_->environment_names;
    const bool set_inside =
        std::ranges::any_of(said, [name](const auto& one) { return one.first == name; });
    if (set_inside || std::ranges::find(outside, name) != outside.end()) return;
    add(name, value);
    common.push_back(launch.environment.back());
  };
  add("TRAINYARD_TASK_ID", bound.id);
  add("TRAINYARD_GROUP", group.name);
  add("TRAINYARD_RUN_DIR", state_->places.run_directory);
  add("TRAINYARD_TASK_DIR", launch.task_directory);
  add("TRAINYARD_RESULT", launch.result_path);
  add("TRAINYARD_ATTEMPT", fmt::to_string(key.attempt));
  add("TRAINYARD_SEED", fmt::to_string(task_seed(group.name, bound.id, key.attempt)));
  launch.two_phase = shape.two_phase;
  launch.ranks = shape.ranks;
  const std::string threads = threads_of(shape.request, shape.ranks);
  for (const std::string_view name :
       {"OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"}) {
    add_unless_set(name, threads);
  }
  add_unless_set("PYTHONUNBUFFERED", "1");
  for (const auto& [name, value] : gpu_variables(state_->capacity, shape, gpus)) {
    const bool said_so =
        std::ranges::any_of(said, [&](const auto& it) { return it.first == name; });
    if (!said_so) add(name, value);
  }
  if (shape.request.gpu_memory > Bytes{} || shape.learns_gpu_memory) {
    // Both take all there is when they begin, where others are to have their share.
    add_unless_set("TF_FORCE_GPU_ALLOW_GROWTH", "true");
    add_unless_set("XLA_PYTHON_CLIENT_PREALLOCATE", "false");
  }
  for (const auto& [name, value] : said) add(name, value);
  if (!group.preload.empty()) {
    launch.preload.environment = std::move(common);
    add_preload(group, task.in_shell, state_->places.run_directory, launch);
  }
  return launch;
}

std::uint64_t Job::fingerprint(TaskIndex task) const {
  State::Bound bound = state_->bind(task);
  const TaskSpec& spec = *bound.task;
  const Wants& own = spec.wants;
  const Wants& all = bound.group->wants;
  // A run directory that was moved is the same run.
  bound.bindings[kTaskDirSlot] = "{task_dir}";
  bound.bindings[kRunDirSlot] = "{run_dir}";
  Fingerprint print;
  print.add(spec.in_shell ? "sh" : "exec");
  for (const Template& argument : spec.arguments) print.add(argument.fill(bound.bindings));
  print.add("env");
  for (const auto& [name, value] : said_variables(*bound.group, spec, bound.bindings)) {
    print.add(name);
    print.add(value);
  }
  const auto& directory = first_said(own.working_directory, all.working_directory);
  print.add("directory");
  print.add(directory ? directory->text.fill(bound.bindings) : "");
  if (const auto& device = first_said(own.device, all.device)) {
    print.add("device");
    print.add(device->text.fill(bound.bindings));
  }
  print.add(said_number(first_said(own.gpus, all.gpus), bound.bindings, parse_count,
                        [](int value) { return std::int64_t{value}; }));
  if (const int ranks = state_->plan.shape_of(task).ranks; ranks > 0) {
    print.add("ranks");
    print.add(std::int64_t{ranks});
    print.add(own.launcher.value_or(all.launcher.value_or("built-in")));
  }
  return print.value();
}

}  // namespace trainyard
