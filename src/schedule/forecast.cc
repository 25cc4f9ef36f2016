#include "schedule/forecast.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <tuple>
#include <vector>

#include "base/bytes.h"
#include "base/time.h"
#include "model/resources.h"

namespace trainyard {

std::optional<Vacancy> forecast(const Request& request, Bytes memory_free, Cpus cpus_free,
                                std::vector<Release> releases) {
  // Two that compare alike are alike, so that the order says the same on every machine.
  std::ranges::sort(releases, {}, [](const Release& it) {
    return std::tuple(!it.at.has_value(), it.at, it.memory, it.cpus);
  });
  const auto fits = [&] { return request.memory <= memory_free && request.cpus <= cpus_free; };
  std::size_t next = 0;
  std::optional<Instant> at = Instant{};
  while (!fits() && next < releases.size()) {
    memory_free += releases[next].memory;
    cpus_free = cpus_free + releases[next].cpus;
    at = releases[next].at;
    ++next;
  }
  if (!fits()) return std::nullopt;
  // What ends at the same moment is free by then too. Of those that end some day nobody knows.
  while (at.has_value() && next < releases.size() && releases[next].at == at) {
    memory_free += releases[next].memory;
    cpus_free = cpus_free + releases[next].cpus;
    ++next;
  }
  return Vacancy{.at = at,
                 .memory_spare = memory_free - request.memory,
                 .cpus_spare = cpus_free - request.cpus};
}

bool would_delay(const Vacancy& vacancy, const Request& other, Instant now,
                 std::optional<Duration> duration) {
  const bool gone_by_then =
      vacancy.at.has_value() && duration.has_value() && now + *duration <= *vacancy.at;
  const bool fits_beside = other.memory <= vacancy.memory_spare && other.cpus <= vacancy.cpus_spare;
  return !gone_by_then && !fits_beside;
}

}  // namespace trainyard
