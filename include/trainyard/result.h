// How a function says that it could not do what was asked: Result<T> is a T or an Error.
//
// An Error is for the person at the terminal. It says what went wrong, then what was being done,
// outermost first, as in: "jobs.yaml: task 'bert': memory: '12gigs': unit 'gigs' is unknown".
// A failed training task is not an Error: it is what the scheduler is there for.
#pragma once

#include <expected>
#include <string>
#include <utility>
#include <vector>

namespace trainyard {

struct [[nodiscard]] Error {
  std::string message;
  /// The machine is short of something (disk space, processes, open files, memory), or its disk
  /// fails. The same request may succeed later.
  bool of_machine = false;
  /// Further mistakes, if several keep the same request from being done. Each can be read alone.
  std::vector<std::string> others;

  Error() = default;
  /// `of_machine` is set afterwards, by a caller that knows it.
  explicit Error(std::string text) : message(std::move(text)) {}

  /// Adds a mistake; the first is the message.
  void add(std::string mistake) {
    if (message.empty()) {
      message = std::move(mistake);
    } else {
      others.push_back(std::move(mistake));
    }
  }

  /// The same error, seen from further out.
  Error in(const std::string& place) && {
    message.insert(0, place + ": ");
    for (std::string& other : others) other.insert(0, place + ": ");
    return std::move(*this);
  }
};

template <class T>
using Result = std::expected<T, Error>;

}  // namespace trainyard
