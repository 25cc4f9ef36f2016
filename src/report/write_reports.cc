#include "report/write_reports.h"

#include <cstdint>
#include <expected>
#include <functional>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/bytes.h"
#include "model/ids.h"
#include "report/group_source.h"
#include "report/html.h"
#include "report/sink.h"
#include "run/run_directory.h"
#include "sys/files.h"
#include "wire/parallel_record.h"

namespace trainyard::report {
namespace {

/// A file that is as long as it gets, and takes the place of the old one once it is whole.
/// A task may have put a link in the place of the directory of the reports, and the files beyond it
/// are not of this run.
Result<void> write_whole(const std::string& path, const std::string& run_directory,
                         std::move_only_function<Result<void>(Sink&)> write) {
  Result<sys::FreshFile> file = sys::FreshFile::make(path, run_directory);
  if (!file) return std::unexpected(std::move(file.error()));
  Result<void> kept;
  Sink sink = [&](std::string_view text) {
    if (kept) kept = file->write(text);
  };
  Result<void> written = write(sink);
  if (!written) return std::unexpected(std::move(written.error()).in(path));
  return kept ? file->put_in_place(sys::FreshFile::Lasting::WhileWeRun) : kept;
}

/// The file is in a directory where a task may write, so it may contain anything.
Result<std::optional<wire::ParallelRecord>> read_record(const std::string& run_directory,
                                                        const journal::TaskRow& row) {
  const std::string path =
      fmt::format("{}/{}", run::workers_directory(run_directory + "/" + row.directory, row.attempt),
                  wire::kRecordName);
  auto text = sys::read_plain_file(path, Bytes{static_cast<std::int64_t>(wire::kRecordBytesMax)},
                                   sys::Links::Refuse);
  if (!text) return std::unexpected(std::move(text.error()));
  const std::optional<std::string>& content = *text;
  if (!content) return std::optional<wire::ParallelRecord>();
  auto record = wire::read_parallel_record(*content);
  if (!record) return std::unexpected(std::move(record.error()).in(path));
  return std::optional(*std::move(record));
}

Result<OverviewRow> write_group(journal::JournalReader& reader, const journal::GroupRow& group,
                                const ReportBasis& basis, const std::string& run_directory) {
  const std::string path =
      run::reports_directory(run_directory) + "/" + run::report_name(group.name);
  const Result<GroupFigures> figures = with_report(reader, group, basis, [&](GroupReport& report) {
    report.record_of = [&](const journal::TaskRow& row) { return read_record(run_directory, row); };
    Result<void> page = write_whole(path + ".html", run_directory,
                                    [&report](Sink& sink) { return write_html(report, sink); });
    if (!page) return page;
    return write_whole(path + ".json", run_directory,
                       [&report](Sink& sink) { return write_report_json(report, sink); });
  });
  if (!figures) return std::unexpected(figures.error());
  return OverviewRow{.group = group,
                     .link = run::report_name(group.name) + ".html",
                     .took = figures->digest.took(),
                     .best = figures->digest.best(),
                     .edited = figures->digest.edited(),
                     .numbers = figures->numbers.all()};
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
  const Result<ReportBasis> basis = read_basis(reader);
  if (!basis) return std::unexpected(basis.error());
  const Result<std::vector<journal::GroupRow>> groups = reader.groups();
  if (!groups) return std::unexpected(groups.error());
  const std::string reports = run::reports_directory(run_directory);
  Result<void> made = sys::make_directories(reports);
  if (!made) return std::unexpected(std::move(made.error()));

  Overview overview{.head = basis->head};
  RowsByGroup known;
  for (const OverviewRow& row : before.rows) known.emplace(row.group.index, &row);
  for (const journal::GroupRow& group : *groups) {
    if (const OverviewRow* const row = as_before(known, group)) {
      overview.rows.push_back(*row);
      continue;
    }
    Result<OverviewRow> written = write_group(reader, group, *basis, run_directory);
    if (!written) return std::unexpected(std::move(written.error()));
    overview.rows.push_back(std::move(*written));
  }
  Result<void> page =
      write_whole(reports + "/index.html", run_directory, [&overview](Sink& sink) -> Result<void> {
        write_overview(overview.head, overview.rows, sink);
        return {};
      });
  if (!page) return std::unexpected(std::move(page.error()));
  return overview;
}

}  // namespace trainyard::report
