// The tasks of a table that ran other code than the tasks that started last, and the text for it.
#pragma once

#include <set>
#include <string>

#include "journal/reader.h"

namespace trainyard::report {

/// The text after the status of such a task.
constexpr const char* kOtherCode = "other code";

/// Reads the rows of a table one by one, and holds a few names of the code that they ran.
class OtherCode {
 public:
  void look_at(const journal::TaskRow& row);

  /// The number of tasks that ran other code.
  [[nodiscard]] int count() const { return count_; }
  /// "3 tasks ran other code (a1b2c3d+9f3e21) than the tasks that started last (5d6e7f8)"; empty
  /// where none did.
  [[nodiscard]] std::string text() const;
  /// Adds the command that runs these tasks again: "...: 'trainyard retry runs/x --other-code' runs
  /// them again". Empty where text() is.
  [[nodiscard]] std::string text_with_cure(const std::string& run_directory) const;

 private:
  int count_ = 0;
  std::set<std::string> theirs_;
  std::set<std::string> newer_;
};

/// For the details of one task: "ran a1b2c3d, and what was started last 5d6e7f8"; empty if both are
/// the same.
std::string other_code_text(const journal::TaskRow& row);

}  // namespace trainyard::report
