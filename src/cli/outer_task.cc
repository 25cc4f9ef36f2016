#include "cli/outer_task.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <optional>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "cli/checked_job.h"
#include "cli/known_runs.h"
#include "cli/queued_runs.h"
#include "cli/run_machines.h"
#include "hardware/process_owner.h"
#include "hardware/this_machine.h"
#include "job/job_files.h"
#include "journal/reader.h"
#include "queue/queue_files.h"
#include "run/run_directory.h"
#include "schedule/outer_task.h"
#include "sys/environment.h"
#include "sys/this_process.h"
#include "text/text_file.h"

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
  if (machine->cpus <= here.cpus) found.cpus = task.cpus_requested;
  if (machine->memory <= here.memory) found.memory = task.memory_requested;
  return found;
}

bool has_started_a_task(const std::string& run_directory) {
  Result<journal::JournalReader> reader =
      journal::JournalReader::open(run::journal_path(run_directory));
  const auto groups = reader ? reader->groups() : std::unexpected(reader.error());
  return groups && std::ranges::any_of(*groups, [](const journal::GroupRow& group) {
           return group.running + group.retrying + group.finished + group.failed + group.stopped >
                  0;
         });
}

/// Nothing where it cannot be read: its run says why.
std::optional<job::Job> job_of(queue::Submission submission, const model::Capacity& here) {
  const std::string& directory = submission.run_directory;
  const Result<std::string> text =
      text::read_text_file(run::kept_job_path(directory), sys::Links::RefuseAny);
  Result<job::JobFiles> files = kept_files_of(directory);
  if (!text || !files) return std::nullopt;
  auto job = job::Job::parse(*text,
                             {.job_file = std::move(submission.job_file),
                              .config_file = std::move(submission.config_file),
                              .settings = std::move(submission.settings),
                              .run_directory = directory,
                              .current_directory = std::move(submission.directory),
                              .environment = std::move(submission.environment),
                              .files = std::move(*files)},
                             here);
  return job ? std::optional(*std::move(job)) : std::nullopt;
}

}  // namespace

std::vector<OuterTaskName> outer_task_names() {
  std::vector<OuterTaskName> names;
  if (!sys::is_in_task()) return names;
  const auto add = [&names](OuterTaskName name) {
    const bool is_whole = !name.run_directory.empty() && !name.group.empty() && !name.id.empty();
    if (is_whole && std::ranges::find(names, name) == names.end()) names.push_back(std::move(name));
  };
  add({.run_directory = sys::variable("TRAINYARD_RUN_DIR").value_or(""),
       .group = sys::variable("TRAINYARD_GROUP").value_or(""),
       .id = sys::variable("TRAINYARD_TASK_ID").value_or("")});
  // A task does not inherit the variables of the task around its run. The process of the run was
  // started with them.
  for (const std::int64_t ancestor : hardware::ancestors_of(sys::own_pid())) {
    hardware::ProcessOwner owner = hardware::owner_of(ancestor);
    add({.run_directory = std::move(owner.run_directory),
         .group = std::move(owner.group),
         .id = std::move(owner.task)});
  }
  return names;
}

Result<void> check_fits_beside(const std::vector<OuterTaskName>& outer, const job::Job& job,
                               const model::Capacity& here) {
  std::vector<schedule::OuterTask> tasks;
  for (const OuterTaskName& name : outer) {
    if (auto task = read_outer_task(name, here)) tasks.push_back(*std::move(task));
  }
  const auto why = schedule::waits_for_outer_tasks(job.plan(), job.policy(), here, tasks);
  return why ? Result<void>(std::unexpected(Error{*why})) : Result<void>();
}

Result<void> check_submissions_fit_beside(const std::vector<OuterTaskName>& outer,
                                          const std::vector<std::string>& runs) {
  const sys::OwnEnvironment own;
  std::optional<model::Capacity> here;
  for (const std::string& run : runs) {
    std::optional<queue::Submission> submission = submission_in_queue(run);
    if (!submission || has_started_a_task(run)) continue;
    if (!here) here = hardware::find_this_machine().reading.capacity;
    const std::optional<job::Job> job = job_of(*std::move(submission), *here);
    if (!job || !runs_only_here(job->configuration())) continue;
    if (Result<void> fits = check_fits_beside(outer, *job, *here); !fits) {
      return std::unexpected(std::move(fits.error()).in(name_of_run(run)));
    }
  }
  return {};
}

}  // namespace trainyard::cli
