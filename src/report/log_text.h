// The output of a task in the form to show. Progress bars overwrite themselves with carriage
// returns, and only the final state of each line is worth reading.
#pragma once

#include <string>
#include <string_view>

namespace trainyard::report {

/// Folds a stream that comes piece by piece. A line that is longer than kLineMax is passed on as it
/// comes, unfolded from there on.
class CarriageFolder {
 public:
  static constexpr std::size_t kLineMax = std::size_t{1} << 20;

  /// Takes the next piece; returns the lines that are complete now.
  std::string feed(std::string_view piece);

  /// The line that has not ended yet, as it looks now. It stays.
  [[nodiscard]] std::string_view pending() const { return line_; }

  /// The rest at the end, with a newline unless it is empty.
  std::string finish();

 private:
  std::string line_;
  bool returned_ = false;  ///< A carriage return came last: the next text overwrites the line.
};

}  // namespace trainyard::report
