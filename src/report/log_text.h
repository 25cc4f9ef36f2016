// What a task wrote, as it is shown: progress bars draw over themselves with carriage returns, and
// of each line only what was left of it is worth reading.
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

  /// What is left at the end, with a newline where there is anything.
  std::string finish();

 private:
  std::string line_;
  bool returned_ = false;  ///< A carriage return came last: what comes next draws over the line.
};

}  // namespace trainyard::report
