// The part of the scheduler that learns from tasks how much memory others like them need, and what
// it costs them to share GPUs.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <utility>

#include "base/bytes.h"
#include "base/time.h"
#include "model/command.h"
#include "model/ids.h"
#include "model/plan.h"
#include "model/resources.h"
#include "model/terms.h"
#include "schedule/another_try.h"
#include "schedule/estimates.h"
#include "schedule/ledger.h"
#include "schedule/machine_book.h"
#include "schedule/paces.h"
#include "schedule/scheduler.h"
#include "schedule/state.h"

namespace trainyard::schedule {
namespace {

/// Whether users would read something new: a factor has one decimal, and more tasks count once
/// there are twice as many.
bool differs(const model::SharingMeasured& now, const model::SharingMeasured& reported) {
  const auto tenths = [](double factor) { return std::lround(factor * 10); };
  return now.to_a_gpu != reported.to_a_gpu || now.to_a_gpu_max != reported.to_a_gpu_max ||
         tenths(now.factor) != tenths(reported.factor) ||
         (now.to_a_gpu > 1 && now.tasks > reported.tasks && now.tasks >= 2 * reported.tasks);
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

/// The part of a GPU that keeps a task of the shape busy alone, in thousandths, as written or as
/// derived from measurements; 0: unknown, and sharing is taken to be free.
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
    // More tasks on a GPU were found to gain nothing before: that is not tried again.
    const auto before = prices_before_.find(shape);
    const int limit = before == prices_before_.end() ? 0 : before->second.to_a_gpu_max;
    const bool says_less = now.to_a_gpu_max == 0 && now.to_a_gpu > 0 && now.to_a_gpu <= limit;
    if (says_less) now.to_a_gpu_max = limit;
    model::SharingMeasured& reported = prices_[shape];
    if (!differs(now, reported)) continue;
    reported = now;
    out.changes.emplace_back(now);
  }
}

void Scheduler::State::learn_from_running(const MachineBook& book) {
  for (const model::TaskIndex task : book.ledger.holders()) {
    Running& running = running_.at(task);
    running.memory_peak = std::max(running.memory_peak, book.ledger.memory_measured_of(task));
    const Bytes of_gpu = book.gpus.peak_of(task);
    // The memory of a capped task is not what it needs, also while it runs.
    const bool capped = running.is_near_its_cap(of_gpu);
    tell_taken(running, {.memory = running.memory_peak, .gpu_memory = capped ? Bytes{} : of_gpu});
  }
}

void Scheduler::State::tell_taken(Running& running, const Peak& taken) {
  estimates_.unfinished(tasks[running.key.task].shape, std::exchange(running.counted, taken),
                        taken);
}

/// The memory to reserve. A task without a request gets the learned estimate. A request of the job
/// file is not lowered, but is raised to what tasks of the same shape were measured to use.
Bytes Scheduler::State::learned_memory(Bytes asked, model::ShapeIndex shape) const {
  // The use of other tasks says nothing about a hard limit.
  if (!policy_.auto_adjust || shapes_[shape.value].terms.memory_hard) return asked;
  const Bytes most = memory_most(shapes_[shape.value].terms.request.where);
  const bool retry = asked != shapes_[shape.value].terms.request.memory;
  const Bytes needed = estimates_.needed(shape).memory;
  if (shapes_[shape.value].terms.learns_memory && !retry && needed > Bytes{}) {
    return std::min(std::max(needed, shapes_[shape.value].terms.memory_least), most);
  }
  return std::max(asked, std::min(estimates_.seen(shape).memory, most));
}

Bytes Scheduler::State::learned_gpu_memory(Bytes asked, model::ShapeIndex shape) const {
  const model::Shape& of = shapes_[shape.value];
  model::Request request = of.terms.request;
  request.listed_only = of.terms.two_phase;
  const Bytes most = gpu_memory_most(request);
  if (of.terms.learns_gpu_memory && asked == Bytes{}) {
    // Reserving for each task what the largest one took would leave GPUs half empty: the median is
    // reserved, and a task that takes more finds what others leave, or is retried with more. A task
    // with one try, or with a hard limit, would end then: it reserves what nearly all have taken.
    const bool once = ends_without_gpu_memory(of.terms, policy_);
    const Bytes known =
        once ? estimates_.needed(shape).gpu_memory : estimates_.usual_gpu_memory(shape);
    return std::min(known, most);
  }
  const bool whole = asked == Bytes{};
  // The use of other tasks says nothing about a hard limit.
  const bool hard = of.terms.gpu_memory_limit == model::GpuMemoryLimit::Hard;
  if (whole || hard || !(policy_.auto_adjust || of.terms.learns_gpu_memory)) return asked;
  // A request that was too small for one task of a group is usually too small for the others.
  const Bytes by_ratio = estimates_.gpu_memory_by_ratio(of.group, of.terms.request.gpu_memory);
  // A number that may grow is one that is learned, and has a margin like others.
  const Bytes taken = of.terms.gpu_memory_least > Bytes{} ? estimates_.needed(shape).gpu_memory
                                                          : estimates_.seen(shape).gpu_memory;
  const Bytes known = std::max({taken, estimates_.seen(shape).gpu_memory, by_ratio});
  return std::max(asked, std::min(known, most));
}

/// Says what one that begins is given because of others of its kind. `asked` is what its lane asks
/// for, where another try asks for more than its shape; of that nothing was learned.
void Scheduler::State::tell_learned(model::ShapeIndex shape, const model::Request& asked,
                                    const model::Request& given, model::Decision& out) {
  // Only a change of a tenth or more is reported: the percentile moves a little with every end.
  constexpr std::int64_t kWorthTelling = 10;
  const auto clearly = [](Bytes now, Bytes reported) {
    return std::abs(now.count - reported.count) * kWorthTelling >=
           std::max<std::int64_t>(reported.count, 1);
  };
  const model::Request& written = shapes_[shape.value].terms.request;
  const auto reported = reported_learned_.find(shape);
  model::Learned now =
      reported == reported_learned_.end() ? model::Learned{.shape = shape} : reported->second;
  bool fresh = false;
  if (asked.memory == written.memory && given.memory != asked.memory) {
    fresh = clearly(given.memory, now.memory);
    if (fresh) now.memory = given.memory;
  }
  const bool on_gpus = asked.gpus > 0 && !asked.largest && asked.gpu_memory == written.gpu_memory;
  if (on_gpus && given.gpu_memory != asked.gpu_memory &&
      clearly(given.gpu_memory, now.gpu_memory)) {
    now.gpu_memory = given.gpu_memory;
    fresh = true;
  }
  if (!fresh) return;
  now.tasks = static_cast<int>(estimates_.count_finished(shape));
  reported_learned_[shape] = now;
  out.changes.emplace_back(now);
}

}  // namespace trainyard::schedule
