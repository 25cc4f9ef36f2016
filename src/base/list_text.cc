#include "base/list_text.h"

#include <fmt/format.h>

namespace trainyard {

std::string list_text(std::span<const std::string> items, const ListOptions& options) {
  std::string text;
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (i > 0) text += i + 1 < items.size() ? ", " : fmt::format(" {} ", options.word);
    text += fmt::format("{0}{1}{0}", options.quote, items[i]);
  }
  return text;
}

std::string all_tasks_text(std::size_t count) {
  if (count == 1) return "the only task";
  return count == 2 ? "both tasks" : fmt::format("all {} tasks", count);
}

std::string ranges_of(const std::vector<std::uint32_t>& numbers) {
  std::string text;
  for (std::size_t first = 0; first < numbers.size();) {
    std::size_t last = first;
    while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1) ++last;
    if (!text.empty()) text += ", ";
    text += std::to_string(numbers[first]);
    if (last > first) text += fmt::format(" to {}", numbers[last]);
    first = last + 1;
  }
  return text;
}

}  // namespace trainyard
