// What programs the tasks of a job are to run: Job::programs().
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/path_name.h"
#include "base/result.h"
#include "job/job.h"
#include "job/job_binding.h"
#include "job/job_spec.h"
#include "job/job_state.h"
#include "job/sought_programs.h"
#include "job/task_environment.h"
#include "model/ids.h"
#include "model/plan.h"
#include "text/file_name.h"
#include "text/placeholder.h"
#include "text/python_command.h"
#include "wire/agent.h"

namespace trainyard::job {
namespace {

/// The variables that decide which program a word means, and what it finds.
constexpr std::array<std::string_view, 7> kFindBy{
    "PATH",       "HOME",           "LD_LIBRARY_PATH", "PYTHONPATH",
    "PYTHONHOME", "PYTHONUSERBASE", "PYTHONNOUSERSITE"};

/// Of a group so many tasks are looked at, which a matrix has made: what differs among them is what
/// stands in its placeholders, and that is hardly ever the program.
constexpr std::size_t kTasksOfGroup = 200;
/// Of a job: more are not looked for.
constexpr std::size_t kProgramsMax = 256;

/// What its Python is to import beforehand, and from where; nothing where the command is no
/// Python's after all.
void add_modules(const GroupSpec& group, const TaskSpec& task, const text::Bindings& bindings,
                 wire::SoughtProgram& sought) {
  if (group.preload.empty()) return;
  std::vector<std::string> words;
  for (const text::Template& argument : task.arguments) words.push_back(argument.fill(bindings));
  const Result<text::PythonCommand> python = task.in_shell
                                                 ? text::read_python_command(words.front())
                                                 : text::read_python_command(std::move(words));
  if (!python) return;
  sought.name = python->arguments.front();
  sought.modules = group.preload;
  if (!python->directory.empty()) {
    sought.import_directory = text::absolute_path(sought.directory, python->directory);
  }
}

/// Where it is started in what the run makes, it is looked for from where the job file is. Nothing:
/// it is in there itself.
std::optional<wire::SoughtProgram> not_in_run(wire::SoughtProgram sought, const JobPaths& paths) {
  const std::string file =
      sought.name.contains('/') ? text::absolute_path(sought.directory, sought.name) : "";
  if (lies_in(file, paths.run_directory)) return std::nullopt;
  if (lies_in(sought.directory, paths.run_directory)) sought.directory = paths.directory;
  return sought;
}

}  // namespace

std::optional<wire::SoughtProgram> Job::State::program_of(model::TaskIndex task) const {
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
  add_modules(*bound.group, *bound.task, bound.bindings, sought);
  return not_in_run(std::move(sought), paths);
}

std::vector<ProgramOfTasks> Job::programs() const {
  const model::Plan& plan = *state_->plan;
  std::vector<std::size_t> looked_at(plan.groups.size());
  std::vector<ProgramOfTasks> all;
  for (std::uint32_t i = 0; i < plan.tasks.size(); ++i) {
    const model::ShapeIndex shape = plan.tasks[i].shape;
    const model::GroupIndex index = plan.shapes[shape.value].group;
    const model::PlannedGroup& planned = plan.groups[index.value];
    if (!plan.tasks[i].is_open() || ++looked_at[index.value] > kTasksOfGroup) continue;
    std::optional<wire::SoughtProgram> sought = state_->program_of({i});
    if (!sought) continue;
    auto found = std::ranges::find(all, *sought, &ProgramOfTasks::program);
    if (found == all.end() && all.size() == kProgramsMax) continue;
    if (found == all.end()) {
      all.push_back({.program = std::move(*sought),
                     .shapes = {},
                     .first_task = fmt::format("{}/{}", planned.shown(), task_id({i}))});
      found = all.end() - 1;
    }
    if (std::ranges::find(found->shapes, shape) == found->shapes.end()) {
      found->shapes.push_back(shape);
    }
    const bool waits =
        !planned.needs.empty() || !planned.needs_earlier.empty() || !planned.needs_by_task.empty();
    found->comes_later = found->comes_later && waits;
  }
  return all;
}

}  // namespace trainyard::job
