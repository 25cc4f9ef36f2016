// Writes the reports of a run: <run-dir>/reports/<group>.html and .json, and index.html for all
// groups, from its journal.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "journal/reader.h"
#include "report/group_report.h"
#include "report/overview.h"

namespace trainyard::report {

/// The parts of the page of a run.
struct Overview {
  ReportHead head;
  std::vector<OverviewRow> rows;
};

/// For every group, a file at a time: an old report stays until the new one is whole. An active run
/// gets a report of its progress. Groups that had ended when `before` was returned, and have not
/// changed, keep their report: a run of a thousand groups, one after the other, writes each once.
/// Holds the attempts and ids of one group in memory, and streams everything else.
Result<Overview> write_reports(journal::JournalReader& reader, const std::string& run_directory,
                               const Overview& before = {});

}  // namespace trainyard::report
