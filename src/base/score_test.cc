#include "base/score.h"

#include <gtest/gtest.h>

namespace trainyard {
namespace {

TEST(Score, IsBetterUpwardsOrDownwardsByItsNameAloneOrAfterThatOfADataSet) {
  for (const char* const key : {"acc", "accuracy", "auc", "f1", "score", "val_accuracy", "test_acc",
                                "eval_f1", "valid_auc"}) {
    EXPECT_EQ(score_direction(key), Better::More) << key;
  }
  for (const char* const key : {"loss", "error", "val_loss", "eval_loss", "test_error"}) {
    EXPECT_EQ(score_direction(key), Better::Less) << key;
  }
}

TEST(Score, IsNoOtherNumber) {
  for (const char* const key :
       {"", "epochs", "ACC", "acc2", "reward", "val_", "train_acc", "train_loss", "val_test_acc"}) {
    EXPECT_EQ(score_direction(key), std::nullopt) << key;
  }
}

}  // namespace
}  // namespace trainyard
