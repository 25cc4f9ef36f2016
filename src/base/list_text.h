// Lists as people write them. Pure; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
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

/// All tasks of something, for a sentence: "the only task", "both tasks" and "all 12 tasks".
/// Precondition: there is one.
std::string all_tasks_text(std::size_t count);

/// "2 to 9, 12" of numbers in ascending order.
std::string ranges_of(const std::vector<std::uint32_t>& numbers);

}  // namespace trainyard
