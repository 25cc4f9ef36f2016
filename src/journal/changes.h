// The changes of an edit of the job file, in lines for users: a few of them, and the number of the
// others.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "journal/plan_rows.h"

namespace trainyard::journal {

/// The maximum number of lines.
constexpr std::size_t kChangeLinesMax = 8;

class Changes {
 public:
  void add(std::string line);
  /// Counts a finished task that was edited and keeps its result: the first line is about all such.
  void count_kept() { ++kept_; }
  /// Says how the settings of a group differ.
  void compare(const std::string& group, const GroupSettings& before, const GroupSettings& after);

  /// All lines, or the first ones and "and 31 more".
  [[nodiscard]] std::vector<std::string> lines() const;

 private:
  std::vector<std::string> first_;
  std::size_t count_ = 0;
  std::size_t kept_ = 0;
};

}  // namespace trainyard::journal
