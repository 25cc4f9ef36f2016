#include "schedule/ending.h"

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "base/duration_text.h"
#include "base/match.h"
#include "base/time.h"
#include "model/event.h"
#include "model/status.h"

namespace trainyard {
namespace {

/// By number, as on Linux for x86 and Arm.
constexpr std::array<std::string_view, 32> kSignals{
    "",          "SIGHUP",  "SIGINT",    "SIGQUIT", "SIGILL",   "SIGTRAP", "SIGABRT", "SIGBUS",
    "SIGFPE",    "SIGKILL", "SIGUSR1",   "SIGSEGV", "SIGUSR2",  "SIGPIPE", "SIGALRM", "SIGTERM",
    "SIGSTKFLT", "SIGCHLD", "SIGCONT",   "SIGSTOP", "SIGTSTP",  "SIGTTIN", "SIGTTOU", "SIGURG",
    "SIGXCPU",   "SIGXFSZ", "SIGVTALRM", "SIGPROF", "SIGWINCH", "SIGIO",   "SIGPWR",  "SIGSYS"};

constexpr std::string_view kOverLimit = "took more memory than its limit (memory-limit: hard)";

Ending failed(Failure failure, std::string message, int exit_code = 0) {
  return {.verdict = Verdict::Failed,
          .failure = failure,
          .exit_code = exit_code,
          .message = std::move(message)};
}

Ending judge_own(const End& end) {
  return match(
      end,
      [](const ExitedWith& it) {
        if (it.code == 0) return Ending{};
        return failed(Failure::Exit, fmt::format("ended with exit code {}", it.code), it.code);
      },
      [](const KilledBy& it) {
        if (it.over_limit) return failed(Failure::OutOfMemory, std::string(kOverLimit));
        if (it.out_of_memory) {
          return failed(Failure::OutOfMemory, "killed by the kernel: out of memory");
        }
        return failed(Failure::Killed,
                      fmt::format("killed by signal {} ({})", it.signal, signal_name(it.signal)));
      },
      [](const NotStarted& it) { return failed(Failure::CannotStart, it.why); },
      [](const Vanished& it) { return failed(Failure::Lost, it.why); });
}

}  // namespace

std::string signal_name(int signal) {
  const auto index = static_cast<std::size_t>(signal);
  if (signal > 0 && index < kSignals.size()) return std::string(kSignals.at(index));
  return fmt::format("signal {}", signal);
}

bool was_over_limit(const End& end, StopCause cause) {
  const auto* const killed = std::get_if<KilledBy>(&end);
  const bool by_kernel = killed != nullptr && killed->over_limit;
  return cause == StopCause::MemoryLimit || (cause == StopCause::None && by_kernel);
}

Ending judge(const End& end, StopCause cause, Duration time_limit) {
  // What never was, and what nobody saw, did not end because it was told to.
  const bool seen_to_end =
      !std::holds_alternative<NotStarted>(end) && !std::holds_alternative<Vanished>(end);
  if (!seen_to_end) return judge_own(end);
  switch (cause) {
    case StopCause::None:
      return judge_own(end);
    case StopCause::TimeLimit:
      return failed(Failure::Timeout,
                    fmt::format("ran longer than its time limit of {}", to_text(time_limit)));
    case StopCause::KillAsked:
      return failed(Failure::Killed, "killed on request");
    case StopCause::FailFast:
      return failed(Failure::Killed, "ended because another task of its group failed (fail-fast)");
    case StopCause::Interrupt:
      return {.verdict = Verdict::Stopped,
              .failure = Failure::None,
              .exit_code = 0,
              .message = "the run was interrupted"};
    case StopCause::OutOfMemory:
      return failed(Failure::OutOfMemory, "out of memory");
    case StopCause::MemoryLimit:
      return failed(Failure::OutOfMemory, std::string(kOverLimit));
    case StopCause::Preempted:
      return failed(Failure::OutOfMemory, "interrupted, as the machine's memory ran short");
    case StopCause::NoGpu:
      return failed(Failure::CannotStart, std::string(kNoGpuLeft));
    case StopCause::Leaving:
      return judge_own(end);
  }
  return judge_own(end);
}

void add_last_words(Ending& ending, const std::string& words) {
  if (words.empty()) return;
  if (ending.failure == Failure::Exit && ending.exit_code != 0) ending.message = words;
  if (ending.failure == Failure::Killed) ending.message += ": " + words;
}

Ending judge_two_phase(const End& end, StopCause cause, Duration time_limit,
                       const std::optional<LastWord>& word, bool its_end_tells) {
  if (word && word->said == Said::Trained) {
    const bool lost = std::holds_alternative<Vanished>(end);
    return cause == StopCause::None || lost ? judge_own(end) : Ending{};
  }
  if (cause != StopCause::None && cause != StopCause::Leaving) {
    return judge(end, cause, time_limit);
  }
  if (!word) {
    Ending ending = judge_own(end);
    if (ending.verdict != Verdict::Finished || its_end_tells) return ending;
    return failed(Failure::Exit, "ended without having trained: it never said 'trained'");
  }
  if (word->said == Said::OutOfMemory) {
    return was_over_limit(end, cause) ? judge_own(end)
                                      : failed(Failure::OutOfMemory, word->message);
  }
  const auto* const exit = std::get_if<ExitedWith>(&end);
  return failed(Failure::Error, word->message, exit == nullptr ? 0 : exit->code);
}

}  // namespace trainyard
