// Any matrix, multiplied by the rules of GitHub Actions taken word by word, with whole maps and no
// cleverness: Matrix::expand() has the same result.
#include <algorithm>
#include <cstddef>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/Assertions.h>
#include <rapidcheck/Check.h>
#include <rapidcheck/gen/Numeric.h>

#include "job/matrix.h"

namespace trainyard::job {
namespace {

using Combination = std::map<std::string, std::string>;

bool same_or_absent(const Combination& combination,
                    const std::pair<std::string, std::string>& pair) {
  const auto found = combination.find(pair.first);
  return found == combination.end() || found->second == pair.second;
}

bool has(const Combination& combination, const std::pair<std::string, std::string>& pair) {
  const auto found = combination.find(pair.first);
  return found != combination.end() && found->second == pair.second;
}

std::vector<Combination> multiplied(const std::vector<MatrixAxis>& axes) {
  std::vector<Combination> product;
  if (!axes.empty()) product.emplace_back();
  for (const MatrixAxis& axis : axes) {
    std::vector<Combination> longer;
    for (const Combination& shorter : product) {
      for (std::size_t i = 0; i < axis.values.size(); ++i) {
        longer.push_back(shorter);
        longer.back()[axis.key] = axis.values.at(i);
      }
    }
    product = longer;
  }
  return product;
}

std::vector<Combination> by_the_book(const MatrixSource& source) {
  std::vector<Combination> product = multiplied(source.axes);
  std::erase_if(product, [&](const Combination& combination) {
    return std::ranges::any_of(source.exclude, [&](const MatrixEntry& entry) {
      return std::ranges::all_of(entry, [&](const auto& pair) { return has(combination, pair); });
    });
  });
  const std::vector<Combination> original = product;
  std::vector<Combination> alone;
  for (const MatrixEntry& entry : source.include) {
    bool fits = false;
    for (std::size_t i = 0; i < product.size(); ++i) {
      const bool changes_nothing = std::ranges::all_of(
          entry, [&](const auto& pair) { return same_or_absent(original[i], pair); });
      if (!changes_nothing) continue;
      fits = true;
      for (const auto& [key, value] : entry) product[i][key] = value;
    }
    if (!fits) alone.emplace_back(entry.begin(), entry.end());
  }
  product.insert(product.end(), alone.begin(), alone.end());
  return product;
}

std::vector<Combination> combined(const Matrix& matrix) {
  std::vector<Combination> all(matrix.size());
  for (std::size_t i = 0; i < matrix.size(); ++i) {
    for (std::size_t key = 0; key < matrix.keys().size(); ++key) {
      if (const auto value = matrix.value(i, key)) all[i][matrix.keys()[key]] = *value;
    }
  }
  return all;
}

std::size_t below(std::size_t limit) { return *rc::gen::inRange<std::size_t>(0, limit); }

std::string key(std::size_t number) { return "k" + std::to_string(number); }

std::vector<MatrixEntry> any_entries(std::size_t keys) {
  std::vector<MatrixEntry> entries(below(6));
  for (MatrixEntry& entry : entries) {
    for (std::size_t i = 0; i < keys; ++i) {
      if (below(2) == 0) entry.emplace_back(key(i), std::to_string(below(4)));
    }
  }
  std::erase_if(entries, [](const MatrixEntry& entry) { return entry.empty(); });
  return entries;
}

MatrixSource any_source() {
  MatrixSource source;
  const std::size_t axes = below(4);
  for (std::size_t i = 0; i < axes; ++i) {
    std::vector<std::string> values(1 + below(3));
    for (std::size_t k = 0; k < values.size(); ++k) values[k] = std::to_string(k);
    source.axes.push_back({.key = key(i), .values = AxisValues(values)});
  }
  source.exclude = any_entries(axes);
  source.include = any_entries(axes + 2);
  return source;
}

TEST(Matrix, AgreesWithTheRulesForAnyMatrix) {
  const bool holds = rc::check("expand() does what the rules say", [] {
    const MatrixSource source = any_source();
    const auto matrix = Matrix::expand(source);
    RC_ASSERT(matrix.has_value());
    RC_ASSERT(combined(*matrix) == by_the_book(source));
  });
  EXPECT_TRUE(holds);
}

}  // namespace
}  // namespace trainyard::job
