#include "sys/descriptor.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <system_error>

#include <fcntl.h>
#include <unistd.h>

#include <fmt/format.h>

#include "sys/files.h"

namespace trainyard::sys {
namespace {

/// Descriptors have smaller numbers, unless the administrator has raised fs.nr_open. Larger ones
/// are taken for those of the program.
constexpr int kNumbersMax = 1 << 20;
constexpr int kBits = 64;

// A bit for each number that a Descriptor owns. The number of a descriptor belongs to the process,
// and so does this list; it has no lock, as a fork beside other threads could find that locked for
// ever.
// NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables): see above
std::array<std::atomic<std::uint64_t>, kNumbersMax / kBits> owned;

constexpr std::uint64_t bit_of(int number) { return std::uint64_t{1} << (number % kBits); }

void set_owned(int number, bool owns) {
  if (number < 0 || number >= kNumbersMax) return;
  std::atomic<std::uint64_t>& word = owned.at(static_cast<std::size_t>(number / kBits));
  if (owns) {
    word |= bit_of(number);
  } else {
    word &= ~bit_of(number);
  }
}

bool is_owned(int number) {
  return number < kNumbersMax &&
         (owned.at(static_cast<std::size_t>(number / kBits)) & bit_of(number)) != 0;
}

/// Closes the descriptors from `first` to the one before `end`.
void close_range_of(unsigned first, unsigned end) {
  if (first >= end) return;
  ::close_range(first, end - 1, 0);
  const auto last = static_cast<int>(std::min<unsigned>(end, kNumbersMax));
  for (int number = static_cast<int>(first); number < last;) {
    const bool is_whole_word = number % kBits == 0 && number + kBits <= last;
    if (is_whole_word && owned.at(static_cast<std::size_t>(number / kBits)) == 0) {
      number += kBits;
    } else {
      set_owned(number++, false);
    }
  }
}

}  // namespace

Descriptor::Descriptor(int value) : value_(value) { set_owned(value_, true); }

int Descriptor::release() {
  set_owned(value_, false);
  return std::exchange(value_, -1);
}

Descriptor Descriptor::duplicate(int descriptor) {
  return Descriptor(::fcntl(descriptor, F_DUPFD_CLOEXEC, 0));
}

void Descriptor::close() {
  // An error of close() on a descriptor that was only read, or whose writes were checked, tells
  // nothing that anybody could act on.
  if (is_open()) static_cast<void>(::close(release()));
}

std::vector<int> descriptors_of_program() {
  std::vector<int> found;
  for (const std::string& name : names_in("/proc/self/fd")) {
    const int number = std::atoi(name.c_str());
    // One of these is that of the directory that was listed, which is closed now.
    if (number > STDERR_FILENO && !is_owned(number) && ::fcntl(number, F_GETFD) >= 0) {
      found.push_back(number);
    }
  }
  std::ranges::sort(found);
  return found;
}

void close_all_but(std::vector<int> kept) {
  std::ranges::sort(kept);
  unsigned next = STDERR_FILENO + 1;
  for (const int number : kept) {
    if (number <= STDERR_FILENO) continue;
    close_range_of(next, static_cast<unsigned>(number));
    next = static_cast<unsigned>(number) + 1;
  }
  close_range_of(next, ~0U);
}

void open_standard_descriptors() {
  for (int number = STDIN_FILENO; number <= STDERR_FILENO; ++number) {
    if (::fcntl(number, F_GETFD) >= 0) continue;
    // open() takes the lowest number that is free. An answer that nobody can read is an error.
    const int flags = number == STDOUT_FILENO ? O_RDONLY : O_RDWR;
    if (::open("/dev/null", flags) != number) return;
  }
}

std::string error_text(int error_number) {
  if (error_number == EMFILE) return "too many open files, see 'ulimit -n'";
  std::string text = std::generic_category().message(error_number);
  // "No such file" reads as the end of a sentence; "I/O" and the like would stay.
  if (text.size() > 1 && text[0] >= 'A' && text[0] <= 'Z' && text[1] >= 'a' && text[1] <= 'z') {
    text[0] = static_cast<char>(text[0] | 0x20);
  }
  return text;
}

bool is_of_machine(int error_number) {
  switch (error_number) {
    case ENOSPC:
    case EDQUOT:
    case EAGAIN:
    case ENOMEM:
    case EMFILE:
    case ENFILE:
    case EROFS:
    case EIO:
      return true;
    default:
      return false;
  }
}

Error system_error(std::string_view what, int error_number) {
  Error error{fmt::format("{}: {}", what, error_text(error_number))};
  error.of_machine = is_of_machine(error_number);
  return error;
}

}  // namespace trainyard::sys
