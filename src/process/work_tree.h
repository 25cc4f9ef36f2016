// A work tree of git: where it lies, what is checked out, and which files it has. Asks git, and
// changes nothing.
//
// Blocks the calling thread for as long as git takes to read the whole tree.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace trainyard::process {

/// All of its paths are absolute, without links on the way.
struct WorkTree {
  std::string root;
  std::string commit;            ///< All digits of it.
  std::string git_directory;     ///< Git's files for this work tree alone.
  std::string common_directory;  ///< Files of all that share its commits.
  std::string index;             ///< The files that git knows; it may not exist.
};

/// The one that a directory lies in. An error, in words for people, where there is no git, no work
/// tree, or no commit yet.
Result<WorkTree> find_work_tree(const std::string& directory);

/// The content of a work tree, by names that are seen from its root. Deleted files are among those
/// that git knows.
struct TreeFiles {
  std::vector<std::string> known;    ///< Each once.
  std::vector<std::string> unknown;  ///< Neither known nor ignored.
  std::vector<std::string> nested;   ///< Submodules, and other repositories in the tree.
  /// The files that git ignores: a directory stands for all that is in it, if all of it is ignored.
  std::vector<std::string> ignored;
};

/// An error where it has more than 256 MB of names, and where git takes longer than ten minutes.
Result<TreeFiles> files_of(const WorkTree& tree);

/// Makes git read all files of a copied work tree, so that it need not do so whenever it is asked
/// for changes; it takes the files in `unchanged` for unchanged. An error is not reported.
void refresh_index(const std::string& root, const std::vector<std::string>& unchanged);

}  // namespace trainyard::process
