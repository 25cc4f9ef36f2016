#include "schedule/start_refusals.h"

#include <algorithm>

namespace trainyard::schedule {
namespace {

/// The wait after a refusal: twice the wait before it, from 1 s to 1 min.
Duration next_wait(Duration before) {
  return std::clamp(2 * before, Duration{1'000}, Duration{60'000});
}

}  // namespace

void StartPause::refuse(model::AttemptKey key, const std::string& why, Instant at) {
  // Attempts that were started before the first refusal are one refusal together with it.
  if (pause_ && pause_->tried != key) return;
  if (!pause_) pause_ = Pause{.why = {}, .since = at, .tries_at = {}, .tried = {}};
  pause_->why = why;
  pause_->length = next_wait(pause_->length);
  pause_->tries_at = at + pause_->length;
  pause_->tried.reset();
}

void StartPause::start(Instant at) {
  last_start_ = std::max(last_start_, at);
  end();
}

bool StartRefusals::excuse(model::TaskIndex task, const StartPause& pause, Duration patience,
                           Instant at) {
  Refusals& refusals = tasks_.try_emplace(task, Refusals{.since = at}).first->second;
  if (pause.last_start() <= refusals.since) return true;
  if (refusals.delays >= patience) {
    forget(task);
    return false;
  }
  refusals.delay = next_wait(refusals.delay);
  refusals.delays += refusals.delay;
  return true;
}

}  // namespace trainyard::schedule
