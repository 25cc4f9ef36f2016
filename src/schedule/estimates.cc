#include "schedule/estimates.h"

#include <algorithm>

#include "base/check.h"
#include "base/percentile.h"

namespace trainyard::schedule {
namespace {

/// Ratios are counted in thousandths.
constexpr std::int64_t kRatioBase = 1000;

}  // namespace

void Estimates::Peaks::add(Bytes peak) {
  if (peak == Bytes{}) return;
  if (last.size() < kPeaksMax) {
    last.push_back(peak);
  } else {
    sorted.erase(std::ranges::lower_bound(sorted, last[next]));
    last[next] = peak;
    next = (next + 1) % kPeaksMax;
  }
  sorted.insert(std::ranges::upper_bound(sorted, peak), peak);
  percentile = percentile_95_of_sorted(sorted);
  middle = middle_of_sorted(sorted);
}

Bytes Estimates::Peaks::with_margin(Bytes of) const {
  // Few tasks say less of the next one.
  constexpr std::size_t kMany = 5;
  return of + Bytes{of.count / (last.size() < kMany ? 5 : 10)};
}

void Estimates::finished(model::ShapeIndex shape, const Peak& peak) {
  Known& known = known_[shape.value];
  known.memory.add(peak.memory);
  known.gpu_memory.add(peak.gpu_memory);
}

void Estimates::change(Unfinished& all, Bytes before, Bytes now) {
  if (before == now) return;
  if (before > Bytes{}) {
    const auto counted = all.find(before);
    check(counted != all.end(), "the previous peak of a running task is counted");
    all.erase(counted);
  }
  if (now > Bytes{}) all.insert(now);
}

void Estimates::unfinished(model::ShapeIndex shape, const Peak& before, const Peak& now) {
  if (before == now) return;
  Known& known = known_[shape.value];
  change(known.memory_now, before.memory, now.memory);
  change(known.gpu_memory_now, before.gpu_memory, now.gpu_memory);
}

void Estimates::took_of_gpu(model::GroupIndex group, Bytes written, Bytes peak) {
  if (written.count < kRatioBase || peak == Bytes{}) return;
  ratios_[group.value].add({peak.count / (written.count / kRatioBase)});
}

Bytes Estimates::gpu_memory_by_ratio(model::GroupIndex group, Bytes written) const {
  const auto found = ratios_.find(group.value);
  if (found == ratios_.end()) return written;
  return std::max(written, Bytes{written.count / kRatioBase * found->second.percentile.count});
}

Peak Estimates::needed(model::ShapeIndex shape) const {
  const auto found = known_.find(shape.value);
  if (found == known_.end()) return {};
  const Known& known = found->second;
  // The peaks of unfinished tasks show what is too little, and not yet what is enough: before one
  // has finished nothing is known, and after that they only correct upwards.
  const auto of = [](const Peaks& peaks, Bytes unfinished) {
    return peaks.last.empty() ? Bytes{} : std::max(peaks.with_margin(peaks.percentile), unfinished);
  };
  return {.memory = of(known.memory, most_of(known.memory_now)),
          .gpu_memory = of(known.gpu_memory, most_of(known.gpu_memory_now))};
}

Bytes Estimates::usual_gpu_memory(model::ShapeIndex shape) const {
  const auto found = known_.find(shape.value);
  if (found == known_.end()) return {};
  return found->second.gpu_memory.with_margin(found->second.gpu_memory.middle);
}

std::size_t Estimates::count_finished(model::ShapeIndex shape) const {
  const auto found = known_.find(shape.value);
  if (found == known_.end()) return 0;
  return std::max(found->second.memory.last.size(), found->second.gpu_memory.last.size());
}

Peak Estimates::seen(model::ShapeIndex shape) const {
  const auto found = known_.find(shape.value);
  if (found == known_.end()) return {};
  const Known& known = found->second;
  return {.memory = std::max(known.memory.percentile, most_of(known.memory_now)),
          .gpu_memory = std::max(known.gpu_memory.percentile, most_of(known.gpu_memory_now))};
}

}  // namespace trainyard::schedule
