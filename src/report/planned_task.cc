#include "report/planned_task.h"

#include <algorithm>
#include <iterator>
#include <map>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/list_text.h"
#include "job/gpu_caps.h"
#include "model/terms.h"
#include "schedule/scheduler.h"
#include "settings/configuration.h"
#include "settings/machine_entries.h"
#include "text/shell_quote.h"

namespace trainyard::report {
namespace {

std::string command_line(const std::vector<std::string>& arguments) {
  std::vector<std::string> words;
  words.reserve(arguments.size());
  for (const std::string& argument : arguments) words.push_back(text::shell_word(argument));
  return fmt::format("{}", fmt::join(words, " "));
}

}  // namespace

std::optional<job::WrittenCommand> written_command(const job::Job& job, model::TaskIndex task,
                                                   const model::Launch& launch) {
  return launch.preload.modules.empty() ? job.written_command(task) : std::nullopt;
}

CommandLines command_lines(const model::Launch& launch,
                           const std::optional<job::WrittenCommand>& written) {
  const std::string runs = command_line(launch.arguments);
  if (!written) return {.command = runs};
  std::string assigned;
  for (const auto& [name, value] : written->variables) {
    assigned += fmt::format("{}={} ", name, text::shell_word(value));
  }
  if (!written->arguments) return {.command = assigned + runs};
  return {.command = command_line(*written->arguments), .runs_as = assigned + runs};
}

std::vector<std::string> environment_of(const job::Job& job, model::TaskIndex task,
                                        const model::Launch& launch) {
  std::vector<std::string> environment = launch.environment;
  if (!job::is_capped_at_start(job.plan().shape_of(task).terms)) return environment;
  for (const auto& [name, value] : job::cap_variables(job.cappers(task), std::nullopt)) {
    // The value includes what the user has set in this variable.
    const std::string begins = name + "=";
    std::erase_if(environment,
                  [&begins](const std::string& variable) { return variable.starts_with(begins); });
    environment.push_back(begins + value);
  }
  return environment;
}

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

std::vector<std::string> notes_of(const job::Job& job, const ResumedPlan* resumed) {
  std::vector<std::string> notes = job.notes();
  std::vector<std::string> machines;
  for (const settings::MachineEntry& machine : settings::machines(job.configuration())) {
    if (machine.is_reached_by_ssh()) machines.push_back("machine " + machine.host);
    if (machine.host == "slurm") machines.emplace_back("the nodes of Slurm");
  }
  if (!machines.empty()) {
    notes.push_back(
        fmt::format("not checked: {} (a dry run connects to no machine)", list_text(machines)));
  }
  if (resumed != nullptr) std::ranges::copy(resumed->notes, std::back_inserter(notes));
  return notes;
}

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

}  // namespace trainyard::report
