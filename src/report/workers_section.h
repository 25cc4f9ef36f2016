// The part of a group's page that shows who waited for whom in its tasks that are parallel runs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "report/group_report.h"
#include "report/sink.h"
#include "wire/parallel_record.h"

namespace trainyard::report {

/// The maximum number of workers with a row, and of waits drawn in all.
constexpr std::size_t kWorkerRowsMax = 200;
constexpr std::size_t kWaitsDrawnMax = 4'000;

/// A picture of the workers as SVG: a row for each, its lives, and on them its waits, each with the
/// worker or the thing it waited for. Its size has a bound, however long the run was.
std::string workers_svg(const wire::ParallelRecord& record);

/// The waits of a worker to draw: consecutive waits in the same of `slices` parts of the time are
/// merged, and described as the longest of them.
std::vector<wire::WorkerWait> drawn_waits(const std::vector<wire::WorkerWait>& waits,
                                          std::int64_t span_ms, std::size_t slices);

/// The maximum number of pictures of a page, for the first such tasks; it says how many more there
/// are.
constexpr int kWorkerPicturesMax = 20;

/// The picture of one run, and the table of its longest waits. `of` is text.
std::string workers_section(const std::string& of, const wire::ParallelRecord& record);

/// Writes the section of each task of the group that left a record. A record that cannot be read is
/// replaced by the reason.
Result<void> write_workers(GroupReport& report, Sink& sink);

}  // namespace trainyard::report
