#include "job/matrix_reader.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <expected>
#include <filesystem>
#include <iterator>
#include <map>
#include <ranges>
#include <set>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/nearest.h"
#include "job/task_environment.h"
#include "text/condition.h"
#include "text/key_reader.h"
#include "text/placeholder.h"
#include "text/text_file.h"

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
  Cells cells{.keys = keys};
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
  Cells both{.keys = left.keys};
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

constexpr std::string_view kValuesWanted =
    "must be a list as in [1e-3, 1e-4], a range as in 0..99, or the lines of a file as in {file: "
    "seeds.txt}";

/// Room is left for the name of its variable (TRAINYARD_V65535=) and the final NUL.
constexpr std::size_t kValueMax = kVariableMax - 18;

/// Empty where it is not.
std::string why_too_long(std::string_view value) {
  if (value.size() <= kValueMax) return "";
  return fmt::format(
      "has {} bytes, but one value of a program can have at most {}; write it to a file and use "
      "the name of the file here",
      value.size(), kValueMax);
}

class MatrixReader {
 public:
  MatrixReader(const text::YamlDocument& document, const MatrixOrigin& place,
               text::MistakeList& mistakes)
      : document_(document), place_(place), mistakes_(mistakes) {}

  std::optional<Matrix> read(const text::YamlNode& node) {
    const std::size_t mistakes_before = mistakes_.count();
    if (node.kind != text::YamlKind::Mapping || node.items.empty()) {
      complain(node,
               "'matrix' must be keys with their values, as in {lr: [1e-3, 1e-4], seed: 0..4}");
      return std::nullopt;
    }
    for (std::size_t i = 0; i < node.items.size(); i += 2) {
      const text::YamlNode& key = *node.items[i];
      if (key.text == "include" || key.text == "exclude") continue;
      axis_keys_.emplace_back(key.text);
      read_axis(key, *node.items[i + 1]);
    }
    if (const text::YamlNode* exclude = node.find("exclude")) read_entries("exclude", *exclude);
    if (const text::YamlNode* include = node.find("include")) read_entries("include", *include);
    if (mistakes_.count() != mistakes_before) return std::nullopt;

    Result<Matrix> matrix = Matrix::expand(std::move(source_));
    if (!matrix) {
      complain(node, fmt::format("the matrix {}", matrix.error().message));
      return std::nullopt;
    }
    if (matrix->size() == 0) {
      complain(node, "the matrix is empty: no combination is left");
      return std::nullopt;
    }
    return std::move(*matrix);
  }

 private:
  void complain(const text::YamlNode& node, const std::string& message) {
    mistakes_.add(document_.mistake(node, place_.where + message));
  }

  bool check_key(const text::YamlNode& key) {
    const std::string name = key.text.substr(0, key.text.find('='));
    if (name.size() < key.text.size() && text::is_identifier(name)) {
      complain(key, fmt::format("'{}': write '{}: ' instead of '{}='", key.text, name, name));
      return false;
    }
    if (!text::is_identifier(key.text)) {
      complain(key, fmt::format("the matrix key '{}' is not a valid name; use letters, digits, '_' "
                                "and '-', and start with a letter",
                                key.text));
      return false;
    }
    if (std::ranges::find(text::kOwnPlaceholders, key.text) != text::kOwnPlaceholders.end()) {
      complain(key,
               fmt::format(
                   "the matrix key '{}' is the name of a built-in placeholder; choose another name",
                   key.text));
      return false;
    }
    return true;
  }

  void read_axis(const text::YamlNode& key, const text::YamlNode& node) {
    if (!check_key(key) || is_misspelt(key, node)) return;
    std::optional<AxisValues> values;
    if (node.kind == text::YamlKind::List) {
      values = read_list(key, node);
    } else if (node.kind == text::YamlKind::Mapping) {
      values = read_file(key, node);
    } else if (auto range = range_of(node)) {
      if (*range) {
        values = AxisValues(**range);
      } else {
        complain(node, fmt::format("'{}': {}", key.text, range->error().message));
      }
    } else if (node.quoted && parse_range(node.text)) {
      complain(node, fmt::format("'{}' must be a range without quotes: {}", key.text, node.text));
    } else {
      complain(node, fmt::format("'{}' {}", key.text, kValuesWanted));
    }
    if (values) source_.axes.push_back({.key = key.text, .values = std::move(*values)});
  }

