// The programs that the tasks of a job are to run: Job::programs().
#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "base/path_name.h"
#include "job/job.h"
#include "job/job_state.h"
#include "text/file_name.h"
#include "text/python_command.h"

namespace trainyard::job {
namespace {

/// The variables that decide the meaning of a word as a program, and the files that it finds.
constexpr std::array<std::string_view, 7> kFindBy{
    "PATH",       "HOME",           "LD_LIBRARY_PATH", "PYTHONPATH",
    "PYTHONHOME", "PYTHONUSERBASE", "PYTHONNOUSERSITE"};

/// Number of tasks of a group whose programs are looked for. The tasks of a matrix differ in the
/// values of placeholders, which are hardly ever the program.
constexpr std::size_t kTasksOfGroup = 200;
/// Number of programs of a job that are looked for.
constexpr std::size_t kProgramsMax = 256;

/// Interpreters, and how the names of their scripts end.
constexpr std::array<std::pair<std::string_view, std::string_view>, 7> kInterpreters{
    {{"python", ".py"},
     {"python3", ".py"},
     {"bash", ".sh"},
     {"sh", ".sh"},
     {"node", ".js"},
     {"julia", ".jl"},
     {"Rscript", ".R"}}};

/// The words of a command; none where only a shell knows them.
std::vector<std::string> words_of(const TaskSpec& task, const text::Bindings& bindings) {
  std::vector<std::string> words;
  for (const text::Template& argument : task.arguments) words.push_back(argument.fill(bindings));
  if (!task.in_shell) return words;
  return text::words_of_command(words.front()).value_or(std::vector<std::string>());
}

/// "train.py" of "python3 train.py --lr 1"; empty if a command does not begin like that. Also empty
/// for a script in the run, where tasks make files: it need not exist beforehand.
std::string script_of(const std::vector<std::string>& words, const std::string& directory,
                      const JobPaths& paths) {
  if (words.size() < 2 || words[1].starts_with('-')) return {};
  const std::string_view program = std::string_view(words[0]).substr(words[0].rfind('/') + 1);
  const auto known = std::ranges::find(kInterpreters, program,
                                       &std::pair<std::string_view, std::string_view>::first);
  if (known == kInterpreters.end() || !words[1].ends_with(known->second)) return {};
  const bool is_of_run = lies_in(directory, paths.run_directory) ||
                         lies_in(absolute_path(words[1], directory), paths.run_directory);
  return is_of_run ? std::string() : words[1];
}

/// The script of that name, which is added for `task` where it is new; nothing where there are too
/// many.
ScriptOfTasks* script_in(std::vector<ScriptOfTasks>& scripts, const std::string& name,
                         const std::string& task) {
  const auto found = std::ranges::find(scripts, name, &ScriptOfTasks::name);
  if (found != scripts.end()) return &*found;
  if (scripts.size() == kProgramsMax) return nullptr;
  return &scripts.emplace_back(ScriptOfTasks{.name = name, .first_task = task});
}

/// Adds the modules that its Python is to import beforehand, and their source; nothing if the
/// command does not run Python after all.
void add_modules(const GroupSpec& group, const std::vector<std::string>& words,
                 wire::SoughtProgram& sought) {
  if (group.preload.empty()) return;
  const Result<text::PythonCommand> python = text::read_python_command(words);
  if (!python) return;
  sought.name = python->arguments.front();
  sought.modules = group.preload;
  if (!python->directory.empty()) {
    sought.import_directory = absolute_path(python->directory, sought.directory);
  }
}

/// If a program starts in a directory that the run makes, the search starts from the job file's
/// directory. Nothing: the program itself is in such a directory.
std::optional<wire::SoughtProgram> not_in_run(wire::SoughtProgram sought, const JobPaths& paths) {
  const std::string file =
      sought.name.contains('/') ? absolute_path(sought.name, sought.directory) : "";
  if (lies_in(file, paths.run_directory)) return std::nullopt;
  if (lies_in(sought.directory, paths.run_directory)) sought.directory = paths.directory;
  return sought;
}

}  // namespace

std::optional<ProgramOfTasks> Job::State::program_of(model::TaskIndex task) const {
  Bound bound = bind(task);
  bound.bindings[kTaskDirSlot] = directory_of(bound);
  bound.bindings[kRunDirSlot] = paths.run_directory;
  wire::SoughtProgram sought;
  sought.name = first_word(*bound.task, bound.bindings);
  sought.by_shell = bound.task->in_shell;
  sought.directory = working_directory_of(bound);
  for (const auto& [variable, value] : said_variables(*bound.group, *bound.task, bound.bindings)) {
    if (std::ranges::find(kFindBy, variable) == kFindBy.end()) continue;
    sought.environment.push_back(fmt::format("{}={}", variable, value));
  }
  const std::vector<std::string> words = words_of(*bound.task, bound.bindings);
  add_modules(*bound.group, words, sought);
  std::string script = script_of(words, sought.directory, paths);
  std::optional<wire::SoughtProgram> program = not_in_run(std::move(sought), paths);
  if (!program) return std::nullopt;
  ProgramOfTasks found{.program = *std::move(program)};
  if (!script.empty()) found.scripts.push_back({.name = std::move(script)});
  return found;
}

std::vector<ProgramOfTasks> Job::programs(const std::set<std::string>& only) const {
  const model::Plan& plan = *state_->plan;
  std::vector<std::size_t> looked_at(plan.groups.size());
  std::vector<ProgramOfTasks> all;
  for (std::uint32_t i = 0; i < plan.tasks.size(); ++i) {
    const model::ShapeIndex shape = plan.tasks[i].shape;
    const model::GroupIndex index = plan.shapes[shape.value].group;
    const model::PlannedGroup& planned = plan.groups[index.value];
    if (!plan.tasks[i].is_open()) continue;
    const std::string name = fmt::format("{}/{}", planned.shown(), task_id({i}));
    if (!only.empty() && !only.contains(name)) continue;
    if (++looked_at[index.value] > kTasksOfGroup) continue;
    const std::optional<ProgramOfTasks> sought = state_->program_of({i});
    if (!sought) continue;
    auto found = std::ranges::find(all, sought->program, &ProgramOfTasks::program);
    if (found == all.end() && all.size() == kProgramsMax) continue;
    if (found == all.end()) {
      all.push_back({.program = sought->program, .first_task = name});
      found = all.end() - 1;
    }
    if (std::ranges::find(found->shapes, shape) == found->shapes.end()) {
      found->shapes.push_back(shape);
    }
    const bool waits =
        !planned.needs.empty() || !planned.needs_earlier.empty() || !planned.needs_by_task.empty();
    found->comes_later = found->comes_later && waits;
    for (const ScriptOfTasks& script : sought->scripts) {
      ScriptOfTasks* const known = script_in(found->scripts, script.name, name);
      if (known == nullptr) continue;
      known->comes_later = known->comes_later && waits;
      ++known->tasks;
    }
  }
  return all;
}

}  // namespace trainyard::job
