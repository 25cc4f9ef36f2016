#include "base/score.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

namespace trainyard {
namespace {

constexpr std::array<std::string_view, 7> kMoreIsBetter{
    "acc", "accuracy", "val_acc", "val_accuracy", "test_acc", "test_accuracy", "score"};
constexpr std::array<std::string_view, 4> kLessIsBetter{"loss", "val_loss", "test_loss", "error"};

}  // namespace

std::optional<Better> score_direction(std::string_view key) {
  if (std::ranges::find(kMoreIsBetter, key) != kMoreIsBetter.end()) return Better::More;
  if (std::ranges::find(kLessIsBetter, key) != kLessIsBetter.end()) return Better::Less;
  return std::nullopt;
}

}  // namespace trainyard
