#include "job/inherited_matrix.h"

#include <algorithm>
#include <cstddef>
#include <expected>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace trainyard::job {
namespace {

/// A table: some keys, and rows with a value for each, or none.
using Row = Cell;
struct Cells {
  std::vector<std::string> keys;
  std::vector<Row> rows;
};

/// The different values that a matrix has for some of its keys, in its order.
Cells cells_of(const Matrix& matrix, const std::vector<std::string>& keys) {
  Cells cells{.keys = keys, .rows = {}};
  const CellReader reader(matrix, keys);
  std::set<Row> seen;
  for (std::size_t combination = 0; combination < matrix.size(); ++combination) {
    Row row = reader.cell(combination);
    if (seen.insert(row).second) cells.rows.push_back(std::move(row));
  }
  return cells;
}

/// The keys of both tables; for each its places in them.
struct Common {
  std::vector<std::size_t> left;
  std::vector<std::size_t> right;
  std::vector<std::size_t> only_right;
};

Common common_keys(const Cells& left, const Cells& right) {
  Common common;
  for (std::size_t i = 0; i < right.keys.size(); ++i) {
    const auto found = std::ranges::find(left.keys, right.keys[i]);
    if (found == left.keys.end()) {
      common.only_right.push_back(i);
    } else {
      common.left.push_back(static_cast<std::size_t>(found - left.keys.begin()));
      common.right.push_back(i);
    }
  }
  return common;
}

Row part_of_row(const Row& row, const std::vector<std::size_t>& places) {
  Row part;
  part.reserve(places.size());
  for (const std::size_t place : places) part.push_back(row[place]);
  return part;
}

std::string row_text(const Cells& cells, const Row& row) {
  std::string text;
  for (std::size_t i = 0; i < row.size(); ++i) {
    const std::optional<std::string>& value = row[i];
    if (value) text += fmt::format("{}{}={}", text.empty() ? "" : ",", cells.keys[i], *value);
  }
  return text;
}

Error too_many() {
  return Error{fmt::format("makes more than {} combinations", Matrix::kCombinationsMax)};
}

/// Each row with each of the other table that agrees with it where both have the key.
Result<Cells> joined(const Cells& left, const Cells& right) {
  const Common common = common_keys(left, right);
  std::map<Row, std::vector<const Row*>> by_common;
  for (const Row& row : right.rows) by_common[part_of_row(row, common.right)].push_back(&row);
  Cells both{.keys = left.keys, .rows = {}};
  for (const std::size_t key : common.only_right) both.keys.push_back(right.keys[key]);
  for (const Row& row : left.rows) {
    const auto partners = by_common.find(part_of_row(row, common.left));
    if (partners == by_common.end()) continue;
    for (const Row* const partner : partners->second) {
      Row whole = row;
      std::ranges::move(part_of_row(*partner, common.only_right), std::back_inserter(whole));
      both.rows.push_back(std::move(whole));
      if (both.rows.size() > Matrix::kCombinationsMax) return std::unexpected(too_many());
    }
  }
  return both;
}

/// A row of `some` for which `whole` has none; nothing where there is one for each.
std::optional<std::string> left_alone(const Cells& some, const Cells& whole) {
  const Common common = common_keys(whole, some);
  std::set<Row> there;
  for (const Row& row : whole.rows) there.insert(part_of_row(row, common.left));
  for (const Row& row : some.rows) {
    if (!there.contains(part_of_row(row, common.right))) return row_text(some, row);
  }
  return std::nullopt;
}

Result<Matrix> matrix_of(const Cells& cells) {
  MatrixSource source;
  source.include.reserve(cells.rows.size());
  for (const Row& row : cells.rows) {
    MatrixEntry entry;
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::optional<std::string>& value = row[i];
      if (value) entry.emplace_back(cells.keys[i], *value);
    }
    source.include.push_back(std::move(entry));
  }
  return Matrix::expand(std::move(source));
}

}  // namespace

Result<Matrix> inherit(const Matrix* own, std::span<const Need> needs,
                       std::span<const GroupSpec> before) {
  Cells cells{.keys = {}, .rows = {{}}};
  for (const Need& need : needs) {
    if (!need.match) continue;
    const auto other = std::ranges::find(before, need.group, &GroupSpec::name);
    // A group that takes all keys from the other has the same matrix.
    const bool whole = own == nullptr && cells.keys.empty() && needs.size() == 1 &&
                       need.match->size() == other->matrix.keys().size();
    if (whole) return other->matrix;
    Result<Cells> more = joined(cells, cells_of(other->matrix, *need.match));
    if (!more) return std::unexpected(std::move(more.error()));
    cells = std::move(*more);
  }
  if (own != nullptr) {
    const Cells mine = cells_of(*own, own->keys());
    Result<Cells> more = joined(cells, mine);
    if (!more) return std::unexpected(std::move(more.error()));
    if (const auto alone = left_alone(mine, *more)) {
      return std::unexpected(
          Error{fmt::format("has the combination {}, which no task that it needs has", *alone)});
    }
    cells = std::move(*more);
  }
  if (cells.rows.empty()) {
    return std::unexpected(
        Error{"has no combination that is in all groups which it is matched with"});
  }
  return matrix_of(cells);
}

}  // namespace trainyard::job
