// The options of a Pool, and the errors of its calls (trainyard/pool.h). Plain values.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace trainyard {

/// Where the objects of a pool live.
enum class PoolIn : std::uint8_t {
  /// Each in a process of its own, a fork of this one: what crashes is one object, not the program.
  Processes,
  /// Each in a thread of this process: nothing is started, and nothing can be ended from outside.
  Threads,
};
/// "processes", "threads".
std::string_view to_text(PoolIn in);

struct PoolOptions {
  int count = 1;  ///< How many objects: 1 to 1,024.
  PoolIn in = PoolIn::Processes;
  /// Calls that one child has not answered yet, those whose deadline has passed included. One more
  /// fails at once. At least 1.
  std::size_t open_max = 1'024;
  /// Between asking a child to end and killing it, where shutdown() does not say.
  std::chrono::milliseconds stop_grace{10'000};
  /// Where child-<n>.log is written, with what each process prints to standard error. One pool at a
  /// time may have it. Empty: a directory that goes with the pool, and what they print goes on to
  /// standard error of this program. Standard output is that of this program either way. Threads
  /// have no log.
  std::string directory = {};
  /// Called with notes that are no answers to calls, on a thread of the pool. Empty: they go to
  /// standard error.
  std::function<void(std::string_view)> note = {};
};

/// Why a call has no answer.
struct CallError {
  enum class Kind : std::uint8_t {
    Threw,        ///< The method did. The object goes on with the state that it has.
    NotMade,      ///< The factory threw: there is no object until restart().
    NotCarried,   ///< An argument or the result cannot be turned into what travels, or back.
    Died,         ///< The process of the child has ended; there is none until restart().
    Restarted,    ///< restart() has put a new object in the place of the one that was called.
    ShutDown,     ///< The pool has ended.
    Late,         ///< The deadline has passed. The child may still do it; its answer is dropped.
    Stopped,      ///< The stop token was stopped. The same holds.
    Full,         ///< The child has as many open calls as it may, or too much waits to be sent.
    NoSuchChild,  ///< The index is none of this pool.
    Taken,        ///< get() has been called before, and has the answer.
  };
  Kind kind = Kind::Threw;
  int child = 0;
  /// "std::runtime_error: boom", "was killed by signal 9". What an exception was thrown because of
  /// (std::nested_exception) follows, one a line.
  std::string message;
  /// The last lines that a process has printed there, if it has ended (Died, NotMade). Empty where a
  /// method threw, as the process goes on: `message` has the text of the exception.
  std::string stderr_end = {};

  /// "child 2: threw: std::runtime_error: boom", and what it printed last.
  [[nodiscard]] std::string text() const;
};
/// "threw", "not made", ...
std::string_view to_text(CallError::Kind kind);

}  // namespace trainyard
