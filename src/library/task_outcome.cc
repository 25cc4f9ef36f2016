#include "trainyard/task_outcome.h"

#include <algorithm>
#include <array>

#include "library/task_state.h"
#include "model/status.h"

namespace trainyard {
namespace {

/// An outcome and its form in the journal.
struct Known {
  TaskOutcome outcome;
  model::Verdict verdict;
  model::Failure failure = model::Failure::None;
};

constexpr std::array<Known, 12> kKnown{
    {{.outcome = TaskOutcome::None, .verdict = model::Verdict::None},
     {.outcome = TaskOutcome::Finished, .verdict = model::Verdict::Finished},
     {.outcome = TaskOutcome::Exception,
      .verdict = model::Verdict::Failed,
      .failure = model::Failure::Error},
     {.outcome = TaskOutcome::OutOfMemory,
      .verdict = model::Verdict::Failed,
      .failure = model::Failure::OutOfMemory},
     {.outcome = TaskOutcome::TimeLimit,
      .verdict = model::Verdict::Failed,
      .failure = model::Failure::Timeout},
     {.outcome = TaskOutcome::Killed,
      .verdict = model::Verdict::Failed,
      .failure = model::Failure::Killed},
     {.outcome = TaskOutcome::Crashed,
      .verdict = model::Verdict::Failed,
      .failure = model::Failure::Crashed},
     {.outcome = TaskOutcome::Exited,
      .verdict = model::Verdict::Failed,
      .failure = model::Failure::Exit},
     {.outcome = TaskOutcome::NotStarted,
      .verdict = model::Verdict::Failed,
      .failure = model::Failure::CannotStart},
     {.outcome = TaskOutcome::Lost,
      .verdict = model::Verdict::Failed,
      .failure = model::Failure::Lost},
     {.outcome = TaskOutcome::Skipped, .verdict = model::Verdict::Skipped},
     {.outcome = TaskOutcome::Stopped, .verdict = model::Verdict::Stopped}}};

}  // namespace

std::string_view to_text(TaskOutcome outcome) {
  const auto known = std::ranges::find(kKnown, outcome, &Known::outcome);
  if (known == kKnown.end() || outcome == TaskOutcome::None) return "WAITING";
  const bool failed = known->verdict == model::Verdict::Failed;
  return failed ? model::to_text(known->failure) : model::to_text(known->verdict);
}

TaskOutcome library::outcome_of(model::Verdict verdict, model::Failure failure) {
  const bool failed = verdict == model::Verdict::Failed;
  const auto known = std::ranges::find_if(kKnown, [&](const Known& it) {
    return it.verdict == verdict && (!failed || it.failure == failure);
  });
  return known == kKnown.end() ? TaskOutcome::Lost : known->outcome;
}

}  // namespace trainyard
