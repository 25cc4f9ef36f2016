#include "text/mistake.h"

#include <algorithm>
#include <numeric>
#include <ranges>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "base/utf8.h"

namespace trainyard::text {
std::string to_text(const Mistake& mistake) {
  const std::string file = visible(mistake.file);
  std::string message = visible(mistake.message);
  if (file.empty()) return message;
  if (mistake.line == 0) return fmt::format("{}: {}", file, message);
  return fmt::format("{}:{}:{}: {}", file, mistake.line, mistake.column, message);
}

std::size_t count(const Mistakes& mistakes) {
  const auto counts = mistakes | std::views::transform(&Mistake::stands_for);
  return std::accumulate(counts.begin(), counts.end(), std::size_t{0});
}

void MistakeList::add(Mistake mistake) {
  if (mistakes_.size() >= kKeptMax) {
    ++dropped_;
    return;
  }
  mistakes_.push_back(std::move(mistake));
}

void MistakeList::add(const Mistakes& mistakes) {
  for (const Mistake& mistake : mistakes) add(mistake);
}

Mistakes MistakeList::take() && {
  std::vector<std::string> files;
  for (const Mistake& mistake : mistakes_) {
    if (std::ranges::find(files, mistake.file) == files.end()) files.push_back(mistake.file);
  }
  // With their original order, as std::stable_sort would keep it: its buffer is deprecated in the
  // library, and clang says so.
  std::vector<std::size_t> order;
  order.reserve(mistakes_.size());
  for (std::size_t i = 0; i < mistakes_.size(); ++i) order.push_back(i);
  std::ranges::sort(order, {}, [&](std::size_t index) {
    const Mistake& mistake = mistakes_[index];
    const auto file = std::ranges::find(files, mistake.file) - files.begin();
    return std::tuple(file, mistake.line, mistake.column, index);
  });
  Mistakes sorted;
  sorted.reserve(mistakes_.size());
  for (const std::size_t index : order) sorted.push_back(std::move(mistakes_[index]));
  mistakes_ = std::move(sorted);
  const auto again = std::ranges::unique(mistakes_);
  mistakes_.erase(again.begin(), again.end());

  if (mistakes_.size() > kShownMax) {
    const std::size_t more = mistakes_.size() - kShownMax + dropped_;
    const std::string file = mistakes_[kShownMax].file;
    mistakes_.resize(kShownMax);
    mistakes_.push_back(
        {.file = file,
         .message = fmt::format("and {} more mistake{}", more, more == 1 ? "" : "s"),
         .stands_for = more});
  }
  return std::move(mistakes_);
}

}  // namespace trainyard::text
