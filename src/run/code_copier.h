// Makes the copy of a work tree in which the tasks of a run work (run/code_copy.h).
//
// Copied are the files that git knows, in their state in the work tree, and those that it neither
// knows nor ignores. Deleted files are left out. Ignored files - data, environments, outputs - are
// linked, except those compiled by Python; and so are other runs, whether git ignores them or not.
// Repositories within are copied likewise.
//
// Blocks the calling thread for as long as all of that takes.
#pragma once

#include <cstddef>
#include <functional>
#include <string>

#include "base/result.h"
#include "run/code_copy.h"

namespace trainyard::run {

struct CodeCopying {
  std::string directory;      ///< In the work tree.
  std::string run_directory;  ///< Must exist. An earlier copy in it is deleted.
  /// Called often: returns true to give up.
  std::function<bool()> is_given_up = [] { return false; };
  /// Called often with the number of files that have been copied.
  std::function<void(std::size_t)> tell = [](std::size_t) {};
};

/// An error, and nothing of a copy is left, where it cannot be made, or is given up.
Result<CodeCopy> copy_code(const CodeCopying& copying);

}  // namespace trainyard::run
