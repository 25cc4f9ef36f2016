// The part of the scheduler that puts what waits in order.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/time.h"
#include "model/command.h"
#include "model/ids.h"
#include "model/plan.h"
#include "model/resources.h"
#include "model/status.h"
#include "schedule/gpu_room.h"
#include "schedule/ledger.h"
#include "schedule/lookahead.h"
#include "schedule/scheduler.h"
#include "schedule/state.h"

namespace trainyard {
namespace {

/// Runs are played for so many tasks at most, and so many tasks are played in all.
constexpr std::size_t kProspectsMax = 5'000;
constexpr std::size_t kPlayedMax = 200'000;

/// What it takes of the memory of the host and of all GPUs, in millionths.
std::int64_t share_of(const Request& request, const Capacity& capacity) {
  Bytes gpus;
  for (const Gpu& gpu : capacity.gpus) gpus += gpu.memory;
  const auto whole = static_cast<double>(std::max<std::int64_t>(gpus.count, 1));
  const auto memory = static_cast<double>(std::max<std::int64_t>(capacity.memory.count, 1));
  double share = static_cast<double>(request.memory.count) / memory;
  if (wants_whole_gpus(request)) {
    share += static_cast<double>(request.gpus) / static_cast<double>(capacity.gpus.size());
  } else {
    share += static_cast<double>(request.gpu_memory.count * request.gpus) / whole;
  }
  return static_cast<std::int64_t>(share * 1e6);
}

}  // namespace

/// Looks ahead where it is known how long everything takes that may run now; else tasks go in the
/// order of the job file. Two-phase ones on GPUs do not: those that take the smallest part of the
/// machine are loaded first, so that many can train, and of those that have loaded the one that
/// needs most of a GPU trains first, as what is small fits beside it.
void Scheduler::State::put_in_order() {
  std::vector<TaskIndex> open;
  std::vector<Prospect> prospects;
  bool known = limits_.looks_ahead;
  bool gpus = false;
  bool differ = false;
  for (TaskIndex task{0}; tasks.knows(task); ++task.value) {
    if (tasks[task].verdict != Verdict::None) continue;
    if (groups_.phase(group_of(task)) != GroupPhase::Running) continue;
    const Shape& shape = shape_of(task);
    gpus = gpus || shape.request.gpus > 0;
    known = known && shape.train_expected > Duration{0} && open.size() < kProspectsMax;
    differ = differ || (!open.empty() && tasks[task].shape != tasks[open.front()].shape);
    if (!known && (gpus || !limits_.looks_ahead)) break;
    if (!known) continue;
    open.push_back(task);
    prospects.push_back({.load = shape.load_expected,
                         .train = shape.train_expected,
                         .request = shape.request,
                         .two_phase = shape.two_phase});
  }
  if (known && differ) return follow(open, prospects);
  if (gpus) order_by_size();
}

void Scheduler::State::order_by_size() {
  std::vector<std::int64_t> loads(tasks.count());
  std::vector<std::int64_t> trains(tasks.count());
  for (TaskIndex task{0}; tasks.knows(task); ++task.value) {
    const Shape& shape = shape_of(task);
    if (!shape.two_phase || shape.request.gpus == 0) continue;
    loads[task.value] = share_of(shape.request, capacity_);
    const bool whole = wants_whole_gpus(shape.request);
    trains[task.value] = -(whole ? std::int64_t{1} << 60U : shape.request.gpu_memory.count);
  }
  waiting_.set_ranks(std::move(loads));
  loaded_.set_ranks(std::move(trains));
}

void Scheduler::State::follow(const std::vector<TaskIndex>& open,
                              const std::vector<Prospect>& prospects) {
  Stock stock{.memory = capacity_.memory - memory_kept_free(limits_, capacity_),
              .cpus = capacity_.cpus,
              .gpus = {}};
  for (const GpuRoom& gpu : chooser_.empty(gpus_.room())) {
    stock.gpus.push_back(gpu.present ? gpu.free : Bytes{});
  }
  const auto runs = std::clamp<std::size_t>(kPlayedMax / open.size(), 40, 1'000);
  const Foresight seen = look_ahead(prospects, stock, static_cast<int>(runs));
  std::vector<std::int64_t> ranks(tasks.count(), static_cast<std::int64_t>(tasks.count()));
  for (std::size_t i = 0; i < seen.order.size(); ++i) {
    ranks[open[seen.order[i]].value] = static_cast<std::int64_t>(i);
  }
  ahead_max_ = seen.ahead_max;
  waiting_.set_ranks(ranks);
  loaded_.set_ranks(std::move(ranks));
}

}  // namespace trainyard
