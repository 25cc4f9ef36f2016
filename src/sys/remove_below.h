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
  std::string root;       ///< Absolute. The links on the way to it are followed.
  std::string directory;  ///< Seen from there; no part of it is "..".
  /// What of the directory itself stays, by its name.
  std::function<bool(std::string_view)> kept;
  bool only_look = false;  ///< Delete nothing, and say what would be.
};

struct Removed {
  /// Size of the deleted files. A file that has another name elsewhere is not counted.
  Bytes bytes;
  std::vector<std::string> failed;  ///< What could not be deleted, and why; at most kFailedMax.

  static constexpr std::size_t kFailedMax = 10;
};

/// The directory itself stays. One that is not there has nothing in it, nor has a link. One by one,
/// so that what cannot be deleted does not save the rest.
Removed remove_below(const Removal& removal);

}  // namespace trainyard::sys
