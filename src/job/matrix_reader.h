// Makes the matrix of a group: reads `matrix:` of a job file, and inherits the cells of other groups
// (`match: matrix`).
#pragma once

#include <optional>
#include <span>
#include <string>

#include "base/result.h"
#include "job/job_files.h"
#include "job/job_spec.h"
#include "job/matrix.h"
#include "text/mistake.h"
#include "text/yaml_reader.h"

namespace trainyard::job {

/// The matrix of a group whose tasks are matched with those of other groups: their cells, and in
/// each of these the values that the group's own matrix adds.
/// `own` is the group's own matrix; nullptr if it has none. A key that both have is matched: its
/// values are the group's own. Costs O(combinations of the result). An error names a combination of
/// `own` without a counterpart, or the limit that is exceeded.
Result<Matrix> inherit(const Matrix* own, std::span<const Need> needs,
                       std::span<const GroupSpec> before);

struct MatrixOrigin {
  std::string directory;  ///< The names of files are relative to this.
  std::string where;      ///< The beginning of each mistake: "group 'train': ".
  JobFiles& files;        ///< A file in here is not read again; files that are read are added.
  std::vector<std::string>& warnings;  ///< Doubtful values are added.
};

/// Reads and expands. Nothing when there was a mistake: it has been added to `mistakes`.
std::optional<Matrix> read_matrix(const text::YamlDocument& document, const text::YamlNode& node,
                                  const MatrixOrigin& place, text::MistakeList& mistakes);

}  // namespace trainyard::job
