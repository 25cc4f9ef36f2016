#include "run/fresh_looks.h"

#include <algorithm>
#include <iterator>

namespace trainyard::run {

void FreshLooks::add(model::TaskIndex task, Instant now) {
  if (followed_.size() >= kFollowedMax && !followed_.contains(task)) return;
  followed_.insert_or_assign(task, Followed{.began = now});
}

std::optional<Instant> FreshLooks::next() const {
  std::optional<Instant> first;
  for (const auto& [task, followed] : followed_) {
    first = std::min(first.value_or(due_at(followed)), due_at(followed));
  }
  return first ? std::optional(std::max(*first, not_before_)) : std::nullopt;
}

std::vector<model::TaskIndex> FreshLooks::take_due(Instant now) {
  std::vector<model::TaskIndex> due;
  for (auto it = followed_.begin(); it != followed_.end();) {
    Followed& followed = it->second;
    const bool is_due = due_at(followed) <= now;
    if (is_due && due.size() < kAtOnceMax) due.push_back(it->first);
    // One look is as good as two that are late, and a task that was left out this time is not owed
    // one.
    while (followed.looks < kAfter.size() && due_at(followed) <= now) ++followed.looks;
    it = followed.looks == kAfter.size() ? followed_.erase(it) : std::next(it);
  }
  if (!due.empty()) not_before_ = now + kPause;
  return due;
}

}  // namespace trainyard::run
