// Reading a file that grows: what is new since the last look.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

#include "base/result.h"

namespace trainyard::sys {

/// The last lines of a text, at most so many.
std::string_view last_lines(std::string_view text, std::size_t lines_max);

/// A file that need not be there yet. It is read only if it is a plain file: whoever writes there
/// might have put a link to something else in its place. A file that became shorter is read from
/// its beginning again.
class Tail {
 public:
  /// `below` is that of FileOptions (sys/open_file.h).
  explicit Tail(std::string path, std::string below = {})
      : path_(std::move(path)), below_(std::move(below)) {}

  /// The next piece, at most 64 KiB, or a line that says how much of it was not kept
  /// (sys/log_bound.h); empty when there is nothing new, or when all has been read
  /// that was there at the last stop_at_present().
  Result<std::string> read_more();

  /// The part of the file that read_more() has still to read.
  struct Unread {
    std::int64_t bytes = 0;
    bool anew = false;  ///< The file became shorter: it is read from its beginning again.
  };
  Unread unread();
  /// Passes over so many bytes of it.
  void skip(std::int64_t bytes) { offset_ += bytes; }

  /// Lets read_more() come to an end, however fast the file grows.
  void stop_at_present();

  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
  std::string below_;
  std::int64_t offset_ = 0;
  std::int64_t end_ = std::numeric_limits<std::int64_t>::max();
};

}  // namespace trainyard::sys
