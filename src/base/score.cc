#include "base/score.h"

#include <algorithm>
#include <array>

namespace trainyard {
namespace {

struct Score {
  std::string_view name;
  Better better;
};

constexpr std::array<Score, 7> kScores{{{.name = "acc", .better = Better::More},
                                        {.name = "accuracy", .better = Better::More},
                                        {.name = "auc", .better = Better::More},
                                        {.name = "f1", .better = Better::More},
                                        {.name = "score", .better = Better::More},
                                        {.name = "error", .better = Better::Less},
                                        {.name = "loss", .better = Better::Less}}};

// Not "train_": next to "val_acc", a "train_acc" must not keep a best task from being chosen.
constexpr std::array<std::string_view, 4> kDataSets{"eval_", "test_", "val_", "valid_"};

}  // namespace

std::optional<Better> score_direction(std::string_view key) {
  const auto data_set = std::ranges::find_if(
      kDataSets, [key](std::string_view name) { return key.starts_with(name); });
  if (data_set != kDataSets.end()) key.remove_prefix(data_set->size());
  const auto score = std::ranges::find(kScores, key, &Score::name);
  return score == kScores.end() ? std::nullopt : std::optional(score->better);
}

}  // namespace trainyard
