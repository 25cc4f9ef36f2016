// Lists as people write them. Pure; any thread.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace trainyard {

/// Between the mistakes of one error. It is printed behind the name of the program, which each
/// mistake then has: "trainyard: lab1: no response\ntrainyard: lab2: no response".
inline constexpr std::string_view kNextMistake = "\ntrainyard: ";

struct ListOptions {
  std::string_view word = "and";  ///< Before the last item.
  std::string_view quote;         ///< Around each item.
};

/// "a", "a and b" and "a, b and c"; empty for no items.
std::string list_text(std::span<const std::string> items, const ListOptions& options = {});

/// All tasks of something, for a sentence: "the only task", "both tasks" and "all 12 tasks".
/// Precondition: there is one.
std::string all_tasks_text(std::size_t count);

}  // namespace trainyard
