#include "job/rounds.h"

#include <algorithm>
#include <variant>

#include "job/job.h"
#include "model/ids.h"

namespace trainyard::job {
namespace {

bool ended_well(model::Verdict verdict) {
  return verdict == model::Verdict::Finished || verdict == model::Verdict::NotNeeded;
}

}  // namespace

void Rounds::see(const model::Turn& turn, const Jobs& jobs) {
  for (std::size_t i = 0; i < turn.events.size(); ++i) {
    if (const auto* const batch = std::get_if<model::BatchAdded>(&turn.events[i].what)) {
      add(*batch, jobs);
    }
    for (const model::Change& change : turn.decisions[i].changes) {
      if (const auto* const task = std::get_if<model::TaskChanged>(&change)) this->change(*task);
    }
  }
}

void Rounds::add(const model::BatchAdded& batch, const Jobs& jobs) {
  const std::uint32_t first = known_;
  const auto tasks = static_cast<std::uint32_t>(batch.plan->tasks.size());
  known_ += tasks;
  const Job& job = jobs.at(batch.number - 1);
  const auto repeat = job.repeat();
  if (!repeat) return;  // A submission.
  has_begun_ = true;
  round_ = repeat->round;
  first_ = first;
  is_left_.assign(tasks, false);
  is_repeated_.assign(tasks, false);
  for (std::uint32_t task = 0; task < tasks; ++task) {
    is_repeated_[task] = job.is_repeated({task});
    is_left_[task] = is_repeated_[task] && !ended_well(batch.plan->tasks[task].before);
  }
  left_ = static_cast<std::size_t>(std::ranges::count(is_left_, true));
}

void Rounds::change(const model::TaskChanged& task) {
  const std::uint32_t index = task.key.task.value - first_;
  if (task.key.task.value < first_ || index >= is_left_.size() || !is_repeated_[index]) return;
  const bool is_left = !ended_well(task.verdict);
  if (is_left == is_left_[index]) return;
  is_left_[index] = is_left;
  if (is_left) {
    ++left_;
  } else {
    --left_;
  }
}

}  // namespace trainyard::job
