// How long `trainyard kill` waits for the end of tasks, and what it prints meanwhile. Pure; any
// thread.
#pragma once

#include <string>
#include <vector>

#include "base/time.h"
#include "journal/reader.h"

namespace trainyard::cli {

/// The time in which all of these tasks must have ended: of each group of tasks that the yard is
/// asked to kill at once, the longest time until SIGTERM, and 30 s.
Duration kill_wait_max(const std::vector<journal::TaskRow>& tasks);

/// "train/s=1 has up to 40 s to save its state before SIGTERM; Ctrl-C stops only the waiting", or
/// "3 tasks have up to ..." with the longest of their times. Empty if no running task has a signal
/// before SIGTERM.
std::string kill_wait_note(const std::vector<journal::TaskRow>& tasks);

}  // namespace trainyard::cli
