#include "base/score.h"

#include <optional>

#include <gtest/gtest.h>

namespace trainyard {
namespace {

TEST(Score, IsBetterUpwardsOrDownwardsByItsName) {
  for (const char* const key : {"acc", "val_accuracy", "score"}) {
    EXPECT_EQ(score_direction(key), Better::More) << key;
  }
  for (const char* const key : {"loss", "val_loss", "error"}) {
    EXPECT_EQ(score_direction(key), Better::Less) << key;
  }
}

TEST(Score, IsNoOtherNumber) {
  for (const char* const key : {"", "epochs", "ACC", "acc2", "reward"}) {
    EXPECT_EQ(score_direction(key), std::nullopt) << key;
  }
}

}  // namespace
}  // namespace trainyard
