// How the directories of runs are named: runs/digits, and the next ones runs/digits-2, -3 and so
// on. The one convention, of `trainyard run --new`, of the library and of the demo.
#pragma once

#include <string>
#include <vector>

namespace trainyard {

/// The first of `first`, `first`-2, `first`-3, ... that is not there, is empty, or cannot be looked
/// at. Somebody else may take it as well: the lock decides.
std::string free_run_directory(const std::string& first);

/// Those of them that are there, in no order; runs/digits-50 may be the first of a job of that
/// name.
std::vector<std::string> run_directories_like(const std::string& first);

}  // namespace trainyard
