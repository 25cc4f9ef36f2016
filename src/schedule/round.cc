#include "schedule/round.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace trainyard::schedule {
namespace {

void give(Room& room, const Release& release) {
  room.memory += release.memory;
  room.cpus = room.cpus + release.cpus;
  for (const GpuLedger::Share& share : release.gpus) {
    GpuRoom& gpu = room.gpus[share.gpu.value];
    gpu.free += share.memory;
    --gpu.holders;
    if (share.sharing) gpu.sharers.remove(*share.sharing);
    if (share.whole) gpu.whole = false;
  }
}

Bytes gpu_memory_of(const Release& release) {
  Bytes sum;
  for (const GpuLedger::Share& share : release.gpus) sum += share.memory;
  return sum;
}

/// The GPUs that it would have next to the request that the vacancy is kept for; nothing when it
/// does not fit.
std::optional<GpuSet> place_beside(const Vacancy& vacancy, const Candidate& other,
                                   const GpuChooser& chooser) {
  const Room& spare = vacancy.spare;
  if (other.request.memory > spare.memory || other.request.cpus > spare.cpus) return std::nullopt;
  if (!other.gpus) return chooser.choose(spare.gpus, other.request);
  if (!chooser.fits_on(spare.gpus, other.request, *other.gpus)) return std::nullopt;
  return other.gpus;
}

}  // namespace

std::optional<Vacancy> find_vacancy(const model::Request& request, Room free,
                                    std::vector<Release> releases, const GpuChooser& chooser) {
  // Equal releases stay in the order in which they were given, on every machine.
  for (std::size_t i = 0; i < releases.size(); ++i) releases[i].order = i;
  std::ranges::sort(releases, {}, [](const Release& it) {
    return std::tuple(!it.at.has_value(), it.at, it.memory, it.cpus, gpu_memory_of(it), it.order);
  });
  const auto place = [&]() -> std::optional<GpuSet> {
    if (request.memory > free.memory || request.cpus > free.cpus) return std::nullopt;
    return chooser.choose(free.gpus, request);
  };
  std::size_t next = 0;
  // If it fits now, no task can be gone before: only what fits next to it may start.
  std::optional<Instant> at = Instant{};
  std::optional<GpuSet> gpus = place();
  for (; !gpus; gpus = place()) {
    if (next == releases.size()) return std::nullopt;
    at = releases[next].at;
    // Releases at one moment are free together. Tasks whose end is unknown are taken one after the
    // other, the smallest first, so that no more is waited for than is needed.
    do {
      give(free, releases[next]);
      ++next;
    } while (at.has_value() && next < releases.size() && releases[next].at == at);
  }
  free.memory -= request.memory;
  free.cpus = free.cpus - request.cpus;
  take(free.gpus, request, *gpus);
  return Vacancy{.at = at, .spare = std::move(free)};
}

bool would_delay(const Vacancy& vacancy, const Candidate& other, Instant now,
                 const GpuChooser& chooser) {
  const bool gone_by_then =
      vacancy.at.has_value() && other.takes.has_value() && now + *other.takes <= *vacancy.at;
  return !gone_by_then && !place_beside(vacancy, other, chooser);
}

void take_beside(Vacancy& vacancy, const Candidate& started, const GpuChooser& chooser) {
  const std::optional<GpuSet> gpus = place_beside(vacancy, started, chooser);
  if (!gpus) return;
  vacancy.spare.memory -= started.request.memory;
  vacancy.spare.cpus = vacancy.spare.cpus - started.request.cpus;
  take(vacancy.spare.gpus, started.request, *gpus);
}

}  // namespace trainyard::schedule
