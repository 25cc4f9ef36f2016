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

/// What the page of a run is made of.
struct Overview {
  ReportHead head;
  std::vector<OverviewRow> rows;
};

/// For every group, a file at a time: an old report stays until the new one is whole. A run that is
/// still going on gets a report of how far it is. Groups that had ended when `before` was returned,
/// and are as they were, keep their report: a run of a thousand groups, of which one is run after
/// the other, writes each once. Holds the attempts and ids of one group in memory, and streams
/// everything else.
Result<Overview> write_reports(journal::JournalReader& reader, const std::string& run_directory,
                               const Overview& before = {});

}  // namespace trainyard::report
