// Deletes what is in a directory. Follows no links, neither on the way to it nor in it, and leaves
// the file system that it is on for no other.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"

namespace trainyard::sys {

struct Removal {
  std::string root;  ///< Absolute. The links on the way to it are followed.
  /// The root is the working directory, wherever it is now; `root` is its name in messages.
  bool is_working_directory = false;
  std::string directory;  ///< Seen from the root; no part of it is "..".
  /// Returns true for the names in the directory itself that stay.
  std::function<bool(std::string_view)> kept;
  bool only_look = false;  ///< Delete nothing, and report what would be deleted.
};

struct Removed {
  /// Size of the deleted files. A file that has another name elsewhere is not counted.
  Bytes bytes;
  std::size_t entries = 0;          ///< Number of deleted files, links and directories.
  std::vector<std::string> failed;  ///< Paths that could not be deleted, with the cause; at most
                                    ///< kFailedMax.

  static constexpr std::size_t kFailedMax = 10;
};

/// The directory itself stays. A directory that does not exist counts as empty, and so does a link.
/// Entries are deleted one by one, so that a failure does not save the rest.
Removed remove_below(const Removal& removal);

}  // namespace trainyard::sys
