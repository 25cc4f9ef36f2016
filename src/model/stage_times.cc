#include "model/stage_times.h"

#include "base/time.h"
#include "model/status.h"

namespace trainyard::model {

void StageTimes::enter(Status status, Instant at) {
  // Also when it is told to end while it loads: how long it did is worth knowing then, too.
  if (loading) load = at - *loading;
  if (training) train = at - *training;
  loading.reset();
  training.reset();
  if (status == Status::Loading) {
    ++load_numbers;
    loading = at;
  } else if (status == Status::Training) {
    ++train_numbers;
    training = at;
  }
}

}  // namespace trainyard::model
