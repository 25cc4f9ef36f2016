// The copy of a work tree in which the tasks of a run work, so that further edits change nothing
// for them: <run-dir>/trainyard.code, and next to it the path of the copied work tree.
//
// For git it is a work tree of its own that is not registered: it shares the commits of the
// original, and has its own HEAD and index. Ignored files are not copied but linked.
#pragma once

#include <cstddef>
#include <functional>
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

  /// Why no task may work in the copy: a link is in its place, which a task may have made. Nothing
  /// if there is none.
  [[nodiscard]] std::optional<std::string> reason_to_refuse() const;

  friend bool operator==(const CodeCopy&, const CodeCopy&) = default;
};

/// The path of the copy of a run, and of the file with the path of the original: written when the
/// copy is whole.
std::string code_copy_path(const std::string& run_directory);
std::string code_record_path(const std::string& run_directory);

/// The copy of the code that a run uses; nothing if it uses the work tree itself. An error with the
/// cure if the copy is incomplete, was deleted, or was replaced by a link. Without the record of a
/// whole copy, only a directory with `.git` is an incomplete one.
Result<std::optional<CodeCopy>> code_copy_of(const std::string& run_directory);

/// Deletes the copy, as far as that can be done, and its record.
void drop_code_copy(const std::string& run_directory);

struct CodeCopying {
  std::string directory;      ///< In the work tree.
  std::string run_directory;  ///< Must exist. An earlier copy in it is deleted.
  /// Called often: returns true to give up.
  std::function<bool()> is_given_up = [] { return false; };
  /// Called often with the number of files that have been copied.
  std::function<void(std::size_t)> tell = [](std::size_t) {};
};

/// Makes the copy. Copied are the files that git knows, in their state in the work tree, and those
/// that it neither knows nor ignores. Deleted files are left out. Ignored files - data,
/// environments, outputs - are linked, except those compiled by Python; and so are other runs,
/// whether git ignores them or not. Repositories within are copied likewise. An error, and nothing
/// of a copy is left, where it cannot be made, or is given up. Blocks the calling thread for as
/// long as all of that takes.
Result<CodeCopy> copy_code(const CodeCopying& copying);

}  // namespace trainyard::run
