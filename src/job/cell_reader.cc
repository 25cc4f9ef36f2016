#include "job/cell_reader.h"

#include <algorithm>

namespace trainyard::job {

CellReader::CellReader(const Matrix& matrix, const std::vector<std::string>& keys)
    : matrix_(&matrix) {
  places_.reserve(keys.size());
  for (const std::string& key : keys) {
    const auto found = std::ranges::find(matrix.keys(), key);
    places_.push_back(static_cast<std::size_t>(found - matrix.keys().begin()));
  }
}

Cell CellReader::cell(std::size_t combination) const {
  Cell cell;
  cell.reserve(places_.size());
  for (const std::size_t key : places_) {
    cell.push_back(key < matrix_->keys().size() ? matrix_->value(combination, key) : std::nullopt);
  }
  return cell;
}

}  // namespace trainyard::job
