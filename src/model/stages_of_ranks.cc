#include "model/stages_of_ranks.h"

#include <algorithm>
#include <cstddef>

#include "base/check.h"

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

StagesOfRanks::StagesOfRanks(int ranks)
    : stages_(static_cast<std::size_t>(std::max(ranks, 1)), Stage::Started) {
  check(ranks > 0, "a task has at least one process");
}

bool StagesOfRanks::may_say(Stage stage, Said said) const {
  switch (said) {
    case Said::Loading:
      return stage == Stage::Started;
    case Said::Loaded:
      return stage == Stage::Loading;
    case Said::Training:
      return told_to_train_ && stage == Stage::Loaded;
    case Said::Trained:
      return told_to_train_ && (stage == Stage::Loaded || stage == Stage::EndTells);
    case Said::OutOfMemory:
    case Said::Failed:
    case Said::Nonsense:
      return true;
  }
  return false;
}

bool StagesOfRanks::are_all_in(Stage stage) const {
  return std::ranges::all_of(stages_, [stage](Stage each) { return each == stage; });
}

std::optional<Said> StagesOfRanks::hear(int rank, Said said) {
  if (over_) return std::nullopt;
  Stage& stage = stages_.at(static_cast<std::size_t>(rank));
  bool tells = true;
  if (!may_say(stage, said)) {
    said = Said::Nonsense;
  } else if (said == Said::Loading) {
    tells = are_all_in(Stage::Started);
    stage = Stage::Loading;
  } else if (said == Said::Loaded) {
    stage = Stage::Loaded;
    tells = are_all_in(stage);
  } else if (said == Said::Training) {
    tells = std::ranges::count(stages_, Stage::EndTells) == 0;
    stage = Stage::EndTells;
  } else if (said == Said::Trained) {
    stage = Stage::Trained;
    tells = are_all_in(stage);
  }
  over_ = said == Said::OutOfMemory || said == Said::Failed || said == Said::Nonsense;
  return tells ? std::optional(said) : std::nullopt;
}

}  // namespace trainyard::model
