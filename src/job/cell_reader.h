// The values that the combinations of a matrix have for some of its keys: tasks of several groups
// are of the same cell if these are equal. Pure; any thread.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "job/matrix.h"

namespace trainyard::job {

/// A value for each key, or none.
using Cell = std::vector<std::optional<std::string>>;

class CellReader {
 public:
  /// A key that the matrix does not know has no value anywhere. The matrix must outlive it.
  CellReader(const Matrix& matrix, const std::vector<std::string>& keys);

  [[nodiscard]] Cell cell(std::size_t combination) const;

 private:
  const Matrix* matrix_;
  std::vector<std::size_t> places_;  ///< The indices of the keys among those of the matrix.
};

}  // namespace trainyard::job
