// The combinations of a matrix, by the rules of GitHub Actions.
//
// All values of all keys are multiplied, the first key varying slowest. Combinations that `exclude`
// names are removed. Then each entry of `include`, in order, is added to every combination that
// came from the multiplication and of which it would change no original value (values that an
// earlier include added may be changed); an entry that fits none becomes a separate combination.
//
// Small: a combination is a number, and at most a few numbers more where include or exclude touch
// it. Values stay as typed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/result.h"

namespace trainyard::job {

/// `0..99`, `9..0`, `0..100..10`, `00..15`: whole numbers, both ends belong to it.
struct Range {
  std::int64_t first = 0;
  std::int64_t step = 1;
  std::uint32_t count = 1;
  std::uint32_t width = 0;  ///< With leading zeros to that many digits.

  friend bool operator==(const Range&, const Range&) = default;
};

/// Reads a range; nothing when it is no range at all, an error when it was meant to be one.
std::optional<Result<Range>> parse_range(std::string_view text);

/// The values of one key: a list, or a range that is not written out.
class AxisValues {
 public:
  explicit AxisValues(std::vector<std::string> list) : values_(std::move(list)) {}
  explicit AxisValues(Range range) : values_(range) {}

  [[nodiscard]] std::size_t size() const;
  [[nodiscard]] std::string at(std::size_t index) const;
  [[nodiscard]] std::optional<std::size_t> find(std::string_view value) const;

 private:
  std::variant<std::vector<std::string>, Range> values_;
};

struct MatrixAxis {
  std::string key;
  AxisValues values;
};

/// An entry of include or exclude: keys with their values.
using MatrixEntry = std::vector<std::pair<std::string, std::string>>;

struct MatrixSource {
  std::vector<MatrixAxis> axes;
  std::vector<MatrixEntry> exclude;  ///< Only keys of axes.
  std::vector<MatrixEntry> include;
};

class Matrix {
 public:
  static constexpr std::size_t kCombinationsMax = 1'000'000;
  static constexpr std::size_t kKeysMax = 256;
  /// The maximum number of pairs of a combination and an entry of include or exclude.
  static constexpr std::size_t kPairsMax = 1'000'000'000;

  /// One combination without values, for a group without a matrix.
  Matrix();

  /// An error says which of the limits above is exceeded.
  static Result<Matrix> expand(MatrixSource source);

  /// All keys: those of the axes in the order of the file, then those that only include has.
  [[nodiscard]] const std::vector<std::string>& keys() const { return keys_; }

  [[nodiscard]] std::size_t size() const { return crossed_ + alone_.size(); }

  /// The value that a combination has for a key; nothing where it has none.
  [[nodiscard]] std::optional<std::string> value(std::size_t combination, std::size_t key) const;

  /// The number of values of a key, where the combinations are those of the multiplication alone:
  /// each value then comes with each combination of the other keys. None where include or exclude
  /// changed that.
  [[nodiscard]] std::optional<std::size_t> values_in_product(std::size_t key) const;

  /// Whether every combination has a value for the key.
  [[nodiscard]] bool everywhere(std::size_t key) const;

 private:
  struct Extra {
    std::uint16_t key = 0;
    std::uint32_t value = 0;  ///< In extra_values_.
    friend auto operator<=>(const Extra&, const Extra&) = default;
  };
  using Extras = std::vector<Extra>;
  struct Entry;

  [[nodiscard]] std::size_t product_index(std::size_t combination) const;
  [[nodiscard]] std::size_t axis_index(std::size_t product, std::size_t axis) const;
  [[nodiscard]] bool agrees(std::size_t product, const Entry& entry) const;
  std::uint16_t key_number(const std::string& key);
  Entry compile(const MatrixEntry& entry);
  void cross(const std::vector<MatrixEntry>& exclude);
  void include(const std::vector<MatrixEntry>& entries);

  std::vector<std::string> keys_;
  std::vector<AxisValues> axes_;
  std::vector<std::size_t> strides_;
  std::size_t crossed_ = 0;          ///< Combinations that came from the multiplication.
  std::vector<std::uint32_t> kept_;  ///< The indices in the product; empty: all.
  std::vector<std::uint32_t>
      added_;  ///< By combination: the values that include added, in extras_; empty: none.
  std::vector<Extras> extras_;
  std::vector<Extras> alone_;  ///< The combinations that are an include of their own.
  std::vector<std::string> extra_values_;
};

// Tasks of several groups are of the same cell if the combinations of their matrices have equal
// values for some keys.

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
