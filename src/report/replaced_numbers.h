// Counts the results in which a number is NaN or infinite, from the warnings of tasks. Pure.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace trainyard::report {

class ReplacedNumbers {
 public:
  /// The maximum number of numbers that are counted by name.
  static constexpr std::size_t kNumbersMax = 5;

  /// False for a warning that is not counted: one of another kind ("the result is not JSON"), or
  /// about more numbers than are counted by name.
  bool look_at(std::string_view warning);

  /// The number of warnings that were counted, one for each result.
  [[nodiscard]] int count() const { return count_; }

  /// For each number a line without its end: "loss is NaN in 2 results (shown as -)".
  [[nodiscard]] std::vector<std::string> lines() const;

 private:
  std::map<std::string, int, std::less<>> numbers_;  ///< By "loss is NaN".
  int count_ = 0;
};

}  // namespace trainyard::report
