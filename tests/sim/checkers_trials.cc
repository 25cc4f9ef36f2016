// The part of the checkers that follows those who are tried before the others of their group start.
#include <cstdint>
#include <optional>

#include "base/bytes.h"
#include "base/time.h"
#include "model/event.h"
#include "model/ids.h"
#include "model/status.h"
#include "model/waiting.h"
#include "sim/checkers.h"
#include "sim/faults.h"
#include "sim/outside.h"

namespace trainyard::sim {

/// Its present memory on a GPU is its need for the written request, and so for the others of its
/// group.
void Checkers::trial_is_over(model::GroupIndex group, model::TaskIndex tried) {
  if (const auto found = outside_.running.find(tried); found != outside_.running.end()) {
    const Bytes peak = outside_.gpus.peak_of(tried);
    if (!Outside::was_at_its_cap(found->second, peak)) {
      outside_.learn_ratio(tried, peak, outside_.shape_of(tried).terms.request.gpu_memory);
    }
  }
  outside_.end_trial(group);
}

/// Before all other effects of an event: a task that has trained for this time has passed its
/// trial.
void Checkers::look_at_trials() {
  for (std::uint32_t index = 0; index < outside_.groups.size(); ++index) {
    const std::optional<model::TaskIndex> tried = outside_.groups[index].tried_first;
    if (!tried) continue;
    const std::optional<Instant> since = outside_.lives_since(*tried);
    if (!since || now_ - *since < workload_.policy.try_first_time) continue;
    counts_.count(Fault::TrialLives);
    trial_is_over({index}, *tried);
  }
}

void Checkers::progressed(const model::Progressed& news) {
  const auto found = outside_.running.find(news.key.task);
  if (found == outside_.running.end() || found->second.key != news.key) return;
  if (found->second.trains_since) outside_.gpus.settle(news.key.task);
  const model::GroupIndex group = outside_.task(news.key.task).group;
  if (outside_.groups[group.value].tried_first != news.key.task) return;
  if (!outside_.lives_since(news.key.task)) return;
  counts_.count(Fault::TrialTells);
  trial_is_over(group, news.key.task);
}

/// A task that is tried first has ended, and will not be retried.
void Checkers::trial_ended(const SeenAttempt& attempt) {
  const model::TaskIndex index = attempt.key.task;
  const model::GroupIndex group = outside_.task(index).group;
  SeenGroup& seen = outside_.groups[group.value];
  if (seen.tried_first != index || outside_.interrupts > 0) return;
  if (expected_.verdict == model::Verdict::Finished) return outside_.end_trial(group);
  const bool by_others = expected_.failure == model::Failure::Lost ||
                         attempt.stop == StopReason::NoGpu || !attempt.requests.empty();
  if (by_others) return outside_.leave_trial(index);
  counts_.count(Fault::TrialFails);
  seen.first_failed = true;
  seen.tried_first.reset();
}

void Checkers::check_trials() {
  for (std::uint32_t index = 0; index < outside_.groups.size(); ++index) {
    const SeenGroup& group = outside_.groups[index];
    expect(!group.first_failed || group.open == 0,
           "nobody of a group waits after the one that was tried first has failed");
    if (!group.tried_first) continue;
    if (said_free_) expect(said_free_->at == now_, "how long somebody has lived is that of now");
    for (const model::TaskIndex task : outside_.open_tasks_of({index})) {
      if (!outside_.is_held(task)) continue;
      const model::Reason& told = outside_.reasons[outside_.task(task).shape.value];
      bool another = false;
      for (const model::TaskIndex other : outside_.open_tasks_of({index})) {
        const bool in_room = outside_.waiting.contains(other) || outside_.loaded.contains(other);
        another = another || (in_room && outside_.task(other).shape == outside_.task(task).shape);
      }
      // The reason of its kind is that of the one that is tried first, and does not name it.
      if (another) continue;
      expect_of(task,
                told.cause == model::Cause::TriedFirst && told.first == group.tried_first &&
                    told.first_since == outside_.lives_since(*group.tried_first),
                "who waits for the one that is tried first says so, and since when that trains");
    }
  }
}

}  // namespace trainyard::sim
