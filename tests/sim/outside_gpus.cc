#include "sim/outside_gpus.h"

#include <algorithm>
#include <tuple>

namespace trainyard::sim {

OutsideGpus::OutsideGpus(const model::Policy& policy, const model::Capacity& capacity)
    : overfull_readings(capacity.gpus.size()),
      policy_(policy),
      capacity_(capacity),
      last_(capacity.gpus.size()),
      others_(capacity.gpus.size()),
      gone_(capacity.gpus.size()),
      drop_outs_(capacity.gpus.size()),
      back_(capacity.gpus.size()) {}

Bytes OutsideGpus::kept(model::GpuIndex gpu) const {
  const Bytes memory = capacity_.gpus[gpu.value].memory;
  const auto unused = static_cast<std::int64_t>(static_cast<double>(memory.count) *
                                                (1 - policy_.gpu_memory_utilization_max));
  const Bytes remain =
      policy_.gpu_memory_remain.value_or(std::min(gb(4), Bytes{memory.count / 10}));
  return std::max(remain, Bytes{unused});
}

/// The memory of a GPU that tasks use, as far as the driver names them; else their promises.
Bytes OutsideGpus::explained(model::GpuIndex gpu) const {
  Bytes sum;
  for (const auto& [task, shares] : shares_) {
    for (const SeenShare& share : shares) {
      if (share.gpu != gpu) continue;
      const Bytes held =
          share.promise == Bytes{} ? capacity_.gpus[gpu.value].memory : share.promise;
      sum += last_[gpu.value].processes_known ? share.measured : held;
    }
  }
  return sum;
}

void OutsideGpus::read(Instant at, const model::GpusSampled& reading) {
  last_ = reading.gpus;
  for (auto& [task, shares] : shares_) {
    bool quiet = true;
    for (SeenShare& share : shares) {
      const Bytes before = share.measured;
      share.measured = {};
      if (!last_[share.gpu.value].present) share.unanswered = at;
      share.strangers = std::min(share.strangers, last_[share.gpu.value].of_strangers);
      for (const model::GpuUse& use : reading.uses) {
        if (use.key.task == task && use.gpu == share.gpu) share.measured += use.memory;
      }
      peaks_[task] = std::max(peaks_[task], share.measured);
      const bool has_most = share.measured.count * 2 >= share.promise.count;
      const bool grows = share.measured.count * 100 > before.count * 105;
      if (last_[share.gpu.value].processes_known && (grows || !has_most)) quiet = false;
    }
    if (quiet) settle(task);
  }
  last_resorts_.clear();
  for (std::uint32_t index = 0; index < last_.size(); ++index) {
    if (!last_[index].present) {
      note_absence(index, at);
    } else if (gone_[index]) {
      const Instant back = back_[index].value_or(at);
      back_[index] = back;
      if (at >= back + quiet_time(index)) {
        gone_[index].reset();
      } else if (at >= back + policy_.gpu_steady_after) {
        last_resorts_.insert(index);
      }
    }
    if (!gone_[index]) back_[index].reset();
    const Bytes unexplained = std::max(Bytes{}, last_[index].used - explained({index}));
    const bool clean = !last_[index].processes_known || unexplained <= others_[index] + mib(64);
    const bool over = clean || !last_[index].present;
    std::erase_if(left_, [&](const Left& it) {
      return it.share.gpu.value == index && (over || at >= it.until);
    });
    const bool waits =
        std::ranges::any_of(left_, [&](const Left& it) { return it.share.gpu.value == index; });
    if (!waits || unexplained < others_[index]) others_[index] = unexplained;
    ++overfull_readings[index];
    if (!is_overfull({index})) overfull_readings[index] = 0;
  }
}

/// A GPU that comes back for less than the first quiet time has been away all the while.
void OutsideGpus::note_absence(std::size_t index, Instant at) {
  const bool is_new = !gone_[index] || back_[index];
  if (!is_new) return;
  ++drop_outs_[index];
  if (!gone_[index] || at >= *back_[index] + policy_.gpu_steady_after) gone_[index] = at;
  back_[index].reset();
}

Duration OutsideGpus::quiet_time(std::size_t index) const {
  constexpr Duration kHour{3'600'000};
  Duration quiet = policy_.gpu_steady_after;
  for (int i = 1; i < drop_outs_[index]; ++i) quiet = std::min(2 * quiet, kHour);
  return quiet;
}

void OutsideGpus::promise(model::TaskIndex task, const std::vector<model::GpuIndex>& gpus,
                          const model::Request& request) {
  for (const model::GpuIndex gpu : gpus) {
    shares_[task].push_back({.gpu = gpu,
                             .promise = request.gpu_memory,
                             .sharing = request.sharing,
                             .measured = {},
                             .strangers = last_[gpu.value].of_strangers,
                             .unanswered = {}});
  }
}

void OutsideGpus::change(model::TaskIndex task, Bytes each) {
  for (SeenShare& share : shares_[task]) share.promise = each;
  settled_.erase(task);
}

void OutsideGpus::release(model::TaskIndex task, Instant at) {
  for (SeenShare share : shares_of(task)) {
    // The share of a task with a GPU of its own is unknown.
    if (share.promise == Bytes{}) share.promise = capacity_.gpus[share.gpu.value].memory;
    left_.push_back({.share = share, .until = at + policy_.gpu_linger_max});
  }
  shares_.erase(task);
  peaks_.erase(task);
  settled_.erase(task);
}

void OutsideGpus::time_passes(Instant at) {
  std::erase_if(left_, [at](const Left& it) { return at >= it.until; });
}

std::vector<SeenGpu> OutsideGpus::now() const {
  std::vector<SeenGpu> gpus(last_.size());
  for (std::uint32_t index = 0; index < gpus.size(); ++index) {
    SeenGpu& gpu = gpus[index];
    const Bytes all = capacity_.gpus[index].memory;
    Bytes by_ledger = all;
    Bytes promised;
    Bytes untaken;
    for (const auto& [task, shares] : shares_) {
      for (const SeenShare& share : shares) {
        if (share.gpu.value != index) continue;
        ++gpu.users;
        gpu.owned = gpu.owned || share.promise == Bytes{};
        gpu.sharing.push_back(share.sharing);
        by_ledger -= share.holds();
        promised += share.promise;
        untaken += std::max(share.promise - share.measured, Bytes{});
      }
    }
    if (!last_[index].processes_known) untaken = std::max(promised - last_[index].used, Bytes{});
    for (const Left& left : left_) {
      if (left.share.gpu.value != index) continue;
      ++gpu.users;
      by_ledger -= left.share.holds();
    }
    gpu.there = !gone_[index] || last_resorts_.contains(index);
    gpu.others = others_[index];
    gpu.left = policy_.gpu_avoids_others && last_[index].other_user.has_value();
    gpu.free = std::min(by_ledger, all - last_[index].used - untaken) - kept({index});
  }
  return gpus;
}

/// No task has to accept more sharing than its terms allow, and the sum of all terms is not too
/// high.
bool OutsideGpus::may_be_shared(const SeenGpu& gpu, const model::GpuSharing& with) const {
  const auto then = static_cast<int>(gpu.sharing.size()) + 1;
  const auto minds = [then](const model::GpuSharing& it) {
    return it.max_per_gpu != 0 && it.max_per_gpu < then;
  };
  int used = 0;
  for (const model::GpuSharing& it : gpu.sharing) {
    if (minds(it)) return false;
    used += it.utilization;
  }
  const double together = static_cast<double>(used + with.utilization) / 1000;
  return !minds(with) && (used == 0 || together <= policy_.gpu_utilization_max + 1e-9);
}

bool OutsideGpus::fits(const SeenGpu& gpu, model::GpuIndex which,
                       const model::Request& request) const {
  if (!gpu.there || gpu.left || gpu.owned || (request.gpu && *request.gpu != which)) return false;
  const model::GpuPlace place{.machine = {}, .gpu = which};
  if (std::ranges::find(request.avoids, place) != request.avoids.end()) return false;
  const model::Gpu& card = capacity_.gpus[which.value];
  if ((card.slice && request.gpus > 1) || (card.late && request.listed_only)) return false;
  if (request.gpu_memory > Bytes{}) {
    return gpu.free >= request.gpu_memory && may_be_shared(gpu, request.sharing);
  }
  const Bytes most = card.memory - kept(which);
  const Bytes least = std::min(policy_.gpu_memory_least, Bytes{most.count / 2});
  return gpu.users == 0 && gpu.free >= std::max(Bytes{1}, least);
}

/// The number of further GPUs for the user beside those that have tasks already, if all users who
/// compute here have as many.
std::size_t OutsideGpus::share_left() const {
  std::set<std::uint32_t> users;
  for (const model::GpuReading& seen : last_) {
    if (seen.other_user) users.insert(*seen.other_user);
  }
  std::set<model::GpuIndex> taken;
  for (const auto& [task, shares] : shares_) {
    for (const SeenShare& share : shares) taken.insert(share.gpu);
  }
  const std::size_t fair = last_.size() / (1 + users.size());
  return std::max<std::size_t>(fair, 1) - std::min(taken.size(), std::max<std::size_t>(fair, 1));
}

std::optional<std::vector<model::GpuIndex>> OutsideGpus::right_ones(
    const std::vector<SeenGpu>& from, const model::Request& request, IdleGpus idle) const {
  // The smallest by this is the first; the place on the bus decides between two that are alike.
  const auto badness = [&](model::GpuIndex gpu) {
    const model::Gpu& card = capacity_.gpus[gpu.value];
    std::int64_t by = 0;
    // A task that wants a whole GPU gets one on which others have least, in steps.
    std::int64_t disturbed = 0;
    switch (policy_.gpu_strategy) {
      case model::GpuStrategy::Pci:
        break;
      case model::GpuStrategy::TotalMemory:
        by = -card.memory.count;
        break;
      case model::GpuStrategy::RemainingMemory:
        by = -from[gpu.value].free.count;
        break;
      case model::GpuStrategy::Performance:
        by = -card.speed;
        break;
      case model::GpuStrategy::BestFit:
      case model::GpuStrategy::IdleFirst:
        by = from[gpu.value].free.count;
        if (request.gpu_memory == Bytes{}) disturbed = from[gpu.value].others.count / (256 << 20);
        break;
    }
    return std::tuple(disturbed, by, card.pci, gpu.value);
  };
  std::vector<Bytes> sizes;
  for (std::uint32_t index = 0; index < from.size(); ++index) {
    const bool meant = !request.gpu || request.gpu->value == index;
    const bool usable = request.gpus < 2 || !capacity_.gpus[index].slice;
    if (request.listed_only && capacity_.gpus[index].late) continue;
    if (meant && usable && from[index].there) sizes.push_back(capacity_.gpus[index].memory);
  }
  std::ranges::sort(sizes);
  const auto among = static_cast<std::size_t>(std::max(request.gpus, 1));
  const Bytes at_least =
      request.largest && sizes.size() >= among ? sizes[sizes.size() - among] : Bytes{};
  std::vector<model::GpuIndex> fitting;
  for (std::uint32_t index = 0; index < from.size() && request.gpus > 0; ++index) {
    if (capacity_.gpus[index].memory < at_least) continue;
    if (fits(from[index], {index}, request)) fitting.push_back({index});
  }
  const auto count = static_cast<std::size_t>(request.gpus);
  if (fitting.size() < count) return std::nullopt;
  std::ranges::sort(fitting, [&](model::GpuIndex a, model::GpuIndex b) {
    return policy_.gpu_reverse ? badness(b) < badness(a) : badness(a) < badness(b);
  });
  if (idle == IdleGpus::First && request.gpu_memory > Bytes{}) {
    const auto is_busy = [&](model::GpuIndex gpu) {
      return !from[gpu.value].sharing.empty() || from[gpu.value].others >= mib(256);
    };
    // The best of the idle ones, up to this number, come before all others.
    std::vector<model::GpuIndex> first;
    for (const model::GpuIndex gpu : fitting) {
      if (!is_busy(gpu) && first.size() < share_left()) first.push_back(gpu);
    }
    std::erase_if(fitting, [&first](model::GpuIndex gpu) {
      return std::ranges::find(first, gpu) != first.end();
    });
    fitting.insert(fitting.begin(), first.begin(), first.end());
  }
  fitting.resize(count);
  std::ranges::sort(fitting);
  return fitting;
}

const std::vector<SeenShare>& OutsideGpus::shares_of(model::TaskIndex task) const {
  static const std::vector<SeenShare> none;
  const auto found = shares_.find(task);
  return found == shares_.end() ? none : found->second;
}

Bytes OutsideGpus::peak_of(model::TaskIndex task) const {
  const auto found = peaks_.find(task);
  return found == peaks_.end() ? Bytes{} : found->second;
}

std::optional<model::GpuIndex> OutsideGpus::lost_one(model::TaskIndex task, Instant at) const {
  std::optional<model::GpuIndex> lost;
  Instant last;
  for (const SeenShare& share : shares_of(task)) {
    if (!share.unanswered || *share.unanswered + Duration{60'000} < at) continue;
    if (*share.unanswered < last) continue;
    lost = share.gpu;
    last = *share.unanswered;
  }
  return lost;
}

Bytes OutsideGpus::beyond(model::TaskIndex task, model::GpuIndex gpu) const {
  for (const SeenShare& share : shares_of(task)) {
    if (share.gpu != gpu || share.promise == Bytes{}) continue;
    return std::max(share.measured - share.promise, Bytes{});
  }
  return {};
}

bool OutsideGpus::is_crowded(model::TaskIndex task) const {
  constexpr Bytes kNothing = mib(64);
  return std::ranges::any_of(shares_of(task), [&](const SeenShare& own) {
    if (!last_[own.gpu.value].processes_known) return false;
    Bytes sum;
    for (const auto& [other, shares] : shares_) {
      if (other != task) sum += beyond(other, own.gpu);
    }
    return sum > kNothing || last_[own.gpu.value].of_strangers > own.strangers + kNothing;
  });
}

bool OutsideGpus::is_overfull(model::GpuIndex gpu, std::optional<model::TaskIndex> but_for) const {
  const model::GpuReading& seen = last_[gpu.value];
  if (!seen.present || !seen.processes_known) return false;
  for (const Left& left : left_) {
    if (left.share.gpu == gpu) return false;
  }
  Bytes taken = seen.used;
  Bytes to_come;
  for (const auto& [task, shares] : shares_) {
    for (const SeenShare& share : shares) {
      if (share.gpu != gpu) continue;
      if (but_for && *but_for == task) {
        taken = taken - share.measured;
      } else if (share.promise > share.measured) {
        to_come += share.promise - share.measured;
      }
    }
  }
  return to_come > Bytes{} && taken + to_come > capacity_.gpus[gpu.value].memory;
}

Bytes OutsideGpus::most_of(const std::vector<SeenGpu>& gpus, const model::Request& request) const {
  std::vector<Bytes> sizes;
  for (std::uint32_t index = 0; index < gpus.size(); ++index) {
    if (capacity_.gpus[index].slice && request.gpus > 1) continue;
    if (capacity_.gpus[index].late && request.listed_only) continue;
    if (!gpus[index].there || (request.gpu && request.gpu->value != index)) continue;
    sizes.push_back(gpus[index].free);
  }
  std::ranges::sort(sizes);
  const auto from_the_end = static_cast<std::size_t>(std::max(1, request.gpus));
  return sizes.size() < from_the_end ? Bytes{} : sizes[sizes.size() - from_the_end];
}

Bytes OutsideGpus::most_on(const model::Request& request) const {
  std::vector<SeenGpu> gpus(last_.size());
  for (std::uint32_t index = 0; index < gpus.size(); ++index) {
    gpus[index].free = capacity_.gpus[index].memory - kept({index});
  }
  return most_of(gpus, request);
}

std::vector<SeenGpu> OutsideGpus::without_tasks() const {
  std::vector<SeenGpu> gpus(last_.size());
  for (std::uint32_t index = 0; index < gpus.size(); ++index) {
    gpus[index].there = !gone_[index] || last_resorts_.contains(index);
    gpus[index].left = policy_.gpu_avoids_others && last_[index].other_user.has_value();
    gpus[index].free = capacity_.gpus[index].memory - others_[index] - kept({index});
  }
  return gpus;
}

Bytes OutsideGpus::most_alone(const model::Request& request) const {
  return most_of(without_tasks(), request);
}

bool OutsideGpus::would_fit_alone(const model::Request& request) const {
  return right_ones(without_tasks(), request).has_value();
}

bool OutsideGpus::may_ever_fit(const model::Request& request, Instant at) const {
  std::vector<SeenGpu> gpus(last_.size());
  for (std::uint32_t index = 0; index < gpus.size(); ++index) {
    const Instant gone_since = gone_[index].value_or(at);
    gpus[index].there = !gone_[index] || back_[index] || at - gone_since < policy_.gpu_gone_max;
    gpus[index].free = capacity_.gpus[index].memory - kept({index});
  }
  return right_ones(gpus, request).has_value();
}

void take_from(std::vector<SeenGpu>& from, const model::Request& request,
               const std::vector<model::GpuIndex>& gpus) {
  for (const model::GpuIndex gpu : gpus) {
    ++from[gpu.value].users;
    from[gpu.value].sharing.push_back(request.sharing);
    from[gpu.value].owned = from[gpu.value].owned || request.gpu_memory == Bytes{};
    from[gpu.value].free -= request.gpu_memory;
  }
}

}  // namespace trainyard::sim
