#include "process/signal_receivers.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <csignal>
#include <cstddef>
#include <system_error>
#include <unordered_map>

namespace trainyard::process {
namespace {

/// A set of signals as "SigCgt:\t0000000180014a07" has it; empty where there is no such line.
std::uint64_t signals_in(std::string_view status, std::string_view name) {
  const std::size_t line = status.find(name);
  if (line == std::string_view::npos) return 0;
  status.remove_prefix(line + name.size());
  status.remove_prefix(std::min(status.find_first_not_of(" \t"), status.size()));
  std::uint64_t signals = 0;
  const auto [end, error] =
      std::from_chars(status.data(), status.data() + status.size(), signals, 16);
  return error == std::errc{} ? signals : 0;
}

std::uint64_t bit_of(int signal) { return std::uint64_t{1} << static_cast<unsigned>(signal - 1); }

}  // namespace

bool handles_signal(int signal, std::string_view status) {
  const std::uint64_t waited_for =
      signals_in(status, "\nSigBlk:") & ~signals_in(status, "\nSigIgn:");
  return ((signals_in(status, "\nSigCgt:") | waited_for) & bit_of(signal)) != 0;
}

bool is_ended_by_signal(int signal, std::string_view status) {
  const bool is_ignored = (signals_in(status, "\nSigIgn:") & bit_of(signal)) != 0;
  return status.contains("\nSigCgt:") && !is_ignored && !handles_signal(signal, status);
}

bool is_shell(std::string_view program) {
  constexpr std::array<std::string_view, 13> kShells{"sh",   "bash",  "dash", "ash",  "busybox",
                                                     "ksh",  "mksh",  "zsh",  "fish", "csh",
                                                     "tcsh", "rbash", "yash"};
  return std::ranges::find(kShells, program.substr(program.rfind('/') + 1)) != kShells.end();
}

std::vector<std::int64_t> signal_receivers(int signal,
                                           std::span<const SignalCandidate> candidates) {
  std::unordered_map<std::int64_t, std::size_t> places;
  for (std::size_t i = 0; i < candidates.size(); ++i) places.emplace(candidates[i].pid, i);
  const auto has_handlers_of_its_shell = [&](const SignalCandidate& it) {
    const auto parent = places.find(it.parent);
    return it.may_execute_soon && parent != places.end() && candidates[parent->second].is_shell;
  };
  const auto counts = [&](const SignalCandidate& it) {
    return it.handles && !(it.is_shell && signal == SIGINT) && !has_handlers_of_its_shell(it);
  };
  std::vector<bool> is_below_program(candidates.size());
  std::vector<bool> is_above_handler(candidates.size());
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    std::int64_t parent = candidates[i].parent;
    // At most one step for each process: they were not read in one instant, and may form a circle.
    for (std::size_t step = 0; step < candidates.size(); ++step) {
      const auto found = places.find(parent);
      if (found == places.end()) break;
      const SignalCandidate& above = candidates[found->second];
      if (counts(above) && !above.is_shell) is_below_program[i] = true;
      if (counts(candidates[i])) is_above_handler[found->second] = true;
      parent = above.parent;
    }
  }
  std::vector<std::int64_t> receivers;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    const SignalCandidate& it = candidates[i];
    const bool leaves_it = it.is_shell && is_above_handler[i];
    if (counts(it) && !is_below_program[i] && !leaves_it) receivers.push_back(it.pid);
  }
  return receivers;
}

}  // namespace trainyard::process
