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

/// The process that goes on. What it prints comes out where the first process prints its errors,
/// until it has begun.
class Departure {
 public:
  explicit Departure(Descriptor word) : word_(std::move(word)) {}

  /// Once: the first process hears the word, which is not empty and at most 4 kB, and ends. From
  /// now on what is printed goes to `log`.
  void begun(std::string_view word, const Descriptor& log);
  /// Whether the first process still waits for the word: it does not where somebody has ended it.
  [[nodiscard]] bool is_awaited() const;

 private:
  Descriptor word_;  ///< Closed when it has begun.
};

/// What the first process has heard of the other one.
struct Departed {
  std::string word;   ///< Empty: it ended before it had begun,
  int exit_code = 0;  ///< with this; 128 and the signal where one ended it.
};

/// Forks. The fork has a session of its own and a standard input that leads nowhere, and gets a
/// Departure. The first process waits until the other has begun, or has ended, and shows meanwhile
/// what that prints. Nothing that the fork starts keeps an output of the first process open.
Result<std::variant<Departure, Departed>> depart();

}  // namespace trainyard::sys
