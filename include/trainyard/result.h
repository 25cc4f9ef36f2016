// How a function says that it could not do what was asked: Result<T> is a T or an Error.
//
// An Error is for the person at the terminal. It says what went wrong, then what was being done,
// outermost first, as in: "jobs.yaml: task 'bert': memory: '12gigs': unit 'gigs' is unknown".
// A failed training task is not an Error: it is what the scheduler is there for.
#pragma once

#include <expected>
#include <string>
#include <utility>

namespace trainyard {

struct [[nodiscard]] Error {
  std::string message;
  /// The machine is short of something (disk space, processes, open files, memory), or its disk
  /// fails. The same request may succeed later.
  bool of_machine = false;

  /// The same error, seen from further out.
  Error in(const std::string& place) && {
    return {.message = place + ": " + std::move(message), .of_machine = of_machine};
  }
};

template <class T>
using Result = std::expected<T, Error>;

}  // namespace trainyard
