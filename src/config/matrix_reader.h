// What a job file says under `matrix:`, as a MatrixSource.
#pragma once

#include <optional>
#include <string>

#include "config/matrix.h"
#include "config/mistake.h"
#include "config/yaml_reader.h"

namespace trainyard {

struct MatrixPlace {
  std::string directory;  ///< What the names of files are relative to.
  std::string where;      ///< What starts each mistake: "group 'train': ".
};

/// Reads and expands. Nothing when there was a mistake: it has been added to `mistakes`.
std::optional<Matrix> read_matrix(const YamlDocument& document, const YamlNode& node,
                                  const MatrixPlace& place, MistakeList& mistakes);

}  // namespace trainyard
