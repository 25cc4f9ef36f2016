// What a job file says under `matrix:`, as a MatrixSource.
#pragma once

#include <optional>
#include <string>

#include "job/job_files.h"
#include "job/matrix.h"
#include "text/mistake.h"
#include "text/yaml_reader.h"

namespace trainyard::job {

struct MatrixOrigin {
  std::string directory;  ///< What the names of files are relative to.
  std::string where;      ///< What starts each mistake: "group 'train': ".
  JobFiles& files;        ///< What is there says what a file says; what is read is added.
  std::vector<std::string>& warnings;  ///< What may not be as it was meant is added.
};

/// Reads and expands. Nothing when there was a mistake: it has been added to `mistakes`.
std::optional<Matrix> read_matrix(const text::YamlDocument& document, const text::YamlNode& node,
                                  const MatrixOrigin& place, text::MistakeList& mistakes);

}  // namespace trainyard::job
