// When a request that does not fit now is expected to fit, and what may run beside it meanwhile
// without making it wait any longer. What batch schedulers call EASY backfill.
#pragma once

#include <optional>
#include <vector>

#include "base/bytes.h"
#include "base/time.h"
#include "model/resources.h"

namespace trainyard {

/// What a running task will give back, and when; nobody knows when: nothing.
struct Release {
  std::optional<Instant> at;
  Bytes memory;
  Cpus cpus;
};

struct Vacancy {
  std::optional<Instant> at;  ///< Nothing: some day, nobody can say when.
  Bytes memory_spare;         ///< What is left at that moment beside the request.
  Cpus cpus_spare;
};

/// Nothing when the request does not fit even after all releases: holding others back for it would
/// help nobody.
std::optional<Vacancy> forecast(const Request& request, Bytes memory_free, Cpus cpus_free,
                                std::vector<Release> releases);

/// Whether another request, started at `now` and expected to take `duration` (nothing: unknown),
/// would delay what the vacancy is kept for.
bool would_delay(const Vacancy& vacancy, const Request& other, Instant now,
                 std::optional<Duration> duration);

}  // namespace trainyard
