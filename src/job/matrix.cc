#include "job/matrix.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <expected>
#include <map>
#include <system_error>

#include <fmt/format.h>

#include "base/match.h"

namespace trainyard::job {
namespace {

constexpr std::int64_t kNumberMax = 1'000'000'000'000;

std::optional<std::int64_t> whole_number(std::string_view text) {
  std::int64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, status] = std::from_chars(text.data(), end, number);
  if (text.empty() || status != std::errc{} || stop != end) return std::nullopt;
  if (number > kNumberMax || number < -kNumberMax) return std::nullopt;
  return number;
}

/// "1..", "-3..": only meant as a range.
bool looks_like_range(std::string_view text) {
  if (text.starts_with('-')) text.remove_prefix(1);
  const auto digits = text.find_first_not_of("0123456789");
  return digits != 0 && digits != std::string_view::npos && text.substr(digits).starts_with("..");
}

std::uint32_t padded_width(std::string_view text) {
  return text.size() > 1 && text.front() == '0' ? static_cast<std::uint32_t>(text.size()) : 0;
}

std::string number_text(std::int64_t number, std::uint32_t width) {
  return width == 0 ? fmt::to_string(number) : fmt::format("{:0{}}", number, width);
}

}  // namespace

std::optional<Result<Range>> parse_range(std::string_view text) {
  if (!looks_like_range(text)) return std::nullopt;
  const auto refuse = [text](std::string_view why) {
    return std::unexpected(Error{fmt::format("'{}' {}", text, why)});
  };
  constexpr std::string_view kForm =
      "is not a valid range; write it as in '0..99', '9..0' or '0..100..10'";
  const auto first_dots = text.find("..");
  const std::string_view first_text = text.substr(0, first_dots);
  std::string_view last_text = text.substr(first_dots + 2);
  std::optional<std::int64_t> step = 1;
  if (const auto dots = last_text.find(".."); dots != std::string_view::npos) {
    step = whole_number(last_text.substr(dots + 2));
    last_text = last_text.substr(0, dots);
  }
  const auto first = whole_number(first_text);
  const auto last = whole_number(last_text);
  if (!first || !last || !step) return refuse(kForm);
  if (*step <= 0) return refuse("must have a positive step; '9..0..3' counts down by itself");
  const std::int64_t count = (std::abs(*last - *first) / *step) + 1;
  if (count > static_cast<std::int64_t>(Matrix::kCombinationsMax)) {
    return refuse(fmt::format("has more than {} values", Matrix::kCombinationsMax));
  }
  const std::uint32_t width = std::max(padded_width(first_text), padded_width(last_text));
  if (width > 0 && (*first < 0 || *last < 0)) {
    return refuse("cannot have both leading zeros and negative numbers");
  }
  if (width > 18) return refuse("has too many digits");
  return Range{.first = *first,
               .step = *last < *first ? -*step : *step,
               .count = static_cast<std::uint32_t>(count),
               .width = width};
}

std::size_t AxisValues::size() const {
  return match(
      values_, [](const std::vector<std::string>& list) { return list.size(); },
      [](const Range& range) { return std::size_t{range.count}; });
}

std::string AxisValues::at(std::size_t index) const {
  return match(
      values_, [index](const std::vector<std::string>& list) { return list[index]; },
      [index](const Range& range) {
        return number_text(range.first + (range.step * static_cast<std::int64_t>(index)),
                           range.width);
      });
}

std::optional<std::size_t> AxisValues::find(std::string_view value) const {
  if (const auto* list = std::get_if<std::vector<std::string>>(&values_)) {
    const auto found = std::ranges::find(*list, value);
    if (found == list->end()) return std::nullopt;
    return static_cast<std::size_t>(found - list->begin());
  }
  const auto& range = std::get<Range>(values_);
  // Leading zeros are part of the value: the text decides, the number only says where to look.
  std::string_view digits = value;
  while (range.width > 0 && digits.size() > 1 && digits.front() == '0') digits.remove_prefix(1);
  const auto number = whole_number(digits);
  if (!number || (*number - range.first) % range.step != 0) return std::nullopt;
  const std::int64_t index = (*number - range.first) / range.step;
  if (index < 0 || index >= std::int64_t{range.count}) return std::nullopt;
  if (at(static_cast<std::size_t>(index)) != value) return std::nullopt;
  return static_cast<std::size_t>(index);
}

