#include "cli/machine_checks.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <expected>
#include <filesystem>
#include <span>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/list_text.h"
#include "base/nearest.h"
#include "base/path_name.h"
#include "model/ids.h"
#include "model/plan.h"
#include "process/start_failure.h"
#include "report/terminal_text.h"
#include "run/machine_look.h"
#include "run/remote_machines.h"
#include "schedule/fits_nowhere.h"
#include "settings/configuration.h"
#include "sys/files.h"

namespace trainyard::cli {
namespace {

using State = MachineCheck::State;

/// With less a run cannot even say what becomes of it.
constexpr Bytes kDiskLeast = mb(100);
/// From this difference on, times of files written there mislead people. Nothing else depends on
/// it.
constexpr Duration kClockApart{2'000};

/// The path itself where it exists, or the lowest directory above it that does.
std::string what_is_there(const std::string& path) {
  std::filesystem::path there = path;
  while (!sys::exists(there) && there.has_relative_path()) {
    there = there.parent_path();
  }
  return there.string();
}

bool fits(const job::Job& job, model::ShapeIndex shape, const model::NamedMachine& machine) {
  const model::Request& request = job.plan().shapes.at(shape.value).terms.request;
  return !schedule::fits_nowhere(request, job.policy(), std::span(&machine, 1));
}

MachineCheck directory_check(const MachineQuestion& question, const wire::AgentSeen& seen) {
  const std::string& wrong = seen.no_directory.empty() ? seen.no_file : seen.no_directory;
  if (!wrong.empty()) return {.name = "directory", .state = State::Bad, .says = wrong};
  return {.name = "directory", .says = question.look.directory};
}

/// A program that another task may make is a warning where it does not exist yet.
MachineCheck programs_check(const MachineQuestion& question, const wire::AgentSeen& seen) {
  MachineCheck check{.name = "programs"};
  std::vector<std::string> names;
  std::vector<std::string> wrong;
  for (std::size_t i = 0; i < question.programs.size(); ++i) {
    const job::ProgramOfTasks& program = question.programs[i];
    const std::string& name = program.program.name;
    const std::string& why_not = seen.programs[i].why_not;
    if (!why_not.empty()) {
      wrong.push_back(fmt::format("{} (task {}{})", why_not, program.first_task,
                                  program.comes_later ? ", unless another task makes it" : ""));
      if (!program.comes_later) check.state = State::Bad;
      if (check.state == State::Good) check.state = State::Warning;
    } else if (!name.empty() && std::ranges::find(names, name) == names.end()) {
      names.push_back(name);
    }
  }
  const bool none = names.empty() && wrong.empty();
  check.says = none ? "nothing to check"
                    : fmt::format("{}", fmt::join(wrong.empty() ? names : wrong,
                                                  wrong.empty() ? ", " : "; "));
  return check;
}

/// Nothing if no task imports modules.
std::optional<MachineCheck> imports_check(const MachineQuestion& question,
                                          const wire::AgentSeen& seen) {
  MachineCheck check{.name = "imports"};
  std::vector<std::string> names;
  std::vector<std::string> wrong;
  for (std::size_t i = 0; i < question.programs.size(); ++i) {
    const wire::SoughtProgram& sought = question.look.programs[i];
    const wire::FoundProgram& found = seen.programs[i];
    if (sought.modules.empty() || !found.why_not.empty()) continue;
    for (const std::string& name : sought.modules) {
      if (std::ranges::find(names, name) == names.end()) names.push_back(name);
    }
    for (const std::string& name : found.missing) {
      wrong.push_back(fmt::format("{} does not find the module '{}'", sought.name, name));
      check.state = State::Bad;
    }
    if (found.cannot_ask.empty()) continue;
    wrong.push_back(fmt::format("not known: {}", found.cannot_ask));
    check.state = std::max(check.state, State::Warning);
  }
  if (names.empty()) return std::nullopt;
  check.says =
      fmt::format("{}", fmt::join(wrong.empty() ? names : wrong, wrong.empty() ? ", " : "; "));
  return check;
}

MachineCheck disk_check(const MachineQuestion& question, const wire::AgentSeen& seen) {
  MachineCheck check{.name = "disk", .says = to_text(seen.disk_free) + " free"};
  if (seen.disk_free < question.disk_needed) {
    check.state = State::Bad;
    check.says += fmt::format(", a task needs {}", to_text(question.disk_needed));
  } else if (seen.disk_free < kDiskLeast) {
    check.state = State::Bad;
    check.says += fmt::format(", a run needs at least {}", to_text(kDiskLeast));
  } else if (seen.disk_free < question.log_max) {
    check.state = State::Warning;
    check.says += fmt::format(", and one log may take {} (limits.log)", to_text(question.log_max));
  }
  return check;
}

/// "script 'trian.py' not found (did you mean 'train.py'?)", if there is no such file, relative to
/// a directory. Empty if there is.
std::string why_no_script(const std::string& name, const std::string& directory) {
  const std::filesystem::path file = absolute_path(name, directory);
  std::error_code wrong;
  if (std::filesystem::exists(file, wrong) || wrong) return {};
  if (name.starts_with('~')) {
    return fmt::format("script '{}' not found: {}", name, process::kTildeWithoutShell);
  }
  std::vector<std::string> names = sys::names_in(file.parent_path().string());
  const std::string ending = file.extension().string();
  std::erase_if(names, [&ending](const std::string& each) { return !each.ends_with(ending); });
  std::ranges::sort(names);
  const std::vector<std::string_view> others(names.begin(), names.end());
  const std::optional<std::string_view> near = nearest(file.filename().string(), others);
  if (!near) return fmt::format("script '{}' not found", name);
  return fmt::format("script '{}' not found (did you mean '{}'?)", name,
                     std::filesystem::path(name).replace_filename(*near).string());
}

/// True if the script is on PATH, where bash looks for a name without '/' that is not in the
/// directory. So does sh where it is bash.
bool is_on_path(const std::string& script, wire::SoughtProgram shell) {
  if (!script.ends_with(".sh") || script.contains('/')) return false;
  shell.name = script;
  std::error_code wrong;
  return std::ranges::any_of(run::places_of(shell), [&](const std::string& place) {
    return std::filesystem::is_regular_file(absolute_path(place, shell.directory), wrong);
  });
}

}  // namespace

std::string_view word_of(MachineCheck::State state) {
  switch (state) {
    case State::Good:
      return "ok";
    case State::Warning:
      return "!!";
    case State::Bad:
      return "NO";
  }
  return {};
}

MachineQuestion question_about(const std::string& directory, const model::Elsewhere& elsewhere) {
  MachineQuestion question;
  const std::string& own = elsewhere.work.there;
  question.look.directory = own.empty() ? what_is_there(directory) : own;
  return question;
}

MachineQuestion question_about(const JobQuestion& asked) {
  const job::Job& job = asked.job;
  MachineQuestion question = question_about(job.paths().run_directory, asked.elsewhere);
  question.log_max = settings::log_max(job.configuration());
  for (const model::Shape& shape : job.plan().shapes) {
    question.disk_needed = std::max(question.disk_needed, shape.terms.request.disk);
  }
  for (job::ProgramOfTasks& each : job.programs()) {
    const bool is_for_it = std::ranges::any_of(
        each.shapes, [&](model::ShapeIndex shape) { return fits(job, shape, asked.machine); });
    if (!is_for_it) continue;
    question.look.programs.push_back(each.program);
    wire::SoughtProgram& sought = question.look.programs.back();
    sought.directory = asked.elsewhere.place_of(sought.directory);
    sought.import_directory = asked.elsewhere.place_of(sought.import_directory);
    if (!asked.with_imports) sought.modules.clear();
    question.programs.push_back(std::move(each));
  }
  return question;
}

std::vector<MachineCheck> checks_of(const MachineQuestion& question, const wire::AgentSeen& seen) {
  std::vector<MachineCheck> checks{directory_check(question, seen)};
  // The answer of an agent, which is another program, may not match the question.
  if (seen.programs.size() == question.programs.size()) {
    if (!question.programs.empty()) checks.push_back(programs_check(question, seen));
    if (auto imports = imports_check(question, seen)) checks.push_back(std::move(*imports));
  }
  // The disk of a directory that does not exist yet is not known.
  if (seen.no_directory.empty()) checks.push_back(disk_check(question, seen));
  return checks;
}

MachineCheck check_of_sync(const std::string& why) {
  return {.name = "sync",
          .state = why.empty() ? State::Good : State::Bad,
          .says = why.empty() ? "rsync reaches it" : why};
}

MachineCheck check_of_gpus(const model::Capacity& capacity) {
  MachineCheck check{.name = "GPUs"};
  for (const model::Gpu& gpu : capacity.gpus) {
    check.says += fmt::format(
        "{}{} {}", check.says.empty() ? "" : ", ", gpu.label(),
        gpu.late ? "DOES NOT ANSWER" : fmt::format("{} ({})", gpu.name, to_text(gpu.memory)));
    if (gpu.late) check.state = State::Warning;
  }
  if (capacity.gpus.empty()) {
    const std::string& reason = capacity.no_gpus_reason;
    check.says = reason.empty() ? "none" : fmt::format("none: {}", reason);
  }
  return check;
}

std::optional<MachineCheck> check_of_tasks(const job::Job& job,
                                           const std::vector<model::NamedMachine>& machines) {
  for (const model::Shape& shape : job.plan().shapes) {
    const auto misfit = schedule::fits_nowhere(shape.terms.request, job.policy(), machines);
    if (!misfit) continue;
    return MachineCheck{
        .name = "tasks",
        .state = State::Bad,
        .says = fmt::format("group '{}': {}", job.plan().groups.at(shape.group.value).shown(),
                            misfit->why)};
  }
  return std::nullopt;
}

/// Its agent has applied the limits already: less than the configured amount is all there is.
std::optional<MachineCheck> check_of_limits(const settings::MachineEntry& said,
                                            const model::Capacity& capacity) {
  if (!said.cpus && !said.memory && said.gpus.empty()) return std::nullopt;
  std::vector<std::string> wrong;
  if (said.cpus && *said.cpus > capacity.cpus) {
    wrong.push_back(fmt::format("it has only {:.4g} CPUs", model::as_number(capacity.cpus)));
  }
  if (said.memory && *said.memory > capacity.memory) {
    wrong.push_back(fmt::format("it has only {} of memory", to_text(capacity.memory)));
  }
  for (const std::string& card :
       settings::parse_cards(said.gpus).value_or(std::vector<std::string>())) {
    const bool is_there = std::ranges::any_of(
        capacity.gpus, [&card](const model::Gpu& gpu) { return model::is_called(gpu, card); });
    if (!is_there) wrong.push_back(fmt::format("it has no GPU {}", card));
  }
  if (wrong.empty()) return MachineCheck{.name = "limits", .says = "as 'machines' says"};
  return MachineCheck{.name = "limits",
                      .state = MachineCheck::State::Warning,
                      .says = fmt::format("{}", fmt::join(wrong, "; "))};
}

MachineCheck check_of_clock(Duration ahead) {
  const double seconds = std::chrono::duration<double>(ahead).count();
  const bool near = std::chrono::abs(ahead) < kClockApart;
  return {.name = "clock",
          .state = near ? State::Good : State::Warning,
          .says = near ? std::string("as here")
                       : fmt::format("{:.0f} s {} the clock here", std::abs(seconds),
                                     seconds > 0 ? "ahead of" : "behind")};
}

std::vector<MissingProgram> missing_programs(const job::Job& job,
                                             const std::set<std::string>& only) {
  std::vector<MissingProgram> missing;
  if (!runs_only_here(job.configuration())) return missing;
  for (job::ProgramOfTasks& each : job.programs(only)) {
    const std::string& directory = each.program.directory;
    const auto add = [&](const std::string& tasks, const std::string& why, bool comes_later) {
      const char* const unless = comes_later ? ", unless a task that it waits for makes it" : "";
      missing.push_back(
          {.text = report::plain(fmt::format("{} in '{}': {}{}", tasks, directory, why, unless)),
           .comes_later = comes_later});
    };
    // Importing them may take seconds, and nothing is to be started.
    each.program.modules.clear();
    const wire::FoundProgram found = run::look_for_program(each.program);
    if (!found.why_not.empty()) {
      add("task " + each.first_task, found.why_not, each.comes_later);
      continue;
    }
    for (const job::ScriptOfTasks& script : each.scripts) {
      const std::string why = why_no_script(script.name, directory);
      if (why.empty() || is_on_path(script.name, each.program)) continue;
      const std::size_t all = job.plan().tasks.size();
      const bool is_of_all = all > 1 && script.tasks == all;
      add(is_of_all ? all_tasks_text(all) : "task " + script.first_task, why, script.comes_later);
    }
  }
  return missing;
}

Result<void> look_before_run(const RunMachines& machines, const job::Job& job,
                             const model::Capacity& here) {
  if (!machines.remotes) return {};
  const std::vector<model::NamedMachine> all = machines.all(here);
  std::vector<MachineQuestion> questions;
  std::vector<wire::AgentLook> looks;
  const std::size_t first = machines.runs_here ? 1 : 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const bool is_other = i >= first;
    const model::Elsewhere elsewhere =
        is_other ? machines.remotes->at(i - first).grant().elsewhere : model::Elsewhere();
    questions.push_back(question_about({.job = job, .machine = all[i], .elsewhere = elsewhere}));
    looks.push_back(questions.back().look);
  }
  std::vector<wire::AgentSeen> seen;
  if (machines.runs_here) {
    seen.push_back(run::look_at_machine(looks.front()));
    looks.erase(looks.begin());
  }
  const std::size_t others = looks.size();
  if (Result<void> looked = machines.remotes->look(std::move(looks)); !looked) return looked;
  for (std::size_t i = 0; i < others; ++i) seen.push_back(*machines.remotes->at(i).seen());
  Error wrong;
  for (std::size_t i = 0; i < all.size(); ++i) {
    for (const MachineCheck& each : checks_of(questions[i], seen[i])) {
      if (each.state != State::Bad) continue;
      wrong.add(fmt::format("{}: {}: {}", all[i].name, each.name, report::plain(each.says)));
    }
  }
  if (wrong.message.empty()) return {};
  return std::unexpected(std::move(wrong));
}

}  // namespace trainyard::cli
