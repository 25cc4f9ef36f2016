#include "process/keeper_patience.h"

#include <utility>

namespace trainyard::process {

void KeeperPatience::falls_silent() {
  if (silent_) return;
  *this = {};
  silent_ = true;
}

KeeperPatience::Step KeeperPatience::look(const std::optional<Seen>& keeper) {
  if (!silent_) return Step::Wait;
  const bool stopped = keeper && keeper->state == 'T';
  found_stopped_ = stopped ? found_stopped_ + 1 : 0;
  if (stopped) {
    ++looks_;
    return found_stopped_ > kStoppedMax ? Step::Kill : Step::Wake;
  }
  // A keeper whose memory is being read back from the disk makes progress, however slowly.
  const bool swaps =
      keeper && std::exchange(major_faults_, keeper->major_faults) < keeper->major_faults;
  if (swaps) return Step::Wait;
  return ++looks_ >= kSilentMax ? Step::Kill : Step::Wait;
}

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
