#include "model/spoken_words.h"

#include <algorithm>

namespace trainyard::model {

void SpokenWords::connects() {
  before_ = step_;
  out_of_memory_before_ = out_of_memory_;
}

void SpokenWords::grant_device() { out_of_memory_ = out_of_memory_before_ = false; }

bool SpokenWords::hear(Said said) {
  if (said == Said::OutOfMemory) {
    // It keeps what it has loaded, and waits as before.
    step_ = std::min(step_, Step::Loaded);
    before_ = std::min(before_, Step::Loaded);
    out_of_memory_ = true;
    return !out_of_memory_before_;
  }
  const Step step = step_of(said);
  if (step != Step::Nothing && step <= before_) return false;
  step_ = std::max(step_, step);
  return true;
}

SpokenWords::Step SpokenWords::step_of(Said said) {
  switch (said) {
    case Said::Loading:
      return Step::Loading;
    case Said::Loaded:
      return Step::Loaded;
    case Said::Training:
      return Step::Training;
    case Said::Trained:
    case Said::OutOfMemory:
    case Said::Failed:
    case Said::Nonsense:
      break;
  }
  return Step::Nothing;
}

}  // namespace trainyard::model
