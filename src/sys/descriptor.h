// A file descriptor with an owner, and the words for what went wrong with one.
//
// Not a file or a socket: it knows nothing of what it refers to. Any thread, one at a time. All
// Descriptors together keep the list of the numbers that they own, so that a fork of a program that
// is not ours can close ours and leave the program its own.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace trainyard::sys {

class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int value);
  Descriptor(Descriptor&& other) noexcept : value_(std::exchange(other.value_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    if (this != &other) {
      close();
      value_ = std::exchange(other.value_, -1);
    }
    return *this;
  }
  ~Descriptor() { close(); }

  /// Another one of the same file, which is closed by itself. Not open: it could not be made.
  static Descriptor duplicate(int descriptor);

  [[nodiscard]] int get() const { return value_; }
  [[nodiscard]] bool is_open() const { return value_ >= 0; }
  /// Hands the descriptor over to the caller, who will close it.
  [[nodiscard]] int release();
  void close();

 private:
  int value_ = -1;
};

/// The descriptors of this process above 2 that no Descriptor owns, in order: those of a program
/// that is not ours.
std::vector<int> descriptors_of_program();

/// Closes all descriptors above 2 but these. Their numbers belong to no Descriptor any more: those
/// that had them are in the process from which this one was forked.
void close_all_but(std::vector<int> kept);

/// Opens /dev/null in the place of whichever of standard input, output and error is closed. The
/// next file or socket would have its number otherwise, and what is printed would go there. In the
/// place of standard output it cannot be written. For the beginning of a program.
void open_standard_descriptors();

/// The meaning of an errno, as the end of a sentence: "no such file or directory".
std::string error_text(int error_number);

/// Whether an errno says that the machine is short of something or that its disk fails, and not
/// that the request is wrong: what Error::of_machine says.
bool is_of_machine(int error_number);

/// "cannot read '/x': no such file or directory", for `what` "cannot read '/x'" and the errno.
Error system_error(std::string_view what, int error_number);

}  // namespace trainyard::sys
