#include "model/status.h"

#include <algorithm>
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
    static_cast<std::uint16_t>(bit(Status::Available) | bit(Status::Exception)),  // INIT
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

constexpr auto kEnds = std::to_array<TaskEnd>({
    {.id = "finished", .verdict = Verdict::Finished, .word = "FINISHED"},
    {.id = "out-of-memory",
     .verdict = Verdict::Failed,
     .failure = Failure::OutOfMemory,
     .word = "OUT_OF_MEMORY",
     .cure = Cure::MoreMemory},
    {.id = "timeout",
     .verdict = Verdict::Failed,
     .failure = Failure::Timeout,
     .word = "TIMEOUT",
     .cure = Cure::MoreTime},
    {.id = "killed",
     .verdict = Verdict::Failed,
     .failure = Failure::Killed,
     .word = "KILLED",
     .cure = Cure::RunAgain},
    {.id = "exit",
     .verdict = Verdict::Failed,
     .failure = Failure::Exit,
     .word = "EXIT",
     .text = [](int exit_code) { return fmt::format("EXIT {}", exit_code); },
     .cure = Cure::Fix},
    {.id = "cannot-start",
     .verdict = Verdict::Failed,
     .failure = Failure::CannotStart,
     .word = "CANNOT_START",
     .cure = Cure::Fix},
    {.id = "lost",
     .verdict = Verdict::Failed,
     .failure = Failure::Lost,
     .word = "LOST",
     .cure = Cure::Fix},
    {.id = "error",
     .verdict = Verdict::Failed,
     .failure = Failure::Error,
     .word = "ERROR",
     .cure = Cure::Fix},
    {.id = "crashed",
     .verdict = Verdict::Failed,
     .failure = Failure::Crashed,
     .word = "CRASHED",
     .text = [](int exit_code) { return signal_name(exit_code - kSignalCode); },
     .cure = Cure::Fix},
    {.id = "skipped", .verdict = Verdict::Skipped, .word = "SKIPPED"},
    {.id = "stopped", .verdict = Verdict::Stopped, .word = "STOPPED"},
    {.id = "not-selected", .verdict = Verdict::NotSelected, .word = "NOT_SELECTED"},
    {.id = "not-needed", .verdict = Verdict::NotNeeded, .word = "NOT_NEEDED"},
});

}  // namespace

std::string_view to_text(Failure failure) {
  if (failure == Failure::None) return "NONE";
  return std::ranges::find(kEnds, failure, &TaskEnd::failure)->word;
}

std::string_view to_text(Verdict verdict) {
  if (verdict == Verdict::None) return "NONE";
  if (verdict == Verdict::Failed) return "FAILED";
  return std::ranges::find(kEnds, verdict, &TaskEnd::verdict)->word;
}

std::span<const TaskEnd> all_ends() { return kEnds; }

const TaskEnd* end_of(const Standing& standing) {
  const bool failed = standing.verdict == Verdict::Failed;
  const auto* const found = std::ranges::find_if(kEnds, [&](const TaskEnd& it) {
    return it.verdict == standing.verdict && (!failed || it.failure == standing.failure);
  });
  return found == kEnds.end() ? nullptr : found;
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
  if (const TaskEnd* const end = end_of(standing)) {
    return end->text == nullptr ? std::string(end->word) : end->text(standing.exit_code);
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
