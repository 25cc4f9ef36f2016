// Reads `matrix:` of a job file into a MatrixSource.
#pragma once

#include <optional>
#include <string>

#include "job/job_files.h"
#include "job/matrix.h"
#include "text/mistake.h"
#include "text/yaml_reader.h"

namespace trainyard::job {

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
