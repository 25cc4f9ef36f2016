// The part of the run as seen from outside that knows in which order tasks go.
#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "model/ids.h"
#include "model/resources.h"
#include "sim/outside.h"

namespace trainyard::sim {

std::int64_t Outside::part_of_machine(model::TaskIndex index) const {
  const model::Request& request = shape_of(index).terms.request;
  if (!two_phase(index) || request.gpus == 0) return 0;
  std::int64_t all = 0;
  double there = 0;
  for (const model::Gpu& gpu : capacity.gpus) {
    if (!gpu.late) all += gpu.memory.count;
    if (!gpu.late) ++there;
  }
  double part = static_cast<double>(request.memory.count) /
                static_cast<double>(std::max<std::int64_t>(capacity.memory.count, 1));
  if (request.gpu_memory == Bytes{}) {
    part += static_cast<double>(request.gpus) / there;
  } else {
    part += static_cast<double>(request.gpu_memory.count * request.gpus) /
            static_cast<double>(std::max<std::int64_t>(all, 1));
  }
  return static_cast<std::int64_t>(part * 1e6);
}

bool Outside::starts_before(model::TaskIndex one, model::TaskIndex other) const {
  const auto refusals = [this](model::TaskIndex index) {
    const auto of_shape = shape_refusals.find(task(index).shape);
    return std::pair(of_shape == shape_refusals.end() ? 0 : of_shape->second, task(index).refusals);
  };
  if (refusals(one) != refusals(other)) return refusals(one) < refusals(other);
  const int first = task(one).priority;
  const int second = task(other).priority;
  if (first != second) return first > second;
  return std::pair(part_of_machine(one), place(one)) <
         std::pair(part_of_machine(other), place(other));
}

std::vector<model::TaskIndex> Outside::waiting_in_order() const {
  std::vector<model::TaskIndex> all(waiting.begin(), waiting.end());
  std::ranges::sort(all,
                    [this](model::TaskIndex a, model::TaskIndex b) { return starts_before(a, b); });
  return all;
}

bool Outside::trains_before(model::TaskIndex one, model::TaskIndex other) const {
  const auto size = [this](model::TaskIndex index) {
    const model::Request& request = shape_of(index).terms.request;
    if (!two_phase(index)) return Bytes{};
    const bool whole = request.gpus > 0 && request.gpu_memory == Bytes{};
    return whole ? gib(std::int64_t{1} << 20) : request.gpu_memory;
  };
  const int first = task(one).priority;
  const int second = task(other).priority;
  if (first != second) return first > second;
  return size(one) != size(other) ? size(one) > size(other) : place(one) < place(other);
}

std::vector<model::TaskIndex> Outside::loaded_in_order() const {
  std::vector<model::TaskIndex> all(loaded.begin(), loaded.end());
  std::ranges::sort(all,
                    [this](model::TaskIndex a, model::TaskIndex b) { return trains_before(a, b); });
  return all;
}

}  // namespace trainyard::sim
