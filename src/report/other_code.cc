#include "report/other_code.h"

#include <cstddef>

#include <fmt/format.h>

#include "report/help_line.h"
#include "report/terminal_text.h"
#include "text/shell_quote.h"

namespace trainyard::report {
namespace {

/// More are not named.
constexpr std::size_t kCodesNamed = 3;

void add_name(std::set<std::string>& names, const std::string& name) {
  if (names.size() <= kCodesNamed) names.insert(name);
}

/// "a, b, c and others"
std::string listed(const std::set<std::string>& names) {
  std::string text;
  std::size_t named = 0;
  for (const std::string& name : names) {
    if (named == kCodesNamed) return text + " and others";
    text += fmt::format("{}{}", named++ == 0 ? "" : ", ", name);
  }
  return text;
}

}  // namespace

void OtherCode::look_at(const journal::TaskRow& row) {
  if (row.newer_code.empty()) return;
  ++count_;
  add_name(theirs_, row.code);
  add_name(newer_, row.newer_code);
}

std::string OtherCode::text() const {
  if (count_ == 0) return {};
  return fmt::format("{} ran other code ({}) than the tasks that started last ({})",
                     counted(count_, "task"), listed(theirs_), listed(newer_));
}

std::string OtherCode::text_with_cure(const std::string& run_directory) const {
  if (count_ == 0) return {};
  const std::string retry =
      fmt::format("trainyard retry {} --other-code", text::shell_word(run_directory));
  return fmt::format("{}: {}", text(), runs_again_text(retry, count_));
}

std::string other_code_text(const journal::TaskRow& row) {
  if (row.newer_code.empty()) return {};
  return fmt::format("ran {}; the tasks that started last ran {}", row.code, row.newer_code);
}

}  // namespace trainyard::report