  /// A list of combinations is what `include` and `exclude` have.
  bool is_misspelt(const text::YamlNode& key, const text::YamlNode& node) {
    constexpr std::array<std::string_view, 2> kOfCombinations{"include", "exclude"};
    const bool combinations = node.kind == text::YamlKind::List &&
                              std::ranges::any_of(node.items, [](const text::YamlNode* item) {
                                return item->kind == text::YamlKind::Mapping;
                              });
    if (!combinations) return false;
    const auto meant = nearest(key.text, kOfCombinations);
    if (meant) {
      complain(key, fmt::format("'{}' has combinations for values (did you mean '{}'?)", key.text,
                                *meant));
    }
    return meant.has_value();
  }

  static std::optional<Result<Range>> range_of(const text::YamlNode& node) {
    if (node.kind != text::YamlKind::Text || node.quoted) return std::nullopt;
    return parse_range(node.text);
  }

  std::optional<AxisValues> read_list(const text::YamlNode& key, const text::YamlNode& node) {
    std::vector<std::string> values;
    std::unordered_map<std::string, bool> seen;
    const std::size_t mistakes_before = mistakes_.count();
    const auto add = [&](const text::YamlNode& place, const std::string& value) {
      if (!seen.emplace(value, true).second) {
        complain(place, fmt::format("'{}': duplicate value '{}'", key.text, value));
      }
      values.push_back(value);
    };
    for (const text::YamlNode* item : node.items) {
      if (auto range = range_of(*item)) {
        if (!*range) complain(*item, fmt::format("'{}': {}", key.text, range->error().message));
        const std::size_t count = *range ? (*range)->count : 0;
        if (values.size() + count > Matrix::kCombinationsMax) {
          complain(*item, too_many(key));
          return std::nullopt;
        }
        for (std::size_t i = 0; i < count; ++i) add(*item, AxisValues(**range).at(i));
      } else if (const auto text = single_value(key, *item)) {
        add(*item, *text);
        warn_of_blanks(key, *item);
      }
    }
    if (node.items.empty()) complain(node, fmt::format("'{}' has no values", key.text));
    if (mistakes_.count() != mistakes_before) return std::nullopt;
    values.shrink_to_fit();
    return AxisValues(std::move(values));
  }

  /// Numbers with blanks between them are one text to YAML. In quotes they are meant to be.
  void warn_of_blanks(const text::YamlNode& key, const text::YamlNode& node) {
    if (node.quoted || !node.text.contains(' ')) return;
    const auto is_number = [](const auto part) {
      return std::ranges::empty(part) || text::number_of(std::string_view(part)).has_value();
    };
    if (!std::ranges::all_of(std::views::split(std::string_view(node.text), ' '), is_number)) {
      return;
    }
    place_.warnings.push_back(
        fmt::format("{}matrix key '{}': '{}' is one value; write commas between values, or quotes "
                    "around this one",
                    place_.where, key.text, node.text));
  }

  static std::string too_many(const text::YamlNode& key) {
    return fmt::format("'{}' has more than {} values", key.text, Matrix::kCombinationsMax);
  }

  std::optional<std::string> single_value(const text::YamlNode& key, const text::YamlNode& node) {
    const bool nothing = node.kind == text::YamlKind::Null && node.text.empty();
    if (node.kind == text::YamlKind::List || node.kind == text::YamlKind::Mapping || nothing) {
      complain(node, fmt::format("'{}': a value of a matrix must be a single number or text{}",
                                 key.text, nothing ? "; write \"\" for an empty one" : ""));
      return std::nullopt;
    }
    if (node.text.contains('\0')) {
      complain(node, fmt::format("'{}': {}", key.text, text::kNoNul));
      return std::nullopt;
    }
    if (const std::string why = why_too_long(node.text); !why.empty()) {
      complain(node, fmt::format("'{}': {}", key.text, why));
      return std::nullopt;
    }
    return node.text;
  }

  std::optional<AxisValues> read_file(const text::YamlNode& key, const text::YamlNode& node) {
    const bool known = node.items.size() == 2 && node.items[0]->text == "file" &&
                       node.items[1]->kind == text::YamlKind::Text && !node.items[1]->text.empty();
    if (!known) {
      complain(node, fmt::format("'{}' {}", key.text, kValuesWanted));
      return std::nullopt;
    }
    const text::YamlNode& name = *node.items[1];
    const std::string path = (std::filesystem::path(place_.directory) / name.text).string();
    const auto kept = place_.files.find(path);
    Result<std::string> text =
        kept == place_.files.end() ? text::read_text_file(path) : Result<std::string>(kept->second);
    auto lines = text ? read_lines(*text) : std::unexpected(text.error());
    if (!lines) {
      complain(name, fmt::format("'{}': {}: {}", key.text, name.text, lines.error().message));
      return std::nullopt;
    }
    place_.files.insert_or_assign(path, std::move(*text));
    return AxisValues(std::move(*lines));
  }

