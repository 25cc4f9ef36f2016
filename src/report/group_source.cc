#include "report/group_source.h"

#include <algorithm>
#include <cstdint>
#include <expected>
#include <map>
#include <string>
#include <utility>

#include "model/ids.h"
#include "model/status.h"
#include "report/curves.h"
#include "report/result_fields.h"

namespace trainyard::report {
namespace {

struct TaskName {
  std::string id;
  std::uint32_t stopped_attempt = 0;
};

/// The result of the first pass over a group's tasks.
struct Survey {
  GroupFigures figures;
  std::map<model::TaskIndex, TaskName> names;
};

Result<Survey> survey(journal::JournalReader& reader, const journal::GroupRow& group) {
  Survey found{.figures = {.digest = GroupDigest(group)}};
  Result<void> read = reader.tasks({.group = group.index}, [&](const journal::TaskRow& row) {
    found.figures.digest.look_at(row);
    found.figures.numbers.look_at(read_fields(row.result));
    const bool stopped = row.standing.verdict == model::Verdict::Stopped;
    found.names[row.index] = {.id = row.id, .stopped_attempt = stopped ? row.attempt : 0};
    return true;
  });
  if (!read) return std::unexpected(std::move(read.error()));
  return found;
}

}  // namespace

Result<ReportBasis> read_basis(journal::JournalReader& reader) {
  Result<std::string> job = reader.job_name();
  if (!job) return std::unexpected(std::move(job.error()));
  Result<std::vector<journal::ExecutionRow>> executions = reader.executions();
  if (!executions) return std::unexpected(std::move(executions.error()));
  Result<std::vector<journal::SampleRow>> samples = reader.samples();
  if (!samples) return std::unexpected(std::move(samples.error()));
  const Result<std::vector<journal::MachineRow>> machines = reader.machines();
  if (!machines) return std::unexpected(machines.error());
  ReportHead head{.job = std::move(*job)};
  head.machines = machines->size() > 1;
  if (!executions->empty()) head.execution = std::move(executions->back());
  head.now = head.execution.ended.value_or(head.execution.started);
  if (!samples->empty()) head.now = std::max(head.now, samples->back().at);
  return ReportBasis{.head = std::move(head), .samples = std::move(*samples)};
}

Result<GroupFigures> with_report(journal::JournalReader& reader, const journal::GroupRow& group,
                                 const ReportBasis& basis,
                                 std::move_only_function<Result<void>(GroupReport&)> use) {
  Result<Survey> found = survey(reader, group);
  if (!found) return std::unexpected(std::move(found.error()));
  const Result<std::vector<journal::AttemptRow>> attempts = reader.attempts_of(group.index);
  if (!attempts) return std::unexpected(attempts.error());
  TaskSource tasks = [&reader, &group](Which which, TaskVisitor visitor) {
    return reader.tasks(
        {.group = group.index, .failed = which == Which::Failed, .warned = which == Which::Warned},
        std::move(visitor));
  };
  Curves said;
  Result<void> read = reader.progress_of(group.index, [&](const journal::ProgressRow& row) {
    const auto name = found->names.find(row.task);
    return said.look_at(row, name == found->names.end() ? std::string() : name->second.id);
  });
  if (!read) return std::unexpected(std::move(read.error()));
  const std::vector<Curve> curves = said.take();
  const auto name_of = [&found](model::TaskIndex task) {
    const auto name = found->names.find(task);
    return name == found->names.end() ? TaskName{} : name->second;
  };
  GroupReport report{.head = basis.head,
                     .digest = found->figures.digest,
                     .attempts = *attempts,
                     .samples = basis.samples,
                     .id_of = [&name_of](model::TaskIndex task) { return name_of(task).id; },
                     .was_stopped =
                         [&name_of](model::AttemptKey key) {
                           return name_of(key.task).stopped_attempt == key.attempt;
                         },
                     .tasks = tasks,
                     .curves = curves};
  if (Result<void> used = use(report); !used) return std::unexpected(std::move(used.error()));
  return std::move(found->figures);
}

}  // namespace trainyard::report
