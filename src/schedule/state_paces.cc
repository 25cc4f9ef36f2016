// The part of the scheduler that knows what sharing GPUs costs.
#include <algorithm>
#include <cmath>
#include <optional>

#include "base/time.h"
#include "model/command.h"
#include "model/ids.h"
#include "model/plan.h"
#include "model/resources.h"
#include "schedule/paces.h"
#include "schedule/scheduler.h"
#include "schedule/state.h"

namespace trainyard::schedule {
namespace {

/// What people would read is another: a factor has one decimal, and more tasks count for as much as
/// they add to those that were told of.
bool differs(const model::SharingMeasured& now, const model::SharingMeasured& told) {
  const auto tenths = [](double factor) { return std::lround(factor * 10); };
  return now.to_a_gpu != told.to_a_gpu || now.to_a_gpu_max != told.to_a_gpu_max ||
         tenths(now.factor) != tenths(told.factor) ||
         (now.to_a_gpu > 1 && now.tasks > told.tasks && now.tasks >= 2 * told.tasks);
}

}  // namespace

void Scheduler::State::promise_gpus(model::TaskIndex task, const model::Site& site,
                                    const model::Request& request, Instant at) {
  machines_[site.machine.value].gpus.promise(task, site.gpus, request.gpu_memory, request.sharing);
  if (!site.gpus.empty()) paces_.began(task, tasks[task].shape, site, at);
}

/// The cost of sharing a GPU for a shape, as this run has measured it, or else an earlier run.
model::SharingMeasured Scheduler::State::price_of(model::ShapeIndex shape) const {
  for (const auto* const prices : {&prices_, &prices_before_}) {
    const auto found = prices->find(shape);
    if (found == prices->end()) continue;
    if (found->second.to_a_gpu + found->second.to_a_gpu_max > 0) return found->second;
  }
  return {};
}

model::GpuSharing Scheduler::State::priced(model::GpuSharing written,
                                           model::ShapeIndex shape) const {
  const int most = price_of(shape).to_a_gpu_max;
  const bool less = written.max_per_gpu == 0 || most < written.max_per_gpu;
  if (most > 0 && less) written.max_per_gpu = most;
  return written;
}

/// The part of a GPU that keeps a task of it busy alone, in thousandths, as it is written or as
/// what was measured comes to; 0: nobody knows, and sharing is taken to be free.
int Scheduler::State::gpu_share_of(model::ShapeIndex shape) const {
  const int written = shapes_[shape.value].terms.request.sharing.utilization;
  const model::SharingMeasured price = price_of(shape);
  if (written > 0 || price.to_a_gpu == 0) return written;
  return static_cast<int>(std::lround(std::min(1000.0, 1000 / price.factor)));
}

void Scheduler::State::tell_prices(model::Decision& out) {
  for (const model::ShapeIndex shape : paces_.take_news()) {
    const Paces::Price price = paces_.price(shape);
    const Paces::Gain best = price.best.value_or(Paces::Gain{});
    model::SharingMeasured now{.shape = shape,
                               .to_a_gpu = best.to_a_gpu,
                               .factor = best.factor,
                               .tasks = best.tasks,
                               .to_a_gpu_max = price.to_a_gpu_max};
    // More were found to gain nothing before: nobody tries that again.
    const auto before = prices_before_.find(shape);
    const int limit = before == prices_before_.end() ? 0 : before->second.to_a_gpu_max;
    const bool says_less = now.to_a_gpu_max == 0 && now.to_a_gpu > 0 && now.to_a_gpu <= limit;
    if (says_less) now.to_a_gpu_max = limit;
    model::SharingMeasured& told = prices_[shape];
    if (!differs(now, told)) continue;
    told = now;
    out.changes.emplace_back(now);
  }
}

}  // namespace trainyard::schedule
