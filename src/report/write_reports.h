// Writes the reports of a run: <run-dir>/reports/<group>.html and .json, from its journal.
#pragma once

#include <string>

#include "base/result.h"
#include "journal/reader.h"

namespace trainyard::report {

/// For every group, a file at a time: an old report stays until the new one is whole. A run that is
/// still going on gets a report of how far it is. Holds the attempts and ids of one group in
/// memory, and streams everything else.
Result<void> write_reports(JournalReader& reader, const std::string& run_directory);

}  // namespace trainyard::report
