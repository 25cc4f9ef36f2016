// The copy of a work tree in which the tasks of a run work, so that whoever edits on changes
// nothing for them: <run-dir>/trainyard.code, and beside it which work tree it is a copy of.
//
// It is a work tree of its own for git, that nobody has registered: it shares the commits of the
// original, and has its own HEAD and index. What git ignores is not copied but linked. How one is
// made is in run/code_copier.h.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace trainyard::run {

struct CodeCopy {
  std::string root;  ///< Of the original; absolute, without links on the way, as the next.
  std::string path;  ///< Of the copy.

  /// The directory of the copy that corresponds to a directory of the original. A directory outside
  /// of the original, or in the run directory, is returned as it is. Absolute.
  [[nodiscard]] std::string place_of(const std::string& directory) const;

  friend bool operator==(const CodeCopy&, const CodeCopy&) = default;
};

/// Where the copy of a run lies, and the file that says of what it is one: written when it is
/// whole.
std::string code_copy_path(const std::string& run_directory);
std::string code_record_path(const std::string& run_directory);

/// The copy of the code that a run uses; nothing if it uses the work tree itself. An error if the
/// copy is incomplete or was deleted.
Result<std::optional<CodeCopy>> code_copy_of(const std::string& run_directory);

/// There is one from now on, whole.
Result<void> keep_code_copy(const std::string& run_directory, const std::string& root);

/// Deletes it, as far as that can be done, and what is said of it.
void drop_code_copy(const std::string& run_directory);

}  // namespace trainyard::run
