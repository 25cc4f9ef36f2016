// The processes of a task that get a signal: those that handle it, and not the helpers that they
// have started. A program that saves its state needs its helpers while it does. Pure; any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace trainyard::process {

/// A process of a task, and what decides whether it gets a signal.
struct SignalCandidate {
  std::int64_t pid = 0;
  std::int64_t parent = 0;
  bool handles = false;  ///< As handles_signal() says.
  bool is_shell = false;
  bool may_execute_soon = false;  ///< It has just been forked, and has executed no program.
};

/// Whether a process has a handler for the signal, or blocks it, as one does that waits for it. Not
/// where it ignores the signal.
/// `status` is its /proc/<pid>/status; false where that has no such lines.
bool handles_signal(int signal, std::string_view status);

/// Whether TERM or KILL ends a process: the process has no handler for it, does not block it and
/// does not ignore it. `status` as for handles_signal(); false where that has no such lines.
bool is_ended_by_signal(int signal, std::string_view status);

/// Whether a program is a shell, by its path.
bool is_shell(std::string_view program);

/// The processes that get the signal, in the order of the candidates; none if no process handles
/// it. The outermost programs get it: a program does unless a program that handles it has started
/// it. A shell gets it if nothing that it has started does: it handles TERM for each trap, and may
/// exit at once and take its children with it. A child that a shell has just forked does not count:
/// until it executes its program it has the shell's handlers, or blocks the signal, also if a
/// subshell without handlers forked it, and the signal would be lost. No shell gets SIGINT: bash
/// always handles it.
std::vector<std::int64_t> signal_receivers(int signal, std::span<const SignalCandidate> candidates);

}  // namespace trainyard::process
