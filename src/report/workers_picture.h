// A picture of the workers of a parallel run: a row for each, its lives, and on them its waits,
// each with the worker or the thing it waited for. Its size has a bound, however long the run was.
// Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "wire/parallel_record.h"

namespace trainyard::report {

/// The maximum number of workers with a row, and of waits drawn in all.
constexpr std::size_t kWorkerRowsMax = 200;
constexpr std::size_t kWaitsDrawnMax = 4'000;

/// SVG.
std::string workers_svg(const wire::ParallelRecord& record);

/// The waits of a worker to draw: consecutive waits in the same of `slices` parts of the time are
/// merged, and described as the longest of them.
std::vector<wire::WorkerWait> drawn_waits(const std::vector<wire::WorkerWait>& waits,
                                          std::int64_t span_ms, std::size_t slices);

/// "worker 2 (collector)"
std::string name_of_worker(const wire::ParallelRecord& record, int node);
/// "12 ms", "3.4 s"
std::string wait_text(std::int64_t ms);
/// "at the barrier 'epoch'", "for the event 'go'"
std::string what_text(wire::WaitKind kind, const std::string& name);
/// "worker 2 (collector), worker 3"; "-" if not known.
std::string whom_text(const wire::ParallelRecord& record, const std::vector<int>& whom);

/// The look of a wait: a class of page.css.
std::string_view look_of(wire::WaitKind kind);

}  // namespace trainyard::report
