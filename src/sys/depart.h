// A fork of this process that goes on when its terminal is gone: `run -d`, and a queue.
//
// For the main thread, first of all: no other thread, no socket, no database.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "base/result.h"
#include "sys/descriptor.h"

namespace trainyard::sys {

/// The process that goes on. Its output goes to the standard error of the first process until it
/// has begun.
class Departure {
 public:
  explicit Departure(Descriptor word) : word_(std::move(word)) {}

  /// Call once: the first process receives the word, which is not empty and at most 4 kB, and
  /// exits. From now on output goes to `log`.
  void begun(std::string_view word, const Descriptor& log);
  /// Whether the first process still waits for the word: it does not if it was killed.
  [[nodiscard]] bool is_awaited() const;

 private:
  Descriptor word_;  ///< Closed when it has begun.
};

/// The last report of the other process to the first one.
struct Departed {
  std::string word;   ///< Empty: it exited before it had begun,
  int exit_code = 0;  ///< with this; 128 and the signal if one killed it.
};

/// Forks. The fork has a session of its own and a standard input that leads nowhere, and gets a
/// Departure. The first process waits until the other has begun, or has exited, and meanwhile shows
/// its output. Nothing that the fork starts keeps an output of the first process open.
Result<std::variant<Departure, Departed>> depart();

}  // namespace trainyard::sys
