#include "library/program_run.h"

#include <algorithm>
#include <expected>
#include <utility>

#include <fmt/format.h>

#include "library/group_plan.h"
#include "model/status.h"
#include "run/active_run.h"
#include "run/begun.h"
#include "run/run_directory.h"
#include "run/yard_run.h"

namespace trainyard::library {

ProgramRun::ProgramRun(std::string directory, std::string name, sys::RunLock lock)
    : directory_(std::move(directory)), name_(std::move(name)), lock_(std::move(lock)) {}

Result<ProgramRun> ProgramRun::open(const std::string& directory, std::string name) {
  if (Result<void> made = sys::make_directories(directory); !made) {
    return std::unexpected(std::move(made.error()));
  }
  Result<sys::RunLock> lock = run::lock_run(directory);
  if (!lock) return std::unexpected(std::move(lock.error()));
  ProgramRun run(directory, std::move(name), std::move(*lock));
  const Result<bool> begun = run::has_begun(directory);
  if (!begun) return std::unexpected(begun.error());
  if (!*begun) return run;
  run.has_begun_ = true;
  if (Result<void> looked = run.look_into_journal(); !looked) {
    return std::unexpected(std::move(looked.error()));
  }
  if (Result<void> clear = run::clear_up(directory); !clear) {
    return std::unexpected(std::move(clear.error()));
  }
  return run;
}

Result<journal::JournalReader> ProgramRun::journal() const {
  return journal::JournalReader::open(run::journal_path(directory_));
}

Result<void> ProgramRun::look_into_journal() {
  Result<journal::JournalReader> reader = journal();
  if (!reader) return std::unexpected(std::move(reader.error()));
  const Result<std::vector<journal::ExecutionRow>> executions = reader->executions();
  if (!executions) return std::unexpected(executions.error());
  if (!executions->empty() && !executions->back().is_of_program()) {
    return std::unexpected(Error{fmt::format("'{}' contains the run of a job file, '{}'",
                                             directory_, executions->back().job_file)});
  }
  const Result<std::vector<journal::GroupRow>> groups = reader->groups();
  if (!groups) return std::unexpected(groups.error());
  for (const journal::GroupRow& group : *groups) {
    known_[group.name] = {.batch = group.batch, .of_before = true};
    next_batch_ = std::max(next_batch_, group.batch + 1);
  }
  return {};
}

Result<std::vector<Part>> ProgramRun::parts_of(const TaskGroup& group,
                                               const std::vector<Task*>& tasks) const {
  std::map<int, Part> parts;
  std::map<std::string, int, std::less<>> part_of;  // By id.
  int next = 1;
  for (auto known = known_.find(part_name(group.name(), next)); known != known_.end();
       known = known_.find(part_name(group.name(), ++next))) {
    if (!known->second.of_before) continue;
    const Result<Rows> rows = rows_of(known->second.batch);
    if (!rows) return std::unexpected(rows.error());
    Part part{.batch = known->second.batch, .number = next};
    for (const auto& [id, row] : *rows) {
      part_of.try_emplace(id, next);
      if (row.standing.verdict == model::Verdict::Finished) part.finished_before.insert(id);
    }
    parts.emplace(next, std::move(part));
  }
  const bool again = parts.contains(1);
  for (Task* const task : tasks) {
    const auto known = part_of.find(task->id());
    const int number = known != part_of.end() ? known->second : again ? 1 : next;
    const auto part = parts.try_emplace(number, Part{.batch = next_batch_, .number = number});
    part.first->second.tasks.push_back(task);
  }
  std::vector<Part> chosen;
  for (auto& [number, part] : parts) {
    if (!part.tasks.empty()) chosen.push_back(std::move(part));
  }
  return chosen;
}

Result<ProgramRun::Rows> ProgramRun::rows_of(std::uint32_t batch) const {
  Result<journal::JournalReader> reader = journal();
  if (!reader) return std::unexpected(std::move(reader.error()));
  const Result<std::vector<journal::GroupRow>> groups = reader->groups();
  if (!groups) return std::unexpected(groups.error());
  const auto group = std::ranges::find(*groups, batch, &journal::GroupRow::batch);
  if (group == groups->end()) return Rows{};
  Rows rows;
  Result<void> read = reader->tasks({.group = group->index}, [&rows](const journal::TaskRow& row) {
    rows.try_emplace(row.id, row);
    return true;
  });
  if (!read) return std::unexpected(std::move(read.error()));
  return rows;
}

void ProgramRun::took(const TaskGroup& group, const std::vector<Part>& parts) {
  has_begun_ = true;
  for (const Part& part : parts) {
    known_.insert_or_assign(part_name(group.name(), part.number),
                            Known{.batch = part.batch, .of_before = false});
    next_batch_ = std::max(next_batch_, part.batch + 1);
  }
}

Result<void> ProgramRun::report() {
  Result<journal::JournalReader> reader = journal();
  if (!reader) return std::unexpected(std::move(reader.error()));
  Result<report::Overview> written = report::write_reports(*reader, directory_, overview_);
  if (!written) return std::unexpected(std::move(written.error()));
  overview_ = std::move(*written);
  return {};
}

}  // namespace trainyard::library
