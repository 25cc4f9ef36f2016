#include "cli/outer_task.h"

#include <algorithm>
#include <cstddef>
#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/result.h"
#include "cli/known_runs.h"
#include "journal/reader.h"
#include "model/resources.h"
#include "run/run_directory.h"
#include "schedule/outer_task.h"
#include "sys/environment.h"

namespace trainyard::cli {
namespace {

std::vector<std::string> labels_in(std::string_view gpus) {
  std::vector<std::string> labels;
  while (!gpus.empty()) {
    const std::size_t comma = std::min(gpus.find(','), gpus.size());
    labels.emplace_back(gpus.substr(0, comma));
    gpus.remove_prefix(std::min(comma + 1, gpus.size()));
  }
  return labels;
}

/// Reads what the task holds that counts for a run on this machine. The ledger leaves out what a
/// run holds of a machine that is larger for it: this one may be in a control group of the task.
std::optional<schedule::OuterTask> read_outer_task(const OuterTaskName& outer,
                                                   const model::Capacity& here) {
  auto reader = journal::JournalReader::open(run::journal_path(outer.run_directory));
  if (!reader) return std::nullopt;
  const auto row = reader->find(outer.group, outer.id);
  const auto machines = reader->machines();
  if (!row || !*row || !machines) return std::nullopt;
  const journal::TaskRow& task = **row;
  // The start of a task that has just begun may not be in the journal yet, and so its machine.
  const auto machine = machines->size() == 1
                           ? machines->begin()
                           : std::ranges::find(*machines, task.machine, &journal::MachineRow::name);
  if (machine == machines->end()) return std::nullopt;
  schedule::OuterTask found{
      .name = fmt::format("{}/{} of {}", outer.group, outer.id, name_of_run(outer.run_directory)),
      .cpus = {},
      .memory = {},
      .gpus = labels_in(task.gpus),
      .gpu_memory = task.gpu_memory_requested};
  const bool counts_cpus = machine->cpus > model::Cpus{} && machine->cpus <= here.cpus;
  const bool counts_memory = machine->memory > Bytes{} && machine->memory <= here.memory;
  if (counts_cpus) found.cpus = task.cpus_requested;
  if (counts_memory) found.memory = task.memory_requested;
  return found;
}

}  // namespace

std::optional<OuterTaskName> outer_task_name() {
  if (!sys::is_in_task()) return std::nullopt;
  std::optional<std::string> directory = sys::variable("TRAINYARD_RUN_DIR");
  std::optional<std::string> group = sys::variable("TRAINYARD_GROUP");
  std::optional<std::string> id = sys::variable("TRAINYARD_TASK_ID");
  if (!directory || !group || !id) return std::nullopt;
  return OuterTaskName{
      .run_directory = *std::move(directory), .group = *std::move(group), .id = *std::move(id)};
}

Result<void> check_fits_beside(const OuterTaskName& outer, const job::Job& job,
                               const model::Capacity& here) {
  const std::optional<schedule::OuterTask> task = read_outer_task(outer, here);
  if (!task) return {};
  const auto why = schedule::waits_for_outer_task(job.plan(), job.policy(), here, *task);
  return why ? Result<void>(std::unexpected(Error{*why})) : Result<void>();
}

}  // namespace trainyard::cli
