// Lists as people write them. Pure; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace trainyard {

struct ListOptions {
  std::string_view word = "and";  ///< Before the last item.
  std::string_view quote;         ///< Around each item.
};

/// "a", "a and b" and "a, b and c"; empty for no items.
std::string list_text(std::span<const std::string> items, const ListOptions& options = {});

/// "a, b and 2 more": at most this number of the items, then how many there are beyond them.
template <class Items>
std::string short_list_text(const Items& items, std::size_t most) {
  std::string text;
  std::size_t named = 0;
  for (const auto& item : items) {
    if (named == most) return text + " and " + std::to_string(std::size(items) - most) + " more";
    if (named++ > 0) text += ", ";
    text += item;
  }
  return text;
}

/// All tasks of something, for a sentence: "the only task", "both tasks" and "all 12 tasks".
/// Precondition: there is one.
std::string all_tasks_text(std::size_t count);

/// "2 to 9, 12" of numbers in ascending order.
std::string ranges_of(const std::vector<std::uint32_t>& numbers);

}  // namespace trainyard
