// The meaning of an end: the operating system reports how a process ended, the scheduler knows the
// reason why it asked for that, and both together give the message for users.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "base/time.h"
#include "model/command.h"
#include "model/event.h"
#include "model/status.h"

namespace trainyard::schedule {

/// Why the scheduler stopped an attempt, if it did.
enum class StopCause : std::uint8_t {
  None,
  TimeLimit,
  KillAsked,
  Interrupt,
  FailFast,
  OutOfMemory,  ///< It said so; retried in a new process, or not at all.
  MemoryLimit,  ///< It took more than was reserved, and that is its limit.
  GpuLimit,     ///< The same of a GPU.
  Preempted,    ///< The machine's memory ran short; it is to be tried again.
  Crowds,       ///< It exceeds its part of a GPU, and its neighbours are short.
  NoGpu,        ///< The GPU that it waits for does not answer any more.
  Cleared,      ///< A user wants its GPU back; it is to be tried again.
  TimeOver,     ///< Its machine is taken away in a moment; it is to be tried again.
  Leaving,      ///< It had sent its last message, and did not exit.
};

/// Whether an attempt was stopped for the sake of others, or because of its machine: its task is
/// retried.
constexpr bool is_interruption(StopCause cause) {
  return cause == StopCause::Preempted || cause == StopCause::Crowds ||
         cause == StopCause::Cleared || cause == StopCause::TimeOver;
}

/// The last message of the process of a two-phase task about itself.
struct LastWord {
  model::Said said = model::Said::Trained;
  std::string message;
};

/// Why tasks fail that need a larger GPU than there is, or than is left.
constexpr std::string_view kNoGpuFits = "no GPU here is large enough, now that all of them answer";
constexpr std::string_view kNoGpuLeft = "no GPU that it fits on is left: some GPUs do not answer";

/// The parts of a message about other attempts of the task: "retry 1 of 2 in 30s: " before the
/// failure of this one, or " (retry 1 of 2)" after it, and then that it failed like the one before.
constexpr std::string_view kRetried = "retry ";
constexpr std::string_view kRetriesOf = " (retry ";
constexpr std::string_view kSameFailure =
    "; the attempt before failed in the same way, so the checkpoint may be the cause ('trainyard "
    "retry --fresh' starts without it)";

/// The message without its parts about other attempts.
constexpr std::string_view own_message(std::string_view message) {
  if (message.ends_with(kSameFailure)) message.remove_suffix(kSameFailure.size());
  const std::size_t colon = message.find(": ");
  if (message.starts_with(kRetried) && colon != std::string_view::npos)
    return message.substr(colon + 2);
  const bool counts_retries = message.ends_with(')') && message.contains(kRetriesOf);
  return counts_retries ? message.substr(0, message.rfind(kRetriesOf)) : message;
}

/// Whether an attempt that nobody stopped may have failed for an error of the program: it exited,
/// crashed, was killed by a signal, or reported the error itself.
constexpr bool may_be_its_own(model::Failure failure) {
  return failure == model::Failure::Exit || failure == model::Failure::Crashed ||
         failure == model::Failure::Killed || failure == model::Failure::Error;
}

/// The hard limit that an attempt exceeded: it is not retried.
enum class ExceededLimit : std::uint8_t { None, Memory, GpuMemory };

struct Ending {
  model::Verdict verdict = model::Verdict::Finished;  ///< Before retries are considered.
  model::Failure failure = model::Failure::None;
  int exit_code = 0;
  Stage stage = Stage::Train;  ///< The stage in which it failed.
  std::string message;
  ExceededLimit exceeded = ExceededLimit::None;
  bool of_machine = false;  ///< The machine could not start it, which is not the task's fault.
  bool with_group = false;  ///< As of model::TaskChanged.
};

/// The time limit of an attempt, and what followed when it was reached.
struct TimeLimitReached {
  Duration limit{0};
  /// The time between TERM and KILL. Nothing: it was not killed for that.
  std::optional<Duration> killed_after = std::nullopt;
};

/// Knowledge about an attempt other than the end of its process.
struct KnownOfAttempt {
  bool two_phase = false;
  StopCause cause = StopCause::None;
  TimeLimitReached time_limit = {};
  std::optional<LastWord> word;
  bool its_end_tells = false;
  Bytes memory_peak = {};       ///< The most memory that a sample has shown.
  Bytes memory_limit = {};      ///< For memory-limit: hard; 0: unknown.
  Bytes gpu_memory_limit = {};  ///< For gpu-memory-limit: hard, of each GPU; 0: unknown.
};

struct JudgedAttempt {
  Ending ending;
  /// Only its standard error says that memory ran out, as for a plain command.
  bool ran_out_by_its_errors = false;
};

/// Judges by the end of its process, its own last message, and the end of its standard error.
JudgedAttempt judge_attempt(const model::AttemptEnded& event, const KnownOfAttempt& known);

/// The parts of a message about the ranks of an attempt that ended badly, around that message.
struct RankWords {
  std::string before;  ///< "rank 2: "
  std::string after;   ///< "; rank 1 had exited before with code 0"
};

/// Names the rank that failed first, or that had the most memory when that ran out; the ranks that
/// had succeeded before, as the others may have waited for these; and at a time limit the ranks
/// that were still running. Nothing for a task without ranks.
RankWords rank_words(const model::RanksAtEnd& ranks, const Ending& ending, int count);

/// An attempt that ended while no yard was there, as the journal knows it.
struct UnwatchedAttempt {
  Status status = Status::Available;  ///< The last status in the journal.
  Stage stage = Stage::Train;
  std::string message;  ///< The message of that status.
  std::uint32_t attempt = 1;
  bool two_phase = false;
  int ranks = 0;
  /// It had reported that it trains, and has trained if it exits with success.
  bool its_end_tells = false;
  /// It had been stopped, as everything is when the yard is gone.
  bool told_to_end = false;
};

/// The outcome of a task whose attempt ended while no yard was there: decided later, by the notes of
/// its end and the journal, as its yard would have. An attempt that exited with code 0 and left its
/// result has finished, even if it was stopped. Nothing is retried here: the yard that resumes the
/// run does that. The task in the decision has the number 0.
model::Decision decide_unwatched_end(const UnwatchedAttempt& known,
                                     const model::AttemptEnded& ended);

}  // namespace trainyard::schedule
