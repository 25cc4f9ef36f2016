// The start of a task: Job::launch() and Job::fingerprint().
#include <algorithm>
#include <iterator>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/check.h"
#include "base/fingerprint.h"
#include "base/path_name.h"
#include "hardware/mps.h"
#include "job/gpu_variables.h"
#include "job/job.h"
#include "job/job_state.h"
#include "model/rank_environment.h"
#include "model/terms.h"
#include "run/run_directory.h"
#include "settings/setting_value.h"
#include "sys/this_process.h"
#include "text/file_name.h"
#include "text/python_command.h"

namespace trainyard::job {
namespace {

/// A number in the job file; -1 if it is not set.
template <class Parse, class Number>
std::int64_t said_number(const Text* text, const text::Bindings& bindings, Parse parse,
                         Number number) {
  if (text == nullptr) return -1;
  const auto value = parse(text->text.fill(bindings));
  check(value.has_value(), "a value that was checked when the job was loaded");
  return number(*value);
}

/// The command, and the variables that it needs for its values.
struct Program {
  std::vector<std::string> arguments;
  Variables variables;
};

/// The command with its values written out: the words of a list, or a single text for the shell.
std::vector<std::string> filled_command(const TaskSpec& task, const text::Bindings& bindings,
                                        const text::Template::Lists& lists = {}) {
  std::vector<std::string> words;
  words.reserve(task.arguments.size());
  for (const text::Template& argument : task.arguments) {
    const std::optional<std::size_t> only = argument.only_slot();
    const auto list = only ? lists.find(*only) : lists.end();
    if (list != lists.end() && !task.in_shell) {
      words.insert(words.end(), list->second.begin(), list->second.end());
    } else {
      words.push_back(argument.fill(bindings));
    }
  }
  return words;
}

/// The texts of a task, the values of its placeholders, and the path of trainyard, which its
/// command may need.
struct TaskTexts {
  const GroupSpec& group;
  const TaskSpec& task;
  const text::Bindings& bindings;
  const text::Template::Lists& lists;
  const std::string& trainyard;
};

/// The path of this program.
std::string own_program() { return sys::own_program().value_or("trainyard"); }

/// For a task whose group has `preload`. The needs of its command were checked when the job was
/// loaded. No shell reads it, so its values are words of it.
void add_preload(const TaskTexts& texts, const std::string& run_directory, Program& program,
                 model::Launch& launch) {
  const auto& [group, task, bindings, lists, trainyard] = texts;
  std::vector<std::string> words = filled_command(task, bindings, lists);
  const auto python = task.in_shell ? text::read_python_command(std::string_view(words.front()))
                                    : text::read_python_command(std::move(words));
  // A placeholder in the place of the interpreter may have made it another command: it runs
  // unchanged.
  if (!python) return;
  program = {.arguments = python->arguments};
  launch.preload.modules = group.preload;
  launch.preload.interpreter = python->interpreter;
  if (!python->directory.empty()) {
    launch.preload.path = absolute_path(python->directory, launch.working_directory);
  }
  launch.preload.log_path = run::preload_log_path(run_directory);
  launch.preload.environment.push_back(run::mark_of(run_directory));
  for (const auto& [name, text] : group.wants.environment) {
    if (text.text.uses_any()) continue;
    launch.preload.environment.push_back(fmt::format("{}={}", name, text.text.text()));
  }
}

/// The launcher that starts the ranks of a task; nothing: the keeper starts them.
std::optional<std::string> launcher_of(const GroupSpec& group, const TaskSpec& task) {
  const Text* const launcher = said(group, task, TaskKey::Launcher);
  if (launcher == nullptr || launcher->text.text() == "built-in") return std::nullopt;
  return launcher->text.text();
}

/// The workers of a task that is a parallel run; the count is 0 for any other task.
Workers workers_of(const GroupSpec& group, const TaskSpec& task, const text::Bindings& bindings) {
  const Text* const text = said(group, task, TaskKey::Workers);
  if (text == nullptr) return {};
  const Result<Workers> workers = parse_workers(text->text.fill(bindings));
  check(workers.has_value(), "a value that was checked when the job was loaded");
  return *workers;
}

/// `trainyard parallel`, which starts the workers and ends with them.
std::vector<std::string> starter_of_workers(const Workers& workers, const std::string& trainyard) {
  std::vector<std::string> command{trainyard, "parallel", "--workers",
                                   fmt::to_string(workers.count)};
  if (!workers.roles.empty()) {
    command.insert(command.end(), {"--roles", fmt::format("{}", fmt::join(workers.roles, ","))});
  }
  command.emplace_back("--");
  return command;
}

/// The words before a command. For ranks that another launcher starts these are `trainyard ranks`,
/// which calls the launcher and makes sure that all ranks end together.
std::vector<std::string> starter_of(const TaskTexts& texts, int ranks) {
  const auto& [group, task, bindings, lists, trainyard] = texts;
  std::vector<std::string> command;
  const std::optional<std::string> launcher = launcher_of(group, task);
  const Workers workers = workers_of(group, task, bindings);
  if (workers.count > 0) {
    command = starter_of_workers(workers, trainyard);
  } else if (ranks > 0 && launcher) {
    command = {trainyard, "ranks", "--ranks", fmt::to_string(ranks), "--launcher", *launcher, "--"};
  }
  return command;
}

/// The arguments to exec. The shell receives values as variables, and never as text.
Program program_of(const TaskTexts& texts, int ranks) {
  const auto& [group, task, bindings, lists, trainyard] = texts;
  Program program{.arguments = starter_of(texts, ranks)};
  if (task.in_shell) {
    const text::Template& text = task.arguments.front();
    text::Template::Command command = text.command(bindings, lists);
    std::ranges::move(shell_words(task, std::move(command.text)),
                      std::back_inserter(program.arguments));
    program.variables = std::move(command.variables);
    if (!command.parameters.empty()) {
      program.arguments.emplace_back(task.in_sh ? "sh" : "bash");  // $0
      std::ranges::move(command.parameters, std::back_inserter(program.arguments));
    }
  } else {
    std::vector<std::string> words = filled_command(task, bindings, lists);
    // The starter of ranks and workers passes a single word to a shell, which must read no value.
    if (!program.arguments.empty() && words.size() == 1 && text::needs_shell(words.front())) {
      program.arguments.insert(program.arguments.end(), {"/bin/sh", "-c", "exec \"$0\""});
    }
    std::ranges::move(words, std::back_inserter(program.arguments));
  }
  return program;
}

bool sends_term_to_all(const GroupSpec& group, const TaskSpec& task) {
  const Text* const mode = said(group, task, TaskKey::KillMode);
  return mode != nullptr && mode->text.text() == "control-group";
}

/// The number of GPUs that the ranks of a task see: those assigned to it, or those that the job
/// file sets instead. A task of two phases is assigned its GPUs later.
int gpus_of_ranks(const model::Shape& shape, const Variables& said,
                  const std::vector<model::Gpu>& gpus) {
  if (shape.terms.two_phase) return 0;
  for (const std::string_view name : {"CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES"}) {
    const std::string* const found = find_variable(said, name);
    if (found != nullptr) return model::gpus_in(*found);
  }
  return static_cast<int>(gpus.size());
}

void erase_variable(std::vector<std::string>& environment, const std::string& name) {
  const std::string begins = name + "=";
  std::erase_if(environment,
                [&begins](const std::string& variable) { return variable.starts_with(begins); });
}

/// The common part of tasks of one shape, for a group with `preload`.
struct OfShape {
  const std::string& run_directory;
  std::vector<std::string> environment;
};

/// Sets the arguments to exec, and the variables that they need.
void set_program(const TaskTexts& texts, OfShape shape, model::Launch& launch) {
  Program program = program_of(texts, launch.ranks);
  if (!texts.group.preload.empty()) {
    launch.preload.environment = std::move(shape.environment);
    add_preload(texts, shape.run_directory, program, launch);
  }
  for (const auto& [name, value] : program.variables) {
    launch.environment.push_back(fmt::format("{}={}", name, value));
  }
  launch.arguments = std::move(program.arguments);
}

}  // namespace

void Job::State::add_caps(const Bound& bound, const Variables& said, const model::Shape& shape,
                          const model::Grant& grant, model::Launch& launch) const {
  const Cappers cappers = cappers_of(bound, said, launch.working_directory);
  for (const auto& [variable, value] : caps_for(cappers, shape, grant)) {
    // The value includes what the user has set in this variable.
    erase_variable(launch.environment, variable);
    launch.environment.push_back(fmt::format("{}={}", variable, value));
  }
  launch.capped_by = to_text(cappers);
}

std::string Job::State::place_of(const std::string& directory) const {
  return code_copy ? code_copy->place_of(directory) : directory;
}

std::string Job::State::working_directory_of(const Bound& bound) const {
  const Text* const directory = said(*bound.group, *bound.task, TaskKey::WorkingDirectory);
  if (directory == nullptr) return place_of(paths.directory);
  const std::string place = absolute_path(directory->text.fill(bound.bindings), paths.directory);
  if (moved_directory && place == moved_directory->was) return place_of(moved_directory->is);
  return place_of(place);
}

void Job::work_in(run::CodeCopy copy) { state_->code_copy = std::move(copy); }

const std::optional<run::CodeCopy>& Job::code_copy() const { return state_->code_copy; }

model::Launch Job::launch(model::AttemptKey key, const model::Grant& grant,
                          const ResultOf& result_of) const {
  State::Bound bound = state_->bind(key.task);
  bound.elsewhere = grant.elsewhere;
  const TaskSpec& task = *bound.task;
  const GroupSpec& group = *bound.group;
  const model::Shape& shape = state_->plan->shape_of(key.task);
  const std::string run_directory = grant.elsewhere.place_of(state_->paths.run_directory);
  model::Launch launch;
  set_files(launch, grant.elsewhere.place_of(state_->directory_of(bound)), key.attempt);
  launch.run_directory = run_directory;
  bound.bindings[kTaskDirSlot] = launch.task_directory;
  bound.bindings[kRunDirSlot] = run_directory;
  if (auto why = state_->bind_needs(key.task, bound, result_of)) {
    launch.cannot_start = std::move(*why);
  } else if (auto not_plain = state_->why_not_plain(bound)) {
    launch.cannot_start = std::move(*not_plain);
  }

  launch.needed_directories = bound.named_directories;
  launch.working_directory = grant.elsewhere.place_of(state_->working_directory_of(bound));
  const std::optional<run::CodeCopy>& copy = state_->code_copy;
  if (copy && launch.cannot_start.empty() && lies_in(launch.working_directory, copy->path)) {
    launch.cannot_start = copy->reason_to_refuse().value_or("");
  }
  const Variables said = said_variables(group, task, bound.bindings);
  const auto add = [&launch](std::string_view name, std::string_view value) {
    launch.environment.push_back(fmt::format("{}={}", name, value));
  };
  std::vector<std::string> common;  // The part that all tasks of this shape share.
  const auto add_unless_set = [&](std::string_view name, std::string_view value) {
    if (find_variable(said, name) || find_variable(state_->environment, name)) return;
    add(name, value);
    common.push_back(launch.environment.back());
  };
  for (const auto& [name, value] : own_variables(
           {.group = group.name, .id = bound.id, .attempt = key.attempt, .round = group.round},
           launch, run_directory)) {
    add(name, value);
  }
  launch.two_phase = shape.terms.two_phase;
  launch.passes_term_on = shape.terms.workers > 0;
  launch.term_to_all = sends_term_to_all(group, task);
  launch.ranks = shape.terms.ranks;
  if (launch.ranks > 0 && !launcher_of(group, task)) {
    launch.own_ranks =
        model::OwnRanks{.gpus = gpus_of_ranks(shape, said, grant.gpus),
                        .log_paths = logs_of_ranks(launch, launch.ranks, key.attempt)};
  }
  for (const auto& [name, value] :
       thread_variables(shape.terms.request, model::processes_of(shape.terms))) {
    add_unless_set(name, value);
  }
  add_unless_set("PYTHONUNBUFFERED", "1");
  const std::vector<model::Gpu>& of_machine =
      grant.of_machine.empty() ? state_->capacity.gpus : grant.of_machine;
  const std::string* pipes = find_variable(said, hardware::kMpsPipes);
  if (pipes == nullptr) pipes = find_variable(state_->environment, hardware::kMpsPipes);
  const bool is_renumbered =
      !grant.gpus_answer ||
      (shape.terms.request.gpus > 0 &&
       hardware::find_mps(pipes == nullptr ? hardware::kMpsDirectory : *pipes).has_value());
  for (const auto& [name, value] :
       gpu_variables(of_machine, shape, grant.gpus, naming_of_gpus(said, is_renumbered))) {
    if (!find_variable(said, name)) add(name, value);
  }
  if (shape.terms.request.gpu_memory > Bytes{} || shape.terms.learns_gpu_memory) {
    // Both take all there is when they begin, where others are to have their share.
    add_unless_set("TF_FORCE_GPU_ALLOW_GROWTH", "true");
    add_unless_set("XLA_PYTHON_CLIENT_PREALLOCATE", "false");
  }
  for (const auto& [name, value] : said) {
    add(name, value);
    launch.user_variables.push_back(launch.environment.back());
  }
  if (grant.memory_max > Bytes{}) state_->add_caps(bound, said, shape, grant, launch);
  const std::string trainyard = grant.program.empty() ? own_program() : grant.program;
  set_program({.group = group,
               .task = task,
               .bindings = bound.bindings,
               .lists = bound.lists,
               .trainyard = trainyard},
              {.run_directory = run_directory, .environment = std::move(common)}, launch);
  return launch;
}

std::optional<WrittenCommand> Job::written_command(model::TaskIndex task) const {
  State::Bound bound = state_->bind(task);
  const GroupSpec& group = *bound.group;
  const TaskSpec& spec = *bound.task;
  if (!spec.in_shell) return std::nullopt;
  bound.bindings[kTaskDirSlot] = state_->directory_of(bound);
  bound.bindings[kRunDirSlot] = state_->paths.run_directory;
  const text::Template& text = spec.arguments.front();
  WrittenCommand written{.variables = text.command(bound.bindings).variables};
  if (written.variables.empty()) return std::nullopt;
  if (text.first_in_document()) return written;
  const int ranks = state_->plan->shape_of(task).terms.ranks;
  const std::string trainyard = own_program();
  written.arguments = starter_of({.group = group,
                                  .task = spec,
                                  .bindings = bound.bindings,
                                  .lists = bound.lists,
                                  .trainyard = trainyard},
                                 ranks);
  std::ranges::move(shell_words(spec, text.fill(bound.bindings)),
                    std::back_inserter(*written.arguments));
  return written;
}

namespace {

/// Stands for memory and CPUs in a fingerprint: a task computes the same with more or less of them.
constexpr std::int64_t kAnyAmount = -1;

}  // namespace

Workers Job::workers(model::TaskIndex task) const {
  const State::Bound bound = state_->bind(task);
  return workers_of(*bound.group, *bound.task, bound.bindings);
}

std::uint64_t Job::fingerprint(model::TaskIndex task) const {
  State::Bound bound = state_->bind(task);
  const TaskSpec& spec = *bound.task;
  const GroupSpec& group = *bound.group;
  // A run directory that was moved is the same run.
  bound.bindings[kTaskDirSlot] = "{task_dir}";
  bound.bindings[kRunDirSlot] = "{run_dir}";
  Fingerprint print;
  print.add(runner_of(spec));
  for (const std::string& word : filled_command(spec, bound.bindings)) print.add(word);
  print.add("env");
  for (const auto& [name, value] : said_variables(group, spec, bound.bindings)) {
    print.add(name);
    print.add(value);
  }
  const Text* const directory = said(group, spec, TaskKey::WorkingDirectory);
  print.add("directory");
  print.add(directory != nullptr ? directory->text.fill(bound.bindings) : "");
  print.add(kAnyAmount);
  print.add(kAnyAmount);
  if (const Text* const device = said(group, spec, TaskKey::Device)) {
    print.add("device");
    print.add(device->text.fill(bound.bindings));
  }
  print.add(said_number(said(group, spec, TaskKey::Gpus), bound.bindings, settings::parse_count,
                        [](int value) { return std::int64_t{value}; }));
  print.add(kAnyAmount);
  if (const int ranks = state_->plan->shape_of(task).terms.ranks; ranks > 0) {
    print.add("ranks");
    print.add(std::int64_t{ranks});
    const Text* const launcher = said(group, spec, TaskKey::Launcher);
    print.add(launcher != nullptr ? launcher->text.text() : "built-in");
  }
  if (const Workers workers = workers_of(group, spec, bound.bindings); workers.count > 0) {
    print.add("workers");
    print.add(to_text(workers));
  }
  return print.value();
}

}  // namespace trainyard::job
