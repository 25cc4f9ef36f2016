// The part of the run as seen from outside that knows what tasks take: what is learned of it, and
// who has to go when it becomes too much.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/bytes.h"
#include "base/time.h"
#include "model/ids.h"
#include "model/plan.h"
#include "model/resources.h"
#include "model/status.h"
#include "model/terms.h"
#include "sim/outside.h"
#include "sim/outside_gpus.h"

namespace trainyard::sim {
namespace {

/// Keeps the last ones; an unknown peak does not count.
void remember(std::vector<Bytes>& peaks, Bytes peak) {
  constexpr std::size_t kRemembered = 256;
  if (peak == Bytes{}) return;
  peaks.push_back(peak);
  if (peaks.size() > kRemembered) peaks.erase(peaks.begin());
}

}  // namespace

Bytes SeenPeaks::usual() const {
  if (of_finished.empty()) return {};
  std::vector<Bytes> sorted = of_finished;
  std::ranges::sort(sorted);
  std::size_t covered = 1;
  while (covered * 100 < sorted.size() * 95) ++covered;
  return sorted[covered - 1];
}

Bytes SeenPeaks::needed() const {
  if (of_finished.empty()) return {};
  const Bytes margin{usual().count / (of_finished.size() < 5 ? 5 : 10)};
  return std::max(usual() + margin, of_running);
}

Bytes SeenPeaks::half_need() const {
  if (of_finished.empty()) return {};
  std::vector<Bytes> sorted = of_finished;
  std::ranges::sort(sorted);
  const Bytes middle = sorted[sorted.size() / 2];
  return middle + Bytes{middle.count / (sorted.size() < 5 ? 5 : 10)};
}

void Outside::learn_from_running() {
  for (SeenPeaks& peaks : memory_peaks) peaks.of_running = {};
  for (SeenPeaks& peaks : gpu_memory_peaks) peaks.of_running = {};
  for (const auto& [index, attempt] : running) {
    const auto most = [](Bytes& of, Bytes peak) { of = std::max(of, peak); };
    most(memory_peaks[task(index).shape.value].of_running, attempt.peak);
    const Bytes of_gpu = gpus.peak_of(index);
    if (was_at_its_cap(attempt, of_gpu)) continue;
    most(gpu_memory_peaks[task(index).shape.value].of_running, of_gpu);
  }
}

int Outside::tries_for_memory(const SeenTask& task, Stage stage) const {
  const auto& more = plan.shapes[task.shape.value].terms.retries.out_of_memory;
  if (more) return *more + 1;
  return stage == Stage::Train ? policy.train_retries : policy.load_retries;
}

void Outside::go_on_with(const model::Plan& batch, std::uint32_t first) {
  for (const model::Reached& before : batch.reached) {
    const model::TaskIndex index{first + before.task.value};
    SeenTask& seen = task(index);
    const model::Request& written = shape_of(index).terms.request;
    // At least one try is left.
    const auto spent = [&](int tries, Stage stage) {
      return std::max(0, std::min(tries, tries_for_memory(seen, stage) - 1));
    };
    seen.load_failures = spent(before.tries.load, Stage::Load);
    seen.train_failures = spent(before.tries.train, Stage::Train);
    seen.preempted = before.tries.preempted;
    seen.crowded = before.tries.crowded;
    seen.goes_on = true;
    const bool shares = written.gpu_memory > Bytes{} || shape_of(index).terms.learns_gpu_memory;
    if (written.gpus > 0 && before.largest) {
      seen.gpu_request.gpu_memory = {};
      seen.gpu_request.largest = true;
      seen.gpu_memory_most = before.gpu_memory;
    } else if (written.gpus > 0 && shares && before.gpu_memory > written.gpu_memory) {
      seen.gpu_request.gpu_memory = seen.gpu_memory_most = before.gpu_memory;
    }
    const Bytes memory = std::max(written.memory, before.memory);
    if (!two_phase(index)) {
      seen.request = seen.gpu_request;
      seen.request.cpus = written.cpus;
      seen.request.disk = written.disk;
    }
    seen.request.memory = memory;
  }
  for (const model::TakenBefore& taken : batch.taken) {
    learn({first + taken.task.value}, taken.memory, taken.gpu_memory, taken.gpu_memory_written);
  }
}

void Outside::learn(model::TaskIndex index, Bytes memory, Bytes gpu_memory) {
  learn(index, memory, gpu_memory, shape_of(index).terms.request.gpu_memory);
}

void Outside::learn(model::TaskIndex index, Bytes memory, Bytes gpu_memory, Bytes written) {
  remember(memory_peaks[task(index).shape.value].of_finished, memory);
  remember(gpu_memory_peaks[task(index).shape.value].of_finished, gpu_memory);
  learn_ratio(index, gpu_memory, written);
}

void Outside::learn_ratio(model::TaskIndex index, Bytes gpu_memory, Bytes written) {
  if (written.count < 1000 || gpu_memory == Bytes{}) return;
  remember(gpu_ratios[task(index).group.value].of_finished,
           {gpu_memory.count / (written.count / 1000)});
}

/// A learned estimate replaces a request that the user did not set; it never lowers one that the
/// user set.
Bytes Outside::learned_memory(Bytes asked, model::TaskIndex index) const {
  const model::Shape& shape = shape_of(index);
  if (!policy.auto_adjust || shape.terms.memory_hard) return asked;
  const Bytes most = capacity.memory - kept_free;
  const SeenPeaks& peaks = memory_peaks[task(index).shape.value];
  const bool first_try = asked == shape.terms.request.memory;
  if (shape.terms.learns_memory && first_try && peaks.needed() > Bytes{}) {
    return std::min(std::max(peaks.needed(), shape.terms.memory_least), most);
  }
  return std::max(asked, std::min(peaks.seen(), most));
}

/// The same on each of its GPUs. As long as nothing is known, it has them for itself.
Bytes Outside::learned_gpu_memory(Bytes asked, model::TaskIndex index) const {
  const model::Shape& shape = shape_of(index);
  model::Request asks = shape.terms.request;
  asks.listed_only = shape.terms.two_phase;
  const Bytes most = gpus.most_on(asks);
  const SeenPeaks& peaks = gpu_memory_peaks[task(index).shape.value];
  if (asked == Bytes{}) {
    if (!shape.terms.learns_gpu_memory) return {};
    // A task that is not retried gets the memory that is enough for nearly all.
    const bool again = shape.terms.gpu_memory_limit != model::GpuMemoryLimit::Hard &&
                       tries_for_memory(task(index), Stage::Train) > 1;
    return std::min(again ? peaks.half_need() : peaks.needed(), most);
  }
  if (shape.terms.gpu_memory_limit == model::GpuMemoryLimit::Hard) return asked;
  if (!policy.auto_adjust && !shape.terms.learns_gpu_memory) return asked;
  const Bytes written = shape.terms.request.gpu_memory;
  const Bytes times = gpu_ratios[task(index).group.value].usual();
  Bytes others_took = std::max(peaks.seen(), Bytes{written.count / 1000 * times.count});
  if (shape.terms.gpu_memory_least > Bytes{}) others_took = std::max(others_took, peaks.needed());
  return std::max(asked, std::min(others_took, most));
}

Bytes Outside::cap_for(model::TaskIndex index, const std::vector<SeenGpu>& left) const {
  const model::GpuMemoryLimit limit = shape_of(index).terms.gpu_memory_limit;
  const Bytes promise = running.at(index).promise.gpu_memory;
  const auto& shares = gpus.shares_of(index);
  if (shares.empty() || promise == Bytes{} || limit == model::GpuMemoryLimit::None) return {};
  if (limit == model::GpuMemoryLimit::Hard) return promise;
  Bytes least = left[shares.front().gpu.value].free;
  bool has_company = false;
  for (const SeenShare& share : shares) {
    const SeenGpu& gpu = left[share.gpu.value];
    has_company = has_company || gpu.sharing.size() > 1;
    least = std::min(least, gpu.free);
  }
  return has_company ? std::max(promise, promise + least) : Bytes{};
}

bool Outside::was_at_its_cap(const SeenAttempt& attempt, Bytes peak) {
  return attempt.keeps_to_cap && attempt.cap > Bytes{} &&
         peak >= attempt.cap - Bytes{attempt.cap.count / 10};
}

bool Outside::has_hard_gpu_limit(model::TaskIndex index) const {
  return shape_of(index).terms.gpu_memory_limit == model::GpuMemoryLimit::Hard;
}

Bytes Outside::beginning_on(model::GpuIndex gpu, Instant at) const {
  Bytes most;
  for (const auto& [index, attempt] : running) {
    if (!attempt.trains_since || gpus.has_settled(index)) continue;
    if (at >= *attempt.trains_since + policy.gpu_settle_max) continue;
    for (const SeenShare& share : gpus.shares_of(index)) {
      if (share.gpu == gpu) most = std::max(most, share.promise);
    }
  }
  return most;
}

/// The task with most memory on a GPU beyond its promise, if its end would leave the others theirs.
std::optional<model::TaskIndex> Outside::to_be_taken_off(model::GpuIndex gpu) const {
  constexpr int kTimesMax = 5;
  if (gpus.overfull_readings[gpu.value] < 2 || interrupts > 0) return std::nullopt;
  std::optional<model::TaskIndex> worst;
  for (const auto& [index, attempt] : running) {
    const auto& shares = gpus.shares_of(index);
    const bool there =
        std::ranges::any_of(shares, [gpu](const SeenShare& share) { return share.gpu == gpu; });
    if (!there) continue;
    if (attempt.stop != StopReason::None || attempt.taken_off) return std::nullopt;
    if (attempt.word || !shape_of(index).terms.preemptible || task(index).preempted >= kTimesMax) {
      continue;
    }
    if (gpus.beyond(index, gpu) <= mib(64) || gpus.is_overfull(gpu, index)) continue;
    if (!worst || gpus.beyond(index, gpu) > gpus.beyond(*worst, gpu)) worst = index;
  }
  return worst;
}

/// The one that is most over its promise; else the youngest.
std::optional<model::TaskIndex> Outside::to_be_interrupted() const {
  constexpr int kTimesMax = 5;
  if (!policy.watches_memory || low_readings < 2 || interrupts > 0) return std::nullopt;
  std::optional<model::TaskIndex> victim;
  const auto over = [this](model::TaskIndex index) {
    const SeenAttempt& attempt = running.at(index);
    return attempt.holds() - attempt.promise.memory;
  };
  const auto since = [this](model::TaskIndex index) {
    const SeenAttempt& attempt = running.at(index);
    return attempt.started.value_or(attempt.granted);
  };
  for (const auto& [index, attempt] : running) {
    // One after the other: the freed memory must be seen first.
    if (attempt.stop != StopReason::None) return std::nullopt;
    const bool may = shape_of(index).terms.preemptible && task(index).preempted < kTimesMax;
    if (!may || attempt.word || attempt.measured == Bytes{}) continue;
    if (victim && over(index) < over(*victim)) continue;
    if (victim && over(index) == over(*victim) && since(index) <= since(*victim)) continue;
    victim = index;
  }
  return victim;
}

}  // namespace trainyard::sim
