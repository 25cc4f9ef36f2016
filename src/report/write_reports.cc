#include "report/write_reports.h"

#include <algorithm>
#include <cstdint>
#include <expected>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "journal/reader.h"
#include "model/ids.h"
#include "model/status.h"
#include "report/curves.h"
#include "report/digest.h"
#include "report/group_report.h"
#include "report/html.h"
#include "report/overview.h"
#include "report/result_fields.h"
#include "report/sink.h"
#include "run/run_directory.h"
#include "sys/files.h"

namespace trainyard::report {
namespace {

/// A file that is as long as it gets, and takes the place of the old one once it is whole.
Result<void> write_whole(const std::string& path,
                         std::move_only_function<Result<void>(Sink&)> write) {
  Result<sys::FreshFile> file = sys::FreshFile::make(path);
  if (!file) return std::unexpected(std::move(file.error()));
  Result<void> kept;
  Sink sink = [&](std::string_view text) {
    if (kept) kept = file->write(text);
  };
  Result<void> written = write(sink);
  if (!written) return std::unexpected(std::move(written.error()).in(path));
  return kept ? file->put_in_place(sys::FreshFile::Lasting::WhileWeRun) : kept;
}

struct TaskName {
  std::string id;
  std::uint32_t stopped_attempt = 0;
};

/// What the first way through a group's tasks leaves.
struct Survey {
  GroupDigest digest;
  NumbersOfGroup numbers;
  std::map<model::TaskIndex, TaskName> names;
};

Result<Survey> survey(journal::JournalReader& reader, const journal::GroupRow& group) {
  Survey found{.digest = GroupDigest(group), .numbers = {}, .names = {}};
  Result<void> read = reader.tasks({.group = group.index}, [&](const journal::TaskRow& row) {
    found.digest.look_at(row);
    found.numbers.look_at(read_fields(row.result));
    const bool stopped = row.standing.verdict == model::Verdict::Stopped;
    found.names[row.index] = {.id = row.id, .stopped_attempt = stopped ? row.attempt : 0};
    return true;
  });
  if (!read) return std::unexpected(std::move(read.error()));
  return found;
}

Result<OverviewRow> write_group(journal::JournalReader& reader, const journal::GroupRow& group,
                                const ReportHead& head,
                                const std::vector<journal::MachineRow>& samples,
                                const std::string& run_directory) {
  const Result<Survey> found = survey(reader, group);
  if (!found) return std::unexpected(found.error());
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
  GroupReport report{.head = head,
                     .digest = found->digest,
                     .attempts = *attempts,
                     .samples = samples,
                     .id_of = [&name_of](model::TaskIndex task) { return name_of(task).id; },
                     .was_stopped =
                         [&name_of](model::AttemptKey key) {
                           return name_of(key.task).stopped_attempt == key.attempt;
                         },
                     .tasks = tasks,
                     .curves = curves};
  const std::string path =
      run::reports_directory(run_directory) + "/" + run::report_name(group.name);
  Result<void> page =
      write_whole(path + ".html", [&report](Sink& sink) { return write_html(report, sink); });
  if (page) {
    page = write_whole(path + ".json",
                       [&report](Sink& sink) { return write_report_json(report, sink); });
  }
  if (!page) return std::unexpected(std::move(page.error()));
  return OverviewRow{.group = group,
                     .link = run::report_name(group.name) + ".html",
                     .took = found->digest.took(),
                     .best = found->digest.best(),
                     .edited = found->digest.edited(),
                     .numbers = found->numbers.all()};
}

Result<void> write_overview_page(const Overview& overview, const std::string& path) {
  return write_whole(path, [&overview](Sink& sink) -> Result<void> {
    write_overview(overview.head, overview.rows, sink);
    return {};
  });
}

using RowsByGroup = std::map<model::GroupIndex, const OverviewRow*>;

/// Nothing where the group is not as it was, or may still change.
const OverviewRow* as_before(const RowsByGroup& before, const journal::GroupRow& group) {
  if (group.waiting + group.running + group.retrying > 0) return nullptr;
  const auto row = before.find(group.index);
  return row != before.end() && row->second->group == group ? row->second : nullptr;
}

}  // namespace

Result<Overview> write_reports(journal::JournalReader& reader, const std::string& run_directory,
                               const Overview& before) {
  Result<std::string> job = reader.job_name();
  if (!job) return std::unexpected(std::move(job.error()));
  Result<std::vector<journal::ExecutionRow>> executions = reader.executions();
  if (!executions) return std::unexpected(std::move(executions.error()));
  const Result<std::vector<journal::GroupRow>> groups = reader.groups();
  if (!groups) return std::unexpected(groups.error());
  const Result<std::vector<journal::MachineRow>> samples = reader.samples();
  if (!samples) return std::unexpected(samples.error());
  Result<void> made = sys::make_directories(run_directory + "/reports");
  if (!made) return std::unexpected(std::move(made.error()));

  ReportHead head{.job = std::move(*job)};
  if (!executions->empty()) head.execution = std::move(executions->back());
  head.now = head.execution.ended.value_or(head.execution.started);
  if (!samples->empty()) head.now = std::max(head.now, samples->back().at);
  Overview overview{.head = head, .rows = {}};
  RowsByGroup known;
  for (const OverviewRow& row : before.rows) known.emplace(row.group.index, &row);
  for (const journal::GroupRow& group : *groups) {
    if (const OverviewRow* const row = as_before(known, group)) {
      overview.rows.push_back(*row);
      continue;
    }
    Result<OverviewRow> written = write_group(reader, group, head, *samples, run_directory);
    if (!written) return std::unexpected(std::move(written.error()));
    overview.rows.push_back(std::move(*written));
  }
  Result<void> page = write_overview_page(overview, run_directory + "/reports/index.html");
  if (!page) return std::unexpected(std::move(page.error()));
  return overview;
}

}  // namespace trainyard::report
