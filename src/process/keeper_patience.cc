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

}  // namespace trainyard::process
