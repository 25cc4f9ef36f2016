#include "schedule/gpu_room.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

#include "base/check.h"

namespace trainyard::schedule {
namespace {

/// The memory of a GPU that processes other than tasks use, in steps: memory that a driver keeps
/// for itself does not mean that another process computes there.
std::int64_t use_by_others(const GpuRoom& room) { return room.of_others.count / mib(256).count; }

}  // namespace

void Sharers::add(const model::GpuSharing& task) {
  ++tasks_;
  utilization_ += task.utilization;
  if (task.max_per_gpu > 0) ++say_.at(static_cast<std::size_t>(task.max_per_gpu));
}

void Sharers::remove(const model::GpuSharing& task) {
  check(tasks_ > 0, "only one that was added is removed");
  --tasks_;
  utilization_ -= task.utilization;
  if (task.max_per_gpu > 0) --say_.at(static_cast<std::size_t>(task.max_per_gpu));
}

bool Sharers::admit(const model::GpuSharing& task, int utilization_max) const {
  const auto crowds = [then = tasks_ + 1](int most) { return most > 0 && then > most; };
  if (crowds(task.max_per_gpu) || crowds(tasks_max())) return false;
  return utilization_ == 0 || utilization_ + task.utilization <= utilization_max;
}

int Sharers::tasks_max() const {
  const auto* const first = std::ranges::find_if(say_, [](auto count) { return count > 0; });
  return first == say_.end() ? 0 : static_cast<int>(first - say_.begin());
}

bool is_idle(const GpuRoom& room) {
  return room.sharers.tasks() == 0 && !room.whole && use_by_others(room) == 0;
}

Bytes memory_kept_free(const model::Policy& policy, const model::Gpu& gpu) {
  const double unused = 1 - std::clamp(policy.gpu_memory_utilization_max, 0.0, 1.0);
  const Bytes by_utilization{
      static_cast<std::int64_t>(static_cast<double>(gpu.memory.count) * unused)};
  const Bytes usual = std::min(Bytes{gpu.memory.count / 10}, gb(4));
  return std::max(policy.gpu_memory_remain.value_or(usual), by_utilization);
}

bool is_unknown(const model::Gpu& gpu) { return gpu.late && gpu.memory == Bytes{}; }

GpuChooser::GpuChooser(const model::Policy& policy, const model::Capacity& capacity,
                       model::MachineIndex machine)
    : machine_(machine),
      utilization_max_(static_cast<int>(std::lround(1000 * policy.gpu_utilization_max))),
      strategy_(policy.gpu_strategy),
      reverse_(policy.gpu_reverse) {
  for (const model::Gpu& gpu : capacity.gpus) {
    const Bytes most = gpu.memory - memory_kept_free(policy, gpu);
    const auto place = std::ranges::count_if(
        capacity.gpus, [&gpu](const model::Gpu& other) { return other.pci < gpu.pci; });
    cards_.push_back(
        {.most = most,
         // Half of a small GPU counts, too.
         .least = std::max(Bytes{1}, std::min(policy.gpu_memory_least, Bytes{most.count / 2})),
         .total = gpu.memory,
         .speed = gpu.speed,
         .place = static_cast<std::size_t>(place),
         .name = gpu.name,
         .slice = gpu.slice.has_value(),
         .late = gpu.late});
  }
}

bool GpuChooser::suits(std::size_t index, const model::Request& request) const {
  if (request.gpu && request.gpu->value != index) return false;
  if (request.listed_only && cards_[index].late) return false;
  if (!request.where.takes_gpu(cards_[index].name)) return false;
  return request.gpus <= 1 || !cards_[index].slice;
}

bool GpuChooser::has_a(const model::SiteWish& where) const {
  return where.gpu.empty() || std::ranges::any_of(cards_, [&where](const Card& card) {
           return where.takes_gpu(card.name);
         });
}

std::size_t GpuChooser::count_for(const model::Request& request) const {
  std::size_t count = 0;
  for (std::size_t index = 0; index < cards_.size(); ++index) {
    if (suits(index, request)) ++count;
  }
  return count;
}

bool GpuChooser::fits(std::span<const GpuRoom> rooms, model::GpuIndex gpu,
                      const model::Request& request) const {
  const GpuRoom& room = rooms[gpu.value];
  const Card& card = cards_[gpu.value];
  if (!room.present || room.avoided || room.whole) return false;
  if (request.gpus > 1 && card.slice) return false;
  const model::GpuPlace place{.machine = machine_, .gpu = gpu};
  if (std::ranges::find(request.avoids, place) != request.avoids.end()) return false;
  // A GPU that is not empty is used, too: a display server on it is no reason to leave it idle.
  if (model::wants_whole_gpus(request)) return room.holders == 0 && room.free >= card.least;
  return request.gpu_memory <= room.free && room.sharers.admit(request.sharing, utilization_max_);
}

Bytes GpuChooser::least_total(std::span<const GpuRoom> room, const model::Request& request) const {
  if (!request.largest) return {};
  std::vector<Bytes> totals;
  for (std::size_t index = 0; index < cards_.size(); ++index) {
    if (suits(index, request) && room[index].present) totals.push_back(cards_[index].total);
  }
  std::ranges::sort(totals, std::greater{});
  const auto last = static_cast<std::size_t>(std::max(request.gpus, 1));
  return totals.size() < last ? Bytes{} : totals[last - 1];
}

bool GpuChooser::before(std::span<const GpuRoom> room, model::GpuIndex a, model::GpuIndex b,
                        bool whole) const {
  const std::int64_t others_of_a = use_by_others(room[a.value]);
  const std::int64_t others_of_b = use_by_others(room[b.value]);
  const Card& x = cards_[a.value];
  const Card& y = cards_[b.value];
  switch (strategy_) {
    case model::GpuStrategy::Pci:
      return x.place < y.place;
    case model::GpuStrategy::TotalMemory:
      return x.total > y.total;
    case model::GpuStrategy::RemainingMemory:
      return room[a.value].free > room[b.value].free;
    case model::GpuStrategy::Performance:
      return x.speed > y.speed;
    case model::GpuStrategy::BestFit:
    case model::GpuStrategy::IdleFirst:
      // A request for a whole GPU shares it with as little as possible.
      if (whole && others_of_a != others_of_b) return others_of_a < others_of_b;
      return room[a.value].free < room[b.value].free;
  }
  return false;
}

std::optional<GpuSet> GpuChooser::choose(std::span<const GpuRoom> room,
                                         const model::Request& request,
                                         std::size_t idle_max) const {
  GpuSet fitting;
  if (request.gpus == 0) return fitting;
  const Bytes least_total = this->least_total(room, request);
  for (std::uint32_t index = 0; index < cards_.size(); ++index) {
    if (!suits(index, request) || cards_[index].total < least_total) continue;
    if (fits(room, {index}, request)) fitting.push_back({index});
  }
  const auto wanted = static_cast<std::size_t>(request.gpus);
  if (fitting.size() < wanted) return std::nullopt;
  const bool whole = model::wants_whole_gpus(request);
  // Of two equal GPUs the first on the bus comes first, or the last if the order is reversed.
  std::ranges::sort(fitting, [&](model::GpuIndex a, model::GpuIndex b) {
    if (before(room, a, b, whole) || before(room, b, a, whole)) return before(room, a, b, whole);
    return std::pair(cards_[a.value].place, a) < std::pair(cards_[b.value].place, b);
  });
  if (reverse_) std::ranges::reverse(fitting);
  if (!whole && idle_max > 0) {
    GpuSet idle;
    std::erase_if(fitting, [&](model::GpuIndex gpu) {
      if (idle.size() == idle_max || !is_idle(room[gpu.value])) return false;
      idle.push_back(gpu);
      return true;
    });
    fitting.insert(fitting.begin(), idle.begin(), idle.end());
  }
  fitting.resize(wanted);
  // However they were preferred, a program counts its GPUs in the order of the driver.
  std::ranges::sort(fitting);
  return fitting;
}

bool GpuChooser::fits_on(std::span<const GpuRoom> room, const model::Request& request,
                         const GpuSet& gpus) const {
  return std::ranges::all_of(gpus, [&](model::GpuIndex gpu) { return fits(room, gpu, request); });
}

std::vector<GpuRoom> GpuChooser::empty(std::span<const GpuRoom> now) const {
  std::vector<GpuRoom> room(cards_.size());
  for (std::size_t i = 0; i < cards_.size(); ++i) {
    room[i] = {.present = now[i].present, .free = cards_[i].most};
  }
  return room;
}

Bytes GpuChooser::most_memory(const model::Request& request) const {
  return most_memory(empty(std::vector<GpuRoom>(cards_.size())), request);
}

Bytes GpuChooser::most_memory(std::span<const GpuRoom> room, const model::Request& request) const {
  std::vector<Bytes> most;
  for (std::size_t index = 0; index < cards_.size(); ++index) {
    if (suits(index, request) && room[index].present) most.push_back(room[index].free);
  }
  std::ranges::sort(most, std::greater{});
  const auto last = static_cast<std::size_t>(std::max(request.gpus, 1));
  return most.size() < last ? Bytes{} : most[last - 1];
}

void take(std::vector<GpuRoom>& room, const model::Request& request, const GpuSet& gpus) {
  for (const model::GpuIndex gpu : gpus) {
    GpuRoom& from = room[gpu.value];
    ++from.holders;
    from.sharers.add(request.sharing);
    if (model::wants_whole_gpus(request)) {
      // Nothing else fits on it any more, so its free memory does not matter.
      from.whole = true;
    } else {
      from.free -= request.gpu_memory;
    }
  }
}

void StartupGate::begins(const GpuSet& gpus, Bytes each, Instant until) {
  for (const model::GpuIndex gpu : gpus) cards_[gpu.value] = std::max(cards_[gpu.value], each);
  if (!gpus.empty()) opens_at_ = std::min(opens_at_.value_or(until), until);
}

std::vector<GpuRoom> StartupGate::open(std::span<const GpuRoom> room,
                                       const model::Request& request) const {
  std::vector<GpuRoom> open(room.begin(), room.end());
  for (std::size_t i = 0; i < open.size(); ++i) {
    if (cards_[i] == Bytes{}) continue;
    const Bytes left = open[i].free - request.gpu_memory;
    const bool is_tight = left < std::max(cards_[i], request.gpu_memory);
    open[i].avoided = open[i].avoided || is_tight;
  }
  return open;
}

}  // namespace trainyard::schedule
