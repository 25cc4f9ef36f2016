#include "model/stage_times.h"

#include <algorithm>

namespace trainyard::model {

void StageTimes::enter(Status status, Instant at) {
  // Also for a task that is stopped while it loads: that time is worth knowing, too.
  if (now == Stage::Load) load = at - *load_began;
  if (now == Stage::Train) train = at - *train_began;
  now.reset();
  if (status == Status::Loading) {
    ++load_numbers;
    now = Stage::Load;
    load_began = at;
  } else if (status == Status::Training) {
    ++train_numbers;
    now = Stage::Train;
    train_began = at;
  }
}

void StageTimes::end_by(Instant at) {
  const auto shorten = [at](std::optional<Duration>& stage, std::optional<Instant> began) {
    if (stage && began) stage = std::min(*stage, std::max(at - *began, Duration{0}));
  };
  shorten(load, load_began);
  shorten(train, train_began);
}

}  // namespace trainyard::model
