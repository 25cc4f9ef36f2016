#include "model/status.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "trainyard/status.h"

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

}  // namespace

std::string_view to_text(Failure failure) {
  constexpr std::array<std::string_view, 8> kNames{"NONE", "OUT_OF_MEMORY", "TIMEOUT", "KILLED",
                                                   "EXIT", "CANNOT_START",  "LOST",    "ERROR"};
  return kNames.at(std::to_underlying(failure));
}

std::string_view to_text(Verdict verdict) {
  constexpr std::array<std::string_view, 7> kNames{
      "NONE", "FINISHED", "FAILED", "SKIPPED", "STOPPED", "NOT_SELECTED", "NOT_NEEDED"};
  return kNames.at(std::to_underlying(verdict));
}

const CrashSignal* crash_signal(int number) {
  // As on Linux for x86 and Arm.
  static constexpr std::array<CrashSignal, 5> kSignals{
      {{.number = 4, .name = "SIGILL", .meaning = "illegal instruction"},
       {.number = 6, .name = "SIGABRT", .meaning = "aborted"},
       {.number = 7, .name = "SIGBUS", .meaning = "bus error"},
       {.number = 8, .name = "SIGFPE", .meaning = "arithmetic error"},
       {.number = 11, .name = "SIGSEGV", .meaning = "segmentation fault"}}};
  const auto* const found = std::ranges::find(kSignals, number, &CrashSignal::number);
  return found == kSignals.end() ? nullptr : found;
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
      if (standing.failure == Failure::Killed) {
        const CrashSignal* const crash = crash_signal(standing.exit_code - kSignalCode);
        if (crash != nullptr) return std::string(crash->name);
      }
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
