#include "schedule/ending.h"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include "base/duration_text.h"
#include "base/list_text.h"
#include "base/match.h"
#include "model/ids.h"

namespace trainyard::schedule {
namespace {

Ending failed(model::Failure failure, std::string message, int exit_code = 0) {
  return {.verdict = model::Verdict::Failed,
          .failure = failure,
          .exit_code = exit_code,
          .message = std::move(message)};
}

/// judge_attempt() adds the message, as it knows the limits.
Ending over(ExceededLimit limit) {
  Ending ending = failed(model::Failure::OutOfMemory, {});
  ending.exceeded = limit;
  return ending;
}

Ending judge_own(const model::End& end) {
  return match(
      end,
      [](const model::ExitedWith& it) {
        if (it.code == 0) return Ending{};
        return failed(model::Failure::Exit, fmt::format("exited with code {}", it.code), it.code);
      },
      [](const model::KilledBy& it) {
        if (it.over_limit) return over(ExceededLimit::Memory);
        if (it.out_of_memory) {
          return failed(model::Failure::OutOfMemory, "killed by the kernel: out of memory");
        }
        const std::string name = model::signal_name(it.signal);
        const std::string_view crash = model::crash_meaning(it.signal);
        if (!crash.empty()) {
          return failed(model::Failure::Crashed, fmt::format("crashed with {} ({})", name, crash),
                        model::kSignalCode + it.signal);
        }
        return failed(model::Failure::Killed,
                      fmt::format("killed by signal {} ({})", it.signal, name));
      },
      [](const model::NotStarted& it) {
        Ending ending = failed(model::Failure::CannotStart, it.why);
        ending.of_machine = it.of_machine;
        return ending;
      },
      [](const model::Vanished& it) { return failed(model::Failure::Lost, it.why); });
}

/// "rank 1", "ranks 0 and 3", "ranks 0, 1 and 3"; of many how many they are.
std::string named(std::vector<int> ranks, int count) {
  constexpr std::size_t kNamedMax = 4;
  if (ranks.size() == 1) return fmt::format("rank {}", ranks.front());
  if (ranks.size() > kNamedMax) return fmt::format("{} of {} ranks", ranks.size(), count);
  std::ranges::sort(ranks);
  std::vector<std::string> numbers;
  numbers.reserve(ranks.size());
  for (const int rank : ranks) numbers.push_back(std::to_string(rank));
  return "ranks " + list_text(numbers);
}

std::string timeout_text(const TimeLimitReached& reached) {
  std::string text = fmt::format("time limit of {} reached", exact_text(reached.limit));
  if (reached.killed_after) {
    text +=
        fmt::format("; did not exit {} after SIGTERM, killed", exact_text(*reached.killed_after));
  }
  return text;
}

/// "used more memory than its limit of 200 MB (memory-limit: hard); it used at least 489 MB". The
/// peak is left out where it reads like the limit or is within it: the last sample was taken before
/// the attempt exceeded it.
std::string over_limit_text(ExceededLimit exceeded, const KnownOfAttempt& known, Bytes peak) {
  const bool gpu = exceeded == ExceededLimit::GpuMemory;
  const Bytes limit = gpu ? known.gpu_memory_limit : known.memory_limit;
  std::string text =
      gpu ? "used more of its GPU than its limit" : "used more memory than its limit";
  if (limit > Bytes{}) text += " of " + to_text(limit);
  text += fmt::format(" ({}: hard)", gpu ? "gpu-memory-limit" : "memory-limit");
  if (!gpu && peak > limit && to_text(peak) != to_text(limit)) {
    text += "; it used at least " + to_text(peak);
  }
  return text;
}

std::string still_running(const std::vector<int>& finished, int count) {
  std::vector<int> running;
  for (int rank = 0; rank < count; ++rank) {
    if (std::ranges::find(finished, rank) == finished.end()) running.push_back(rank);
  }
  if (running.empty()) return {};
  if (finished.empty()) return fmt::format("; all {} ranks were still running", count);
  return fmt::format("; {} {} still running", named(running, count),
                     running.size() == 1 ? "was" : "were");
}

Ending stopped(std::string message) {
  return {.verdict = model::Verdict::Stopped, .message = std::move(message)};
}

/// An attempt that was stopped has ended for that cause, whatever its exit code.
Ending judge(const model::End& end, const KnownOfAttempt& known) {
  // An attempt that never was, or whose end nobody saw, did not end because it was stopped. While
  // the run is interrupted, such a task has not failed, either, unless it cannot be started at all:
  // a resumed run starts it.
  const bool is_interrupted = known.cause == StopCause::Interrupt;
  const auto* const vanished = std::get_if<model::Vanished>(&end);
  if (vanished != nullptr) return is_interrupted ? stopped(vanished->why) : judge_own(end);
  const auto* const not_started = std::get_if<model::NotStarted>(&end);
  const bool is_left_over = not_started != nullptr && not_started->of_machine && is_interrupted;
  if (not_started != nullptr && !is_left_over) return judge_own(end);
  switch (known.cause) {
    case StopCause::None:
      return judge_own(end);
    case StopCause::TimeLimit:
      return failed(model::Failure::Timeout, timeout_text(known.time_limit));
    case StopCause::KillAsked:
      return failed(model::Failure::Killed, "killed on request");
    case StopCause::FailFast:
      return failed(model::Failure::Killed,
                    "killed because another task of its group failed (fail-fast)");
    case StopCause::Interrupt:
      return stopped("the run was interrupted");
    case StopCause::OutOfMemory:
      return failed(model::Failure::OutOfMemory, "out of memory");
    case StopCause::MemoryLimit:
      return over(ExceededLimit::Memory);
    case StopCause::GpuLimit:
      return over(ExceededLimit::GpuMemory);
    case StopCause::Preempted:
      return failed(model::Failure::OutOfMemory, "preempted: the machine ran short of memory");
    case StopCause::Crowds:
      return failed(model::Failure::OutOfMemory,
                    "preempted: it used more of its GPU than was reserved, and other tasks there "
                    "needed theirs");
    case StopCause::NoGpu:
      return failed(model::Failure::CannotStart, std::string(kNoGpuLeft));
    case StopCause::TimeOver:
      return failed(model::Failure::Lost, "preempted: the time of its machine was over");
    case StopCause::Cleared:
      return failed(model::Failure::Lost,
                    "preempted: its GPU was drained ('trainyard drain --now')");
    case StopCause::Leaving:
      // The task had reported its outcome before, and its process was killed because it stayed: the
      // report counts.
      return judge_own(end);
  }
  return judge_own(end);
}

/// The own report of a two-phase task counts.
Ending judge_two_phase(const model::End& end, const KnownOfAttempt& known) {
  const StopCause cause = known.cause;
  const std::optional<LastWord>& word = known.word;
  // A task that has trained is done, even if its process had to be killed afterwards.
  if (word && word->said == model::Said::Trained) {
    const bool lost = std::holds_alternative<model::Vanished>(end);
    return cause == StopCause::None || lost ? judge_own(end) : Ending{};
  }
  if (cause != StopCause::None && cause != StopCause::Leaving) {
    return judge(end, known);
  }
  if (!word) {
    Ending ending = judge_own(end);
    if (ending.verdict != model::Verdict::Finished || known.its_end_tells) return ending;
    return failed(model::Failure::Exit,
                  "exited without reporting 'trained'; a script with 'two-phase' needs "
                  "trainyard.attempts() or 'trainyard client'");
  }
  if (word->said == model::Said::OutOfMemory) {
    Ending own = judge_own(end);
    const bool over_limit = cause == StopCause::None && own.exceeded != ExceededLimit::None;
    return over_limit ? own : failed(model::Failure::OutOfMemory, word->message);
  }
  const auto* const exit = std::get_if<model::ExitedWith>(&end);
  return failed(model::Failure::Error, word->message, exit == nullptr ? 0 : exit->code);
}

/// Puts the last output in the place of "exited with code 1", and after the signal that ended the
/// program. Other failures have a message of their own.
void add_last_words(Ending& ending, const std::string& words) {
  if (words.empty()) return;
  if (ending.failure == model::Failure::Exit && ending.exit_code != 0) ending.message = words;
  if (ending.failure == model::Failure::Killed || ending.failure == model::Failure::Crashed) {
    ending.message += ": " + words;
  }
}

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
    return stopped(not_started->why);
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

JudgedAttempt judge_attempt(const model::AttemptEnded& event, const KnownOfAttempt& known) {
  JudgedAttempt judged{.ending = known.two_phase ? judge_two_phase(event.end, known)
                                                 : judge(event.end, known)};
  Ending& ending = judged.ending;
  if (ending.exceeded != ExceededLimit::None) {
    const Bytes peak = std::max(event.usage.memory_peak, known.memory_peak);
    ending.message = over_limit_text(ending.exceeded, known, peak);
  }
  if (known.cause != StopCause::None) return judged;
  if (may_be_its_own(ending.failure) && !known.word && !event.out_of_memory.empty()) {
    judged.ran_out_by_its_errors = true;
    ending = {.verdict = model::Verdict::Failed,
              .failure = model::Failure::OutOfMemory,
              .message = event.out_of_memory};
  }
  add_last_words(ending, event.last_words);
  return judged;
}

RankWords rank_words(const model::RanksAtEnd& ranks, const Ending& ending, int count) {
  RankWords words;
  if (count == 0 || ending.verdict == model::Verdict::Finished) return words;
  if (ending.failure == model::Failure::Timeout) {
    return {.before = {}, .after = still_running(ranks.finished, count)};
  }
  const bool of_memory = ending.failure == model::Failure::OutOfMemory;
  if (of_memory && ranks.largest && ranks.largest_memory > Bytes{}) {
    words.after = fmt::format("; rank {} had the most memory, {}", *ranks.largest,
                              to_text(ranks.largest_memory));
  }
  if (!ranks.failed) return words;
  // The kernel ends all that share a limit at once: the first that is seen is not to blame.
  if (ending.exceeded != ExceededLimit::Memory)
    words.before = fmt::format("rank {}: ", *ranks.failed);
  if (!ranks.finished.empty()) {
    words.after += fmt::format("; {} had exited before with code 0", named(ranks.finished, count));
  }
  return words;
}

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
