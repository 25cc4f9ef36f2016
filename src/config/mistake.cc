#include "config/mistake.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace trainyard {

std::string to_text(const Mistake& mistake) {
  if (mistake.line == 0) return fmt::format("{}: {}", mistake.file, mistake.message);
  return fmt::format("{}:{}:{}: {}", mistake.file, mistake.line, mistake.column, mistake.message);
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
  const auto place = [&files](const Mistake& mistake) {
    return std::tuple(std::ranges::find(files, mistake.file) - files.begin(), mistake.line,
                      mistake.column);
  };
  std::ranges::stable_sort(mistakes_, {}, place);
  const auto again = std::ranges::unique(mistakes_);
  mistakes_.erase(again.begin(), again.end());

  if (mistakes_.size() > kShownMax) {
    const std::size_t more = mistakes_.size() - kShownMax + dropped_;
    const std::string file = mistakes_[kShownMax].file;
    mistakes_.resize(kShownMax);
    mistakes_.push_back({.file = file, .message = fmt::format("and {} more mistakes", more)});
  }
  return std::move(mistakes_);
}

}  // namespace trainyard
