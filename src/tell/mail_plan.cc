#include "tell/mail_plan.h"

#include <algorithm>
#include <utility>

namespace trainyard::tell {

void MailPlan::add(model::GroupIndex group) {
  if (std::ranges::find(waiting_, group) == waiting_.end()) waiting_.push_back(group);
}

std::optional<Instant> MailPlan::due() const {
  if (waiting_.empty() || !may_send()) return std::nullopt;
  return last_ ? *last_ + limits_.min_interval : Instant{};
}

std::vector<model::GroupIndex> MailPlan::take(Instant now) {
  const std::optional<Instant> when = due();
  if (!when || now < *when) return {};
  last_ = now;
  ++sent_;
  return std::exchange(waiting_, {});
}

std::vector<model::GroupIndex> MailPlan::take_rest() { return std::exchange(waiting_, {}); }

}  // namespace trainyard::tell
