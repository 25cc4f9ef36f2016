// A great many tasks through the real scheduler and the real loop, on machines where nothing goes
// wrong: what the yard itself costs for each task. Rows are made as the journal makes them, and
// counted.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/result.h"
#include "base/time.h"
#include "journal/recorder.h"
#include "model/plan.h"

namespace trainyard::bench {

/// `tasks` tasks of `shapes` shapes in turns, in one group, so that the queue is never of one kind.
model::Plan make_many(std::size_t tasks, std::size_t shapes);

struct ManyCounts {
  std::uint64_t finished = 0;
  std::uint64_t turns = 0;
  std::uint64_t events = 0;
  std::uint64_t rows = 0;
  std::uint64_t row_bytes = 0;
  std::uint64_t reasons = 0;
  Instant ended;  ///< In the time of the run; none of it passed.
};

/// Runs the plan to its end on so many machines, which are all alike. Every turn is handed on to
/// `also`, if there is one. An error is one of `also`'s.
Result<ManyCounts> simulate_many(const model::Plan& plan, std::uint32_t machines = 1,
                                 journal::Recorder* also = nullptr);

}  // namespace trainyard::bench