/// An entry of include or exclude, with numbers for its keys and values.
struct Matrix::Entry {
  struct Fixed {
    std::size_t axis = 0;
    std::size_t value = 0;
  };
  std::vector<Fixed> fixed;  ///< Its values for axes.
  bool possible = true;      ///< False when it names a value that its axis does not have.
  Extras extras;             ///< Its other keys; all its keys if it must stand alone.
  Extras all;
};

Matrix::Matrix() : crossed_(1) {}

Result<Matrix> Matrix::expand(MatrixSource source) {
  if (source.axes.size() > kKeysMax) {
    return std::unexpected(Error{fmt::format("has more than {} keys", kKeysMax)});
  }
  Matrix matrix;
  std::size_t product = source.axes.empty() ? 0 : 1;
  for (MatrixAxis& axis : source.axes) {
    product *= axis.values.size();
    if (product > kCombinationsMax) {
      return std::unexpected(
          Error{fmt::format("makes more than {} combinations", kCombinationsMax)});
    }
    matrix.keys_.push_back(std::move(axis.key));
    matrix.axes_.push_back(std::move(axis.values));
  }
  if (product * (source.exclude.size() + source.include.size()) > kPairsMax) {
    return std::unexpected(
        Error{fmt::format("has {} combinations and {} entries of include and exclude, which is "
                          "too many",
                          product, source.exclude.size() + source.include.size())});
  }
  matrix.strides_.assign(matrix.axes_.size(), 1);
  for (std::size_t i = matrix.axes_.size(); i-- > 1;) {
    matrix.strides_[i - 1] = matrix.strides_[i] * matrix.axes_[i].size();
  }
  matrix.crossed_ = product;
  matrix.cross(source.exclude);
  matrix.include(source.include);
  if (matrix.size() > kCombinationsMax) {
    return std::unexpected(Error{fmt::format("makes more than {} combinations", kCombinationsMax)});
  }
  if (matrix.keys_.size() > kKeysMax) {
    return std::unexpected(Error{fmt::format("has more than {} keys", kKeysMax)});
  }
  matrix.extras_.shrink_to_fit();
  matrix.alone_.shrink_to_fit();
  matrix.extra_values_.shrink_to_fit();
  return matrix;
}

void Matrix::cross(const std::vector<MatrixEntry>& exclude) {
  std::vector<Entry> entries;
  for (const MatrixEntry& entry : exclude) {
    Entry compiled = compile(entry);
    if (compiled.possible && !compiled.fixed.empty()) entries.push_back(std::move(compiled));
  }
  if (entries.empty()) return;
  std::vector<std::uint32_t> kept;
  for (std::size_t product = 0; product < crossed_; ++product) {
    const bool excluded =
        std::ranges::any_of(entries, [&](const Entry& entry) { return agrees(product, entry); });
    if (!excluded) kept.push_back(static_cast<std::uint32_t>(product));
  }
  if (kept.size() == crossed_) return;
  kept.shrink_to_fit();
  crossed_ = kept.size();
  kept_ = std::move(kept);
}

