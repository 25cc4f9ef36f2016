// The Python client of trainyard, which a Python rank is: the package python/trainyard, in this
// program.
//
// Given to the ranks as files, so that they surely speak the same as this program: in the user's
// cache directory, or in the group's own where there is none.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "ranks/launch_line.h"

namespace trainyard::ranks {

struct PythonFile {
  std::string_view path;  ///< From the directory in which the package lies.
  std::string_view text;
};

/// The files of python/trainyard that a rank needs. A package comes before the files in it.
extern const std::span<const PythonFile> kPythonClient;

/// Writes the client where it is found, `directory` if need be; what a rank is whose executor is of
/// type `python`. `components` is as check_components() gives it. Its preload imports what all
/// ranks need, NumPy where it is there: each by itself would take a tenth of a second to do so.
/// `environment`: what it finds in its own, beside what we have, as NAME=value.
Result<RankCommand> python_rank(const std::string& components, std::string_view executor,
                                const std::string& directory,
                                const std::vector<std::string>& environment);

}  // namespace trainyard::ranks
