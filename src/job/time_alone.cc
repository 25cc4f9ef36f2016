#include "job/time_alone.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iterator>

#include "base/check.h"

namespace trainyard::job {
namespace {

std::vector<std::string_view> gpus_in(std::string_view labels) {
  std::vector<std::string_view> gpus;
  while (!labels.empty()) {
    const std::size_t comma = std::min(labels.find(','), labels.size());
    gpus.push_back(labels.substr(0, comma));
    labels.remove_prefix(std::min(comma + 1, labels.size()));
  }
  return gpus;
}

/// The work that `together` tasks do, at least and at most, as a multiple of the work of one.
std::pair<double, double> work_of(int together, const WorkTogether& work) {
  constexpr double kLeastBeyond = 0.5;
  if (together == 1) return {1, 1};
  if (work.best == 0) return {1, together};
  if (together > work.best) return {kLeastBeyond, work.factor};
  const double part = static_cast<double>(together - 1) / (work.best - 1);
  const double known = 1 + (work.factor - 1) * part;
  return {known, known};
}

}  // namespace

void TimeAlone::add(const StayOnGpus& stay) {
  check(!sorted_, "all stays are added before the first is asked for");
  if (stay.until <= stay.from) return;
  for (const std::string_view gpu : gpus_in(stay.gpus)) {
    Presence& presence = on_gpu_[std::string(gpu)];
    presence.emplace_back(stay.from, 1);
    presence.emplace_back(stay.until, -1);
  }
}

void TimeAlone::sort() {
  if (std::exchange(sorted_, true)) return;
  for (auto& [gpu, presence] : on_gpu_) {
    std::ranges::sort(presence);
    int there = 0;
    for (auto& [at, count] : presence) count = there += count;
  }
}

TimeAlone::Bounds TimeAlone::of(const StayOnGpus& stay, const WorkTogether& work) {
  sort();
  // The count changes when a task comes to or leaves any of its GPUs; the fullest GPU counts.
  std::vector<Instant> moments{stay.from, stay.until};
  std::vector<const Presence*> on;
  const auto after = [](const Presence& presence, Instant at) {
    return std::ranges::upper_bound(presence, at, {}, &Presence::value_type::first);
  };
  for (const std::string_view gpu : gpus_in(stay.gpus)) {
    const auto found = on_gpu_.find(gpu);
    if (found == on_gpu_.end()) continue;
    on.push_back(&found->second);
    const Presence& presence = found->second;
    for (auto at = after(presence, stay.from); at != presence.end() && at->first < stay.until;
         ++at) {
      moments.push_back(at->first);
    }
  }
  std::ranges::sort(moments);
  double least = 0;
  double most = 0;
  for (std::size_t i = 1; i < moments.size(); ++i) {
    int there = 1;
    for (const Presence* const presence : on) {
      const auto next = after(*presence, moments[i - 1]);
      if (next != presence->begin()) there = std::max(there, std::prev(next)->second);
    }
    const auto took = static_cast<double>((moments[i] - moments[i - 1]).count());
    const auto [low, high] = work_of(there, work);
    least += took * std::min(1.0, low / there);
    most += took * std::min(1.0, high / there);
  }
  return {.least = Duration{std::llround(least)}, .most = Duration{std::llround(most)}};
}

}  // namespace trainyard::job
