// A file that grows: what is new since the last look, and a bound on it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

#include "base/bytes.h"
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
  /// (sys/tail.h); empty when there is nothing new, or when all has been read
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

/// Bounds a log that another program writes: drops the middle of a file that takes more than `most`
/// of the disk, so that an eighth of `most` stays at its beginning, and half of `most` at its end.
/// The middle becomes a hole and the length stays, so writers and readers continue as before.
/// Returns the bytes that were given back; nothing for a file that takes no more, does not exist, is
/// not a plain file or has a second name (a hard link). An error if the file system can make no
/// holes (NFS before 4.2), or the file may not be written.
///
/// Between two looks the file takes more, as much as is written meanwhile. `most` is at least a
/// megabyte: whole blocks of 64 KiB are kept.
Result<Bytes> bound_log(const std::string& path, Bytes most);

}  // namespace trainyard::sys
