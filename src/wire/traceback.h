// Where the last Python traceback of a text stands, and what it says. Pure; any thread.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace trainyard::wire {

struct Traceback {
  /// The line after its frames; of a group of exceptions, what the group is called.
  std::string_view exception;
  /// Where the traceback of what came first begins, when this exception was raised because of
  /// another or while that was handled; else where this one does.
  std::size_t begin = 0;
};

/// Nothing where there is none, or where it was cut off before its exception. One that Python only
/// mentions on its way out ("Exception ignored in ...") is none. Understands the "[rank0]: " that
/// torchrun puts before each line.
std::optional<Traceback> last_traceback(std::string_view text);

}  // namespace trainyard::wire
