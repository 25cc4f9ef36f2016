// Words of a failed program about its failure, at the end of its standard error, or standard output
// where that is empty: what people would look for there first. Pure; any thread.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace trainyard::wire {

/// The last Python traceback of a text: its place and its message.
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

/// The failed worker of a parallel run and its failure, as `trainyard parallel` prints it:
/// tracebacks may be those of the other workers, which were stopped. Else the exception of the last
/// Python traceback in the text; without one, the last line that has a letter or a digit and is no
/// metric (wire/metric_line.h). Empty when there is none. At most 300 bytes of valid UTF-8 in one
/// line, without colours; of a line that was written over, as a progress bar is, what was last to
/// be seen.
std::string last_words(std::string_view errors);

/// The same of a standard output, where a line alone says how far the program came, not why it
/// failed: "last output: 'epoch 3'".
std::string last_words_of_output(std::string_view output);

/// The text without sequences that colour it or move the cursor (ESC [ ... letter).
std::string without_colours(std::string_view text);

}  // namespace trainyard::wire
