#include "schedule/unwatched_end.h"

#include <optional>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "base/match.h"
#include "model/ids.h"
#include "schedule/ending.h"

namespace trainyard::schedule {
namespace {

/// The message about an attempt that the keeper killed because its yard had died.
std::string how_it_ended(const model::End& end) {
  const std::string how = match(
      end, [](const model::ExitedWith& it) { return fmt::format("exit code {}", it.code); },
      [](const model::KilledBy& it) { return model::signal_name(it.signal); },
      [](const auto& it) { return it.why; });
  return fmt::format("trainyard died while the task ran; the task was then killed: {}", how);
}

/// The last report of a task, as far as its status shows that.
std::optional<LastWord> word_of(const UnwatchedAttempt& known) {
  if (known.status == Status::Finished) {
    return LastWord{.said = model::Said::Trained, .message = {}};
  }
  if (known.status != Status::Unknown) return std::nullopt;
  return LastWord{.said = model::Said::Nonsense, .message = known.message};
}

Ending judge_unwatched(const UnwatchedAttempt& known, const model::AttemptEnded& ended) {
  // The task is not to blame: the resumed run starts it.
  const auto* const not_started = std::get_if<model::NotStarted>(&ended.end);
  if (not_started != nullptr && not_started->of_machine) {
    return {.verdict = model::Verdict::Stopped, .message = not_started->why};
  }
  const bool well = ended.end == model::End(model::ExitedWith{0});
  // Its work is done, even if it was stopped meanwhile, and a process that leaves a result has
  // trained: nobody was there to receive its message.
  const bool done = well && !ended.result.empty();
  const bool was_stopped = known.told_to_end && !done;
  const bool trains = known.status == Status::Training;
  const std::optional<LastWord> word = word_of(known);
  Ending ending =
      judge_attempt(ended, {.two_phase = known.two_phase,
                            .cause = was_stopped ? StopCause::Interrupt : StopCause::None,
                            .word = word,
                            .its_end_tells = known.its_end_tells || (done && trains)})
          .ending;
  if (ending.verdict == model::Verdict::Stopped) ending.message = how_it_ended(ended.end);
  const RankWords words = rank_words(ended.ranks, ending, known.ranks);
  ending.message = (word ? std::string() : words.before) + ending.message + words.after;
  return ending;
}

}  // namespace

model::Decision decide_unwatched_end(const UnwatchedAttempt& known,
                                     const model::AttemptEnded& ended) {
  const model::AttemptKey key{.task = {0}, .attempt = known.attempt};
  Ending ending = judge_unwatched(known, ended);
  model::Decision decision;
  const auto enter = [&](Status status) {
    decision.changes.emplace_back(model::TaskChanged{.key = key, .status = status});
  };
  const bool began = !std::holds_alternative<model::NotStarted>(ended.end);
  if (began && known.status == Status::Available && !known.two_phase) enter(Status::Training);
  const bool finished = ending.verdict == model::Verdict::Finished;
  if (finished && known.status != Status::Finished) enter(Status::Finished);
  const bool stopped = ending.verdict == model::Verdict::Stopped;
  decision.changes.emplace_back(model::TaskChanged{.key = key,
                                                   .status = finished  ? Status::Exited
                                                             : stopped ? Status::Interrupt
                                                                       : Status::Exception,
                                                   .verdict = ending.verdict,
                                                   .failure = ending.failure,
                                                   .stage = known.stage,
                                                   .exit_code = ending.exit_code,
                                                   .message = std::move(ending.message)});
  return decision;
}

}  // namespace trainyard::schedule
