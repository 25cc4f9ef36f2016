#include "process/keeper_presence.h"

#include <utility>

namespace trainyard::process {

KeeperPresence::Clock::duration KeeperPresence::wakes(const Wait& wait) {
  const bool late = wait.until && wait.over - *wait.until >= kLate;
  const bool away = wait.was_stopped || late;
  const Clock::time_point before = std::exchange(woke_, wait.over);
  was_away_ = was_away_ || away;
  happened_at_ = was_away_ ? heard_until_ : wait.over;
  if (wait.heard_all) {
    heard_until_ = wait.over;
    was_away_ = false;
  }
  return away ? wait.over - before : Clock::duration{0};
}

}  // namespace trainyard::process
