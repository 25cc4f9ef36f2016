#include "schedule/machine_time.h"

#include <algorithm>

namespace trainyard::schedule {

MachineTime::MachineTime(Instant joined, std::optional<Instant> until, Duration grace)
    : joined_(joined) {
  if (until) last_term_ = std::max(joined, Instant{until->since_start - grace - kForNews});
}

bool MachineTime::is_enough_for(const Wish& wish, Instant now) const {
  const std::optional<Instant> end = end_of(wish.before);
  if (!end) return true;
  if (now >= *end) return false;
  if (wish.goes_on_where_it_was || !wish.takes) return true;
  return now + *wish.takes <= *end || joined_ + *wish.takes > *end;
}

std::optional<Instant> MachineTime::end_of(Duration before) const {
  if (!last_term_) return std::nullopt;
  const Duration whole = *last_term_ - joined_;
  return Instant{last_term_->since_start - std::min(before, whole / 2)};
}

void MachineTime::began(Duration before) {
  const std::optional<Instant> end = end_of(before);
  if (end) next_end_ = std::min(next_end_.value_or(*end), *end);
}

}  // namespace trainyard::schedule