  static Result<std::vector<std::string>> read_lines(std::string_view text) {
    std::vector<std::string> values;
    std::unordered_map<std::string_view, std::size_t> first_line;
    std::size_t number = 0;
    while (!text.empty()) {
      ++number;
      const auto end = std::min(text.find('\n'), text.size());
      std::string_view line = text.substr(0, end);
      text.remove_prefix(std::min(end + 1, text.size()));
      const auto first = line.find_first_not_of(" \t\r");
      if (first == std::string_view::npos) continue;
      line = line.substr(first, line.find_last_not_of(" \t\r") - first + 1);
      if (const auto bad = text::find_bad_byte(line)) {
        return std::unexpected(Error{fmt::format("line {}: {}", number, bad->why)});
      }
      if (const std::string why = why_too_long(line); !why.empty()) {
        return std::unexpected(Error{fmt::format("line {}: {}", number, why)});
      }
      const auto [seen, fresh] = first_line.emplace(line, number);
      if (!fresh) {
        return std::unexpected(Error{
            fmt::format("duplicate value '{}' in lines {} and {}", line, seen->second, number)});
      }
      if (values.size() >= Matrix::kCombinationsMax) {
        return std::unexpected(
            Error{fmt::format("has more than {} values", Matrix::kCombinationsMax)});
      }
      values.emplace_back(line);
    }
    if (values.empty()) return std::unexpected(Error{"has no values: all its lines are empty"});
    values.shrink_to_fit();
    return values;
  }

  void read_entries(std::string_view what, const text::YamlNode& node) {
    if (node.kind != text::YamlKind::List) {
      complain(
          node,
          fmt::format("'{}' must be a list of combinations, as in [{{lr: 1e-3, seed: 0}}]", what));
      return;
    }
    for (const text::YamlNode* item : node.items) {
      if (item->kind != text::YamlKind::Mapping || item->items.empty()) {
        complain(*item,
                 fmt::format("an entry of '{}' must be a combination, as in {{lr: 1e-3, seed: 0}}",
                             what));
        continue;
      }
      read_entry(what, *item);
    }
  }

  void read_entry(std::string_view what, const text::YamlNode& node) {
    MatrixEntry entry;
    for (std::size_t i = 0; i < node.items.size(); i += 2) {
      const text::YamlNode& key = *node.items[i];
      if (what == "exclude" && !is_axis(key.text)) {
        complain(key, unknown_axis(key.text));
        continue;
      }
      if (what == "include" && !check_key(key)) continue;
      if (const auto value = single_value(key, *node.items[i + 1])) {
        entry.emplace_back(key.text, *value);
      }
    }
    (what == "include" ? source_.include : source_.exclude).push_back(std::move(entry));
  }

  /// One whose values are wrong is a key all the same: it is complained about once.
  [[nodiscard]] bool is_axis(std::string_view key) const {
    return std::ranges::find(axis_keys_, key) != axis_keys_.end();
  }

  [[nodiscard]] std::string unknown_axis(std::string_view key) const {
    const auto meant = nearest(key, axis_keys_);
    if (meant) {
      return fmt::format("exclude: the matrix has no key '{}' (did you mean '{}'?)", key, *meant);
    }
    return fmt::format("exclude: the matrix has no key '{}'", key);
  }

  const text::YamlDocument& document_;
  const MatrixOrigin& place_;
  text::MistakeList& mistakes_;
  MatrixSource source_;
  std::vector<std::string_view> axis_keys_;
};

}  // namespace

Result<Matrix> inherit(const Matrix* own, std::span<const Need> needs,
                       std::span<const GroupSpec> before) {
  Cells cells{.rows = {{}}};
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

std::optional<Matrix> read_matrix(const text::YamlDocument& document, const text::YamlNode& node,
                                  const MatrixOrigin& place, text::MistakeList& mistakes) {
  return MatrixReader(document, place, mistakes).read(node);
}

}  // namespace trainyard::job
