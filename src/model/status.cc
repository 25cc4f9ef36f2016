#include "model/status.h"

#include <array>
#include <cstddef>
#include <utility>

#include <fmt/format.h>

namespace trainyard {
namespace {

constexpr std::array<std::string_view, 10> kStatusNames{
    "UNKNOWN",  "INIT",     "AVAILABLE", "LOADING",   "WAITING",
    "TRAINING", "FINISHED", "EXITED",    "EXCEPTION", "INTERRUPT"};

}  // namespace

std::string_view to_text(Status status) { return kStatusNames.at(std::to_underlying(status)); }

std::string_view to_text(Stage stage) { return stage == Stage::Load ? "LOAD" : "TRAIN"; }

}  // namespace trainyard

namespace trainyard::model {
namespace {

constexpr std::uint16_t bit(Status status) {
  return static_cast<std::uint16_t>(1U << std::to_underlying(status));
}

/// Row by row, where a task may go from each status.
constexpr std::array<std::uint16_t, 10> kNext{
    static_cast<std::uint16_t>(bit(Status::Interrupt) | bit(Status::Exception)),  // UNKNOWN
    bit(Status::Available),                                                       // INIT
    static_cast<std::uint16_t>(bit(Status::Loading) | bit(Status::Training) |
                               bit(Status::Interrupt) | bit(Status::Exception) |
                               bit(Status::Unknown)),  // AVAILABLE
    static_cast<std::uint16_t>(bit(Status::Waiting) | bit(Status::Interrupt) |
                               bit(Status::Exception) | bit(Status::Unknown)),  // LOADING
    static_cast<std::uint16_t>(bit(Status::Training) | bit(Status::Interrupt) |
                               bit(Status::Exception) | bit(Status::Unknown)),  // WAITING
    static_cast<std::uint16_t>(bit(Status::Finished) | bit(Status::Interrupt) |
                               bit(Status::Exception) | bit(Status::Unknown)),  // TRAINING
    static_cast<std::uint16_t>(bit(Status::Exited) | bit(Status::Exception)),   // FINISHED
    0,                                                                          // EXITED
    0,                                                                          // EXCEPTION
    static_cast<std::uint16_t>(bit(Status::Available) | bit(Status::Waiting) |
                               bit(Status::Exception)),  // INTERRUPT
};

/// By number, as on Linux for x86 and Arm.
constexpr std::array<std::string_view, 32> kSignals{
    "",          "SIGHUP",  "SIGINT",    "SIGQUIT", "SIGILL",   "SIGTRAP", "SIGABRT", "SIGBUS",
    "SIGFPE",    "SIGKILL", "SIGUSR1",   "SIGSEGV", "SIGUSR2",  "SIGPIPE", "SIGALRM", "SIGTERM",
    "SIGSTKFLT", "SIGCHLD", "SIGCONT",   "SIGSTOP", "SIGTSTP",  "SIGTTIN", "SIGTTOU", "SIGURG",
    "SIGXCPU",   "SIGXFSZ", "SIGVTALRM", "SIGPROF", "SIGWINCH", "SIGIO",   "SIGPWR",  "SIGSYS"};

}  // namespace

std::string_view to_text(Failure failure) {
  constexpr std::array<std::string_view, 9> kNames{"NONE",   "OUT_OF_MEMORY", "TIMEOUT",
                                                   "KILLED", "EXIT",          "CANNOT_START",
                                                   "LOST",   "ERROR",         "CRASHED"};
  return kNames.at(std::to_underlying(failure));
}

std::string_view to_text(Verdict verdict) {
  constexpr std::array<std::string_view, 7> kNames{
      "NONE", "FINISHED", "FAILED", "SKIPPED", "STOPPED", "NOT_SELECTED", "NOT_NEEDED"};
  return kNames.at(std::to_underlying(verdict));
}

std::string signal_name(int signal) {
  const auto index = static_cast<std::size_t>(signal);
  if (signal > 0 && index < kSignals.size()) return std::string(kSignals.at(index));
  return fmt::format("signal {}", signal);
}

std::string_view crash_meaning(int signal) {
  const std::string name = signal_name(signal);
  if (name == "SIGILL") return "illegal instruction";
  if (name == "SIGABRT") return "aborted";
  if (name == "SIGBUS") return "bus error";
  if (name == "SIGFPE") return "arithmetic error";
  return name == "SIGSEGV" ? "segmentation fault" : "";
}

bool may_follow(Status from, Status to) {
  return (kNext.at(std::to_underlying(from)) & bit(to)) != 0;
}

std::string word_for(const Standing& standing) {
  switch (standing.verdict) {
    case Verdict::Finished:
    case Verdict::Skipped:
    case Verdict::Stopped:
    case Verdict::NotSelected:
    case Verdict::NotNeeded:
      return std::string(to_text(standing.verdict));
    case Verdict::Failed:
      if (standing.failure == Failure::Exit) return fmt::format("EXIT {}", standing.exit_code);
      if (standing.failure == Failure::Crashed)
        return signal_name(standing.exit_code - kSignalCode);
      return std::string(to_text(standing.failure));
    case Verdict::None:
      break;
  }
  const bool waits = standing.status == Status::Init;
  if (standing.failure == Failure::Lost && !waits) return std::string(to_text(Failure::Lost));
  const bool between = waits || standing.status == Status::Interrupt;
  if (standing.on_hold && between) return "ON_HOLD";
  switch (standing.status) {
    case Status::Init:
    case Status::Waiting:
      return "WAITING";
    case Status::Interrupt:
      return "RETRYING";
    default:
      return "RUNNING";
  }
}

}  // namespace trainyard::model
