// Rows of the journal as JSON, one compact object each. The names are stable, as programs read them
// (docs/reports.md lists them). An unknown value is null. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/time.h"
#include "journal/reader.h"
#include "report/result_fields.h"

namespace trainyard::report {

/// A JSON string, quoted; bad UTF-8 is replaced.
std::string json_text(std::string_view text);

/// `now`, for how long a task that runs has run.
std::string json_of(const journal::TaskRow& row, std::optional<Instant> now);
std::string json_of(const journal::AttemptRow& row, std::string_view id);
/// The run directory as in cause_text(): empty in a report.
std::string json_of(const journal::GroupRow& row, std::string_view run_directory = {});
std::string json_of(const journal::ExecutionRow& row);
/// The run directory as its lines to type name it.
std::string json_of(const journal::WaitingReason& row, std::string_view run_directory);
std::string json_of(const journal::LearnedRow& row);
std::string json_of(const journal::SharingRow& row);
std::string json_of(const journal::SampleRow& row);
std::string json_of(const journal::MachineRow& row);
std::string json_of(const Best& best);

}  // namespace trainyard::report
