// The part of the scheduler that puts what waits in order.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
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
#include "schedule/lookahead.h"
#include "schedule/machine_book.h"
#include "schedule/scheduler.h"
#include "schedule/state.h"

namespace trainyard::schedule {
namespace {

/// A run that is played has so many prospects at most.
constexpr std::size_t kProspectsMax = 5'000;
/// Number of prospects that are played in all.
constexpr std::size_t kPlayedMax = 200'000;
/// Number of prospects that are played in one turn of an active run, which takes some 20 ms, so
/// that nothing else has to wait for it. Before a run begins to start tasks nothing waits.
constexpr std::size_t kPlayedInATurn = 5'000;

/// The share of the memory of the host and of all GPUs it sees that a two-phase task takes, in
/// millionths.
std::int64_t share_of(const model::Request& request, const model::Capacity& capacity) {
  Bytes gpus;
  int count = 0;
  for (const model::Gpu& gpu : capacity.gpus) {
    if (gpu.late) continue;
    gpus += gpu.memory;
    ++count;
  }
  const auto whole = static_cast<double>(std::max<std::int64_t>(gpus.count, 1));
  const auto memory = static_cast<double>(std::max<std::int64_t>(capacity.memory.count, 1));
  double share = static_cast<double>(request.memory.count) / memory;
  if (model::wants_whole_gpus(request)) {
    share += static_cast<double>(request.gpus) / std::max(count, 1);
  } else {
    share += static_cast<double>(request.gpu_memory.count * request.gpus) / whole;
  }
  return static_cast<std::int64_t>(share * 1e6);
}

}  // namespace

/// Looks ahead if the durations of all tasks that may run now are known; else tasks go in the order
/// of the job file. Two-phase ones on GPUs do not: those that take the smallest part of the machine
/// are loaded first, so that many can train. Of those that have loaded the one that needs most of a
/// GPU trains first, as small ones fit next to it.
void Scheduler::State::put_in_order() {
  std::vector<model::TaskIndex> open;
  bool known = policy_.looks_ahead;
  bool gpus = false;
  bool differ = false;
  for (model::TaskIndex task{0}; tasks.knows(task); ++task.value) {
    if (tasks[task].verdict != model::Verdict::None) continue;
    if (groups_.phase(group_of(task)) != model::GroupPhase::Running) continue;
    const model::Shape& shape = shape_of(task);
    gpus = gpus || shape.terms.request.gpus > 0;
    known = known && shape.terms.train_expected > Duration{0};
    // Different priorities say already which task goes first.
    known = known && (open.empty() || priority_of(task) == priority_of(open.front()));
    differ = differ || (!open.empty() && tasks[task].shape != tasks[open.front()].shape);
    // Without foresight only whether there are GPUs still matters.
    if (!known && (gpus || !policy_.looks_ahead)) break;
    if (!known) continue;
    open.push_back(task);
  }
  search_.reset();
  if (known && differ) {
    std::vector<Prospect> prospects = prospects_of(open);
    if (!prospects.empty()) return look_ahead_over(std::move(prospects));
  }
  if (gpus) order_by_size();
}

void Scheduler::State::order_by_size() {
  std::vector<std::int64_t> loads(tasks.count());
  std::vector<std::int64_t> trains(tasks.count());
  const model::Capacity all = whole();
  for (model::TaskIndex task{0}; tasks.knows(task); ++task.value) {
    const model::Shape& shape = shape_of(task);
    if (!shape.terms.two_phase || shape.terms.request.gpus == 0) continue;
    loads[task.value] = share_of(shape.terms.request, all);
    const bool whole = model::wants_whole_gpus(shape.terms.request);
    trains[task.value] = -(whole ? std::int64_t{1} << 60U : shape.terms.request.gpu_memory.count);
  }
  waiting_.set_turns(std::move(loads));
  loaded_.set_turns(std::move(trains));
}

/// The tasks of a shape go in the order of the job file, so that an order of tasks is one of
/// shapes. Where more tasks are open than a run may have prospects, several of a shape are one
/// prospect, which takes as long as they do one after another: the work is the same, and so is the
/// room. None where there are too many shapes.
std::vector<Prospect> Scheduler::State::prospects_of(const std::vector<model::TaskIndex>& open) {
  struct Last {
    std::uint32_t prospect = 0;
    std::size_t tasks = 0;  ///< Tasks of the shape, so far.
  };
  std::map<model::ShapeIndex, Last> last;
  for (const model::TaskIndex task : open) last.try_emplace(tasks[task].shape);
  std::size_t together = 1;
  if (open.size() > kProspectsMax) {
    if (last.size() >= kProspectsMax) return {};
    // The last prospect of a shape may have fewer tasks than the others: one more for each.
    const std::size_t full = kProspectsMax - last.size();
    together = (open.size() + full - 1) / full;
  }
  std::vector<Prospect> prospects;
  looked_ahead_.clear();
  for (const model::TaskIndex task : open) {
    const model::Terms& terms = shape_of(task).terms;
    Last& of_shape = last[tasks[task].shape];
    if (of_shape.tasks % together == 0) {
      of_shape.prospect = static_cast<std::uint32_t>(prospects.size());
      prospects.push_back({.load = terms.load_expected,
                           .train = terms.train_expected,
                           .request = terms.request,
                           .two_phase = terms.two_phase,
                           .gpu_share = gpu_share_of(tasks[task].shape)});
    } else {
      prospects[of_shape.prospect].train += terms.load_expected + terms.train_expected;
    }
    ++of_shape.tasks;
    looked_ahead_.push_back({.task = task, .prospect = of_shape.prospect});
  }
  return prospects;
}

void Scheduler::State::look_ahead_over(std::vector<Prospect> prospects) {
  // All machines as one: for an order that is near enough.
  Stock stock;
  for (const MachineBook& book : machines_) {
    if (book.is_gone) continue;
    stock.memory += book.memory_most(policy_);
    stock.cpus = stock.cpus + book.capacity.cpus;
    stock.gpu_utilization_max = book.chooser.utilization_max();
    if (policy_.gpu_strategy == model::GpuStrategy::IdleFirst) {
      stock.spread_max += book.share_of_gpus();
    }
    for (const GpuRoom& gpu : book.chooser.empty(book.gpus.room())) {
      stock.gpus.push_back(gpu.present ? gpu.free : Bytes{});
    }
  }
  // Few runs of many tasks, many of few: the time that it takes stays about the same.
  const auto runs = std::clamp<std::size_t>(kPlayedMax / prospects.size(), 40, 1'000);
  search_.emplace(std::move(prospects), std::move(stock), static_cast<int>(runs));
  const bool nothing_runs = running_.empty();
  search_->go_on(nothing_runs ? static_cast<int>(runs) : 1);
  follow();
}

/// Goes on with a search that was not over in the turns before.
void Scheduler::State::look_further() {
  if (!search_ || search_->is_done()) return;
  const auto runs = std::max<std::size_t>(kPlayedInATurn / search_->best().order.size(), 1);
  if (search_->go_on(static_cast<int>(runs))) follow();
  if (search_->is_done()) search_.reset();
}

void Scheduler::State::follow() {
  if (!search_) return;
  const Foresight& seen = search_->best();
  std::vector<std::int64_t> positions(seen.order.size());
  for (std::size_t i = 0; i < seen.order.size(); ++i) {
    positions[seen.order[i]] = static_cast<std::int64_t>(i);
  }
  std::vector<std::int64_t> turns(tasks.count(), static_cast<std::int64_t>(tasks.count()));
  for (const LookedAhead& it : looked_ahead_) turns[it.task.value] = positions[it.prospect];
  ahead_max_ = seen.ahead_max;
  waiting_.set_turns(turns);
  loaded_.set_turns(std::move(turns));
}

}  // namespace trainyard::schedule