void Matrix::include(const std::vector<MatrixEntry>& entries) {
  std::map<Extras, std::uint32_t> numbers{{Extras{}, 0}};
  extras_.assign(1, Extras{});
  for (const MatrixEntry& entry : entries) {
    const Entry compiled = compile(entry);
    bool fits_somewhere = false;
    // The result of adding this entry to each set of extras: few sets, many combinations.
    std::map<std::uint32_t, std::uint32_t> becomes;
    for (std::size_t i = 0; compiled.possible && i < crossed_; ++i) {
      if (!agrees(product_index(i), compiled)) continue;
      fits_somewhere = true;
      if (compiled.extras.empty()) break;
      if (added_.empty()) added_.assign(crossed_, 0);
      const auto [next, fresh] = becomes.try_emplace(added_[i], 0);
      if (fresh) {
        std::map<std::uint16_t, std::uint32_t> merged;
        for (const Extra& extra : extras_[added_[i]]) merged[extra.key] = extra.value;
        for (const Extra& extra : compiled.extras) merged[extra.key] = extra.value;
        Extras extras;
        for (const auto& [key, value] : merged) extras.push_back({.key = key, .value = value});
        const auto [known, added] =
            numbers.try_emplace(extras, static_cast<std::uint32_t>(extras_.size()));
        if (added) extras_.push_back(std::move(extras));
        next->second = known->second;
      }
      added_[i] = next->second;
    }
    if (!fits_somewhere) alone_.push_back(compiled.all);
  }
}

std::uint16_t Matrix::key_number(const std::string& key) {
  const auto found = std::ranges::find(keys_, key);
  const auto number = static_cast<std::uint16_t>(found - keys_.begin());
  // One more than the limit is kept, for expand() to see that it is exceeded.
  if (found == keys_.end() && keys_.size() <= kKeysMax) keys_.push_back(key);
  return number;
}

Matrix::Entry Matrix::compile(const MatrixEntry& entry) {
  Entry compiled;
  for (const auto& [key, value] : entry) {
    const std::uint16_t number = key_number(key);
    const Extra extra{.key = number, .value = static_cast<std::uint32_t>(extra_values_.size())};
    extra_values_.push_back(value);
    compiled.all.push_back(extra);
    if (number >= axes_.size()) {
      compiled.extras.push_back(extra);
      continue;
    }
    if (const auto index = axes_[number].find(value)) {
      compiled.fixed.push_back({.axis = number, .value = *index});
    } else {
      compiled.possible = false;
    }
  }
  std::ranges::sort(compiled.all, {}, &Extra::key);
  compiled.all.shrink_to_fit();
  return compiled;
}

bool Matrix::agrees(std::size_t product, const Entry& entry) const {
  return std::ranges::all_of(entry.fixed, [&](const Entry::Fixed& fixed) {
    return axis_index(product, fixed.axis) == fixed.value;
  });
}

std::size_t Matrix::product_index(std::size_t combination) const {
  return kept_.empty() ? combination : kept_[combination];
}

std::size_t Matrix::axis_index(std::size_t product, std::size_t axis) const {
  return product / strides_[axis] % axes_[axis].size();
}

std::optional<std::string> Matrix::value(std::size_t combination, std::size_t key) const {
  if (combination < crossed_ && key < axes_.size()) {
    return axes_[key].at(axis_index(product_index(combination), key));
  }
  const Extras* extras = nullptr;
  if (combination >= crossed_) {
    extras = &alone_[combination - crossed_];
  } else if (!added_.empty()) {
    extras = &extras_[added_[combination]];
  }
  if (extras == nullptr) return std::nullopt;
  const auto found = std::ranges::find(*extras, key, &Extra::key);
  if (found == extras->end()) return std::nullopt;
  return extra_values_[found->value];
}

std::optional<std::size_t> Matrix::values_in_product(std::size_t key) const {
  const bool is_product = crossed_ > 0 && kept_.empty() && added_.empty() && alone_.empty();
  if (!is_product || key >= axes_.size()) return std::nullopt;
  return axes_[key].size();
}

bool Matrix::everywhere(std::size_t key) const {
  const auto has = [key](const Extras& extras) {
    return std::ranges::find(extras, key, &Extra::key) != extras.end();
  };
  if (!std::ranges::all_of(alone_, has)) return false;
  if (crossed_ == 0 || key < axes_.size()) return true;
  if (added_.empty()) return false;
  return std::ranges::all_of(added_, [&](std::uint32_t set) { return has(extras_[set]); });
}

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
