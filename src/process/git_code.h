// Finds the code in a directory: asks git.
//
// Blocks the calling thread, for some seconds at most: the loop of a yard has it done elsewhere
// (process/code_asker.h).
#pragma once

#include <optional>
#include <string>

#include "model/code.h"

namespace trainyard::process {

struct FoundCode {
  model::Code code;
  std::string diff;  ///< The changes since its commit: the first MiB.
};

/// Nothing where git is missing, knows of no commit there, or takes too long. Files that git does
/// not know are not looked at, and of what is changed the first 16 MiB.
std::optional<FoundCode> find_code(const std::string& directory);

/// Whether files that git tracks in the work tree differ now from that code; a commit alone changes
/// none. Nothing where git is missing, does not know the commit, or takes too long.
std::optional<bool> has_changed(const model::Code& code);

}  // namespace trainyard::process
