// The part of a group's page that shows who waited for whom in its tasks that are parallel runs.
#pragma once

#include <string>

#include "base/result.h"
#include "report/group_report.h"
#include "report/sink.h"
#include "wire/parallel_record.h"

namespace trainyard::report {

/// The maximum number of pictures of a page, for the first such tasks; it says how many more there
/// are.
constexpr int kWorkerPicturesMax = 20;

/// The picture of one run, and the table of its longest waits. `of` is text.
std::string workers_section(const std::string& of, const wire::ParallelRecord& record);

/// Writes the section of each task of the group that left a record. A record that cannot be read is
/// replaced by the reason.
Result<void> write_workers(GroupReport& report, Sink& sink);

}  // namespace trainyard::report
