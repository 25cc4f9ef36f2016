// For tests alone: waits for the actions of another process.
#pragma once

#include <chrono>
#include <csignal>
#include <functional>

#include <poll.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/time.h"

namespace trainyard::sys {

/// An upper bound for everything in a test, however busy the machine is.
constexpr Duration kLongEnough{30'000};

/// Waits until `holds` says so; false when it did not in time.
inline bool eventually(const std::function<bool()>& holds) {
  const auto end = std::chrono::steady_clock::now() + kLongEnough;
  while (!holds()) {
    if (std::chrono::steady_clock::now() > end) return false;
    ::poll(nullptr, 0, 1);
  }
  return true;
}

/// Whether `holds` is true in a fork of this process, for code that would wait for ever if it were
/// wrong; false when it did not return in time.
inline bool holds_in_time(const std::function<bool()>& holds) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(holds() ? 0 : 1);
  int status = 0;
  if (eventually([&] { return ::waitpid(child, &status, WNOHANG) == child; })) return status == 0;
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  return false;
}

}  // namespace trainyard::sys
