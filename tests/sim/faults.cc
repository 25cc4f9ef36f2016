#include "sim/faults.h"

#include <fmt/format.h>

namespace trainyard::sim {

namespace {

constexpr std::array<std::string_view, kFaultKinds> kFaultNames{
    "exit code",
    "signal",
    "out of memory",
    "cannot start",
    "ignores TERM",
    "never says started",
    "vanishes",
    "late allocation",
    "spike",
    "over its promise",
    "out of memory told on standard error",
    "over its limit",
    "signal before TERM",
    "ends on its signal",
    "out of memory told while loading",
    "out of memory told in training",
    "ranks start over",
    "stage fails",
    "nonsense",
    "never trains",
    "dies waiting for a device",
    "lingers",
    "its end tells",
    "out of a GPU's memory",
    "at its cap on a GPU",
    "ends well with all that it was told to take",
    "over its limit of a GPU",
    "crowded on a GPU",
    "dies with its GPU",
    "waits for another to settle",
    "taken off a GPU",
    "GPU memory lingers",
    "GPU memory stays",
    "memory exhausted",
    "interrupted for memory",
    "memory lost",
    "others use CPU",
    "sample late",
    "end heard late",
    "had ended before it was told to",
    "clock jump",
    "GPU gone",
    "GPU late",
    "GPU memory lost",
    "GPU of another user",
    "GPU that it was not given",
    "GPU memory nobody's",
    "100 deaths at once",
    "keeper dies",
    "guard dies",
    "keeper silent",
    "yard suspended",
    "start refused",
    "refused while others start",
    "run given up for refused starts",
    "network split",
    "stream cut",
    "words said again",
    "machine silent",
    "lease over",
    "agent dies",
    "machine reboots",
    "machine gone",
    "machine joins again",
    "machine joins late",
    "machine leaves",
    "machine taken away",
    "ended before that",
    "disk full",
    "disk full too long",
    "interrupt once",
    "interrupt twice",
    "kill of running",
    "kill of waiting",
    "kill of ended",
    "kill of unknown",
    "begins anew",
    "another try refused",
    "put on hold",
    "another priority",
    "skipped for what it needs",
    "not needed",
    "starts at its time",
    "late batch",
    "goes on with what it had reached",
    "taught by who had finished before",
    "lives long enough, tried first",
    "tells of itself, tried first",
    "fails, tried first",
    "old news",
    "duplicate news"};

}  // namespace

std::string_view to_text(Fault fault) { return kFaultNames.at(std::to_underlying(fault)); }

void FaultCounts::add(const FaultCounts& other) {
  for (std::size_t i = 0; i < kFaultKinds; ++i) counts_.at(i) += other.counts_.at(i);
}

std::string to_text(const FaultCounts& counts) {
  std::string text;
  for (std::size_t i = 0; i < kFaultKinds; ++i) {
    const auto fault = static_cast<Fault>(i);
    text += fmt::format("{}{} {}", i == 0 ? "" : ", ", to_text(fault), counts.of(fault));
  }
  return text;
}

}  // namespace trainyard::sim
