// Makes the copy of a work tree in which the tasks of a run work (run/code_copy.h).
//
// Copied is what git knows, as it stands in the work tree, and what it neither knows nor ignores.
// What has been deleted is not there. What git ignores - data, environments, outputs - is linked,
// but for what Python compiles; and so are other runs, whether git ignores them or not.
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
  std::string run_directory;  ///< Is there. What is left of an earlier copy goes.
  /// Asked often: whether it is to be given up.
  std::function<bool()> is_given_up = [] { return false; };
  /// Told often: how many files have been copied.
  std::function<void(std::size_t)> tell = [](std::size_t) {};
};

/// An error, and nothing of a copy is left, where it cannot be made, or is given up.
Result<CodeCopy> copy_code(const CodeCopying& copying);

}  // namespace trainyard::run
