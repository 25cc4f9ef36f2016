#include "model/gpu_obstacle.h"

#include <algorithm>
#include <tuple>
#include <vector>

#include "model/ids.h"
#include "model/resources.h"

namespace trainyard::model {
namespace {

using Kind = GpuObstacle::Kind;

Kind kind_on(const Reason& reason, const Headroom& room, const Headroom::Card& card) {
  if (card.whole) return Kind::Whole;
  if (reason.needs.gpu_memory > card.free) return Kind::Memory;
  if (card.drained) return Kind::Drained;
  if (card.avoided_for) return Kind::OtherUser;
  const bool lets_no_more = card.tasks_max > 0 && card.tasks >= card.tasks_max;
  if (lets_no_more || is_full_by_its_own_word(reason, card)) return Kind::Tasks;
  const int together = card.utilization + reason.needs.sharing.utilization;
  const bool busy = card.utilization > 0 && together > room.gpu_utilization_max;
  return busy ? Kind::Utilization : Kind::None;
}

}  // namespace

bool is_avoided(const Reason& reason, std::size_t gpu) {
  const GpuPlace place{.machine = reason.machine, .gpu = {static_cast<std::uint32_t>(gpu)}};
  return std::ranges::find(reason.needs.avoids, place) != reason.needs.avoids.end();
}

bool may_be_on(const Reason& reason, const Headroom& room, std::size_t gpu) {
  return !is_avoided(reason, gpu) && (!reason.needs.gpu || reason.needs.gpu->value == gpu) &&
         reason.needs.where.takes_gpu(room.gpus[gpu].name);
}

bool is_full_by_its_own_word(const Reason& reason, const Headroom::Card& card) {
  const int own = reason.needs.sharing.max_per_gpu;
  return own > 0 && card.tasks >= own;
}

std::optional<GpuObstacle> nearest_obstacle(const Reason& reason, const Headroom& room) {
  std::vector<GpuObstacle> all;
  for (std::size_t gpu = 0; gpu < room.gpus.size(); ++gpu) {
    const Headroom::Card& card = room.gpus[gpu];
    if (!card.present || !may_be_on(reason, room, gpu)) continue;
    all.push_back({.kind = kind_on(reason, room, card),
                   .gpu = gpu,
                   .missing = std::max(Bytes{}, reason.needs.gpu_memory - card.free)});
  }
  const auto last = static_cast<std::size_t>(std::max(reason.needs.gpus, 1));
  if (all.size() < last) return std::nullopt;
  std::ranges::sort(all, {}, [&room](const GpuObstacle& it) {
    return std::tuple(it.kind, room.gpus[it.gpu].avoided_for.has_value(), it.missing, it.gpu);
  });
  return all[last - 1];
}

}  // namespace trainyard::model
