// The copy of a work tree in which the tasks of a run work, so that further edits change nothing
// for them: <run-dir>/trainyard.code, and next to it the path of the copied work tree.
//
// For git it is a work tree of its own that is not registered: it shares the commits of the
// original, and has its own HEAD and index. Ignored files are not copied but linked.
// run/code_copier.h makes the copy.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace trainyard::run {

struct CodeCopy {
  std::string root;  ///< The original's; absolute, without links on the way, like `path`.
  std::string path;  ///< The copy's.

  /// The directory of the copy that corresponds to a directory of the original. A directory outside
  /// of the original, or in the run directory, is returned as it is. Absolute.
  [[nodiscard]] std::string place_of(const std::string& directory) const;

  friend bool operator==(const CodeCopy&, const CodeCopy&) = default;
};

/// The path of the copy of a run, and of the file with the path of the original: written when the
/// copy is whole.
std::string code_copy_path(const std::string& run_directory);
std::string code_record_path(const std::string& run_directory);

/// The copy of the code that a run uses; nothing if it uses the work tree itself. An error if the
/// copy is incomplete or was deleted.
Result<std::optional<CodeCopy>> code_copy_of(const std::string& run_directory);

/// Records that there is a whole copy.
Result<void> keep_code_copy(const std::string& run_directory, const std::string& root);

/// Deletes the copy, as far as that can be done, and its record.
void drop_code_copy(const std::string& run_directory);

}  // namespace trainyard::run
