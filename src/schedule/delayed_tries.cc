#include "schedule/delayed_tries.h"

#include "base/check.h"
#include "schedule/another_try.h"

namespace trainyard::schedule {

void DelayedTries::add(model::TaskIndex task, Instant at, Bytes memory) {
  const bool is_new = tasks_.try_emplace(task, Waiting{.at = at, .memory = memory}).second;
  check(is_new, "a task waits for one next try");
  order_.insert({at, task});
}

std::optional<DelayedTries::Waiting> DelayedTries::remove(model::TaskIndex task) {
  const auto found = tasks_.find(task);
  if (found == tasks_.end()) return std::nullopt;
  const Waiting waiting = found->second;
  order_.erase({waiting.at, task});
  tasks_.erase(found);
  return waiting;
}

std::vector<DelayedTries::Due> DelayedTries::take_due(Instant now) {
  std::vector<Due> due;
  while (!order_.empty() && order_.begin()->first <= now) {
    const model::TaskIndex task = order_.begin()->second;
    due.push_back({.task = task, .memory = tasks_.at(task).memory});
    remove(task);
  }
  return due;
}

std::vector<model::TaskIndex> DelayedTries::take(model::TaskIndex first, model::TaskIndex last) {
  std::vector<model::TaskIndex> taken;
  for (auto it = tasks_.lower_bound(first); it != tasks_.end() && it->first < last;) {
    taken.push_back(it->first);
    order_.erase({it->second.at, it->first});
    it = tasks_.erase(it);
  }
  return taken;
}

Duration DelayedTries::spread(model::AttemptKey failed, Instant now) {
  const auto before = std::exchange(last_spread_, Failed{.task = failed.task, .at = now});
  const bool together = before && before->task != failed.task && now - before->at < kRetrySpread;
  return together ? spread_delay(failed) : Duration{0};
}

std::optional<Instant> DelayedTries::first() const {
  if (order_.empty()) return std::nullopt;
  return order_.begin()->first;
}

}  // namespace trainyard::schedule
