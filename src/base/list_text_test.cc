// Lists as people write them, one rule a test.
#include "base/list_text.h"

#include <vector>

#include <gtest/gtest.h>

namespace trainyard {
namespace {

TEST(ListText, HasCommasAndAWordBeforeTheLastItem) {
  EXPECT_EQ(list_text({}), "");
  EXPECT_EQ(list_text(std::vector<std::string>{"a"}), "a");
  EXPECT_EQ(list_text(std::vector<std::string>{"a", "b"}), "a and b");
  EXPECT_EQ(list_text(std::vector<std::string>{"a", "b", "c"}), "a, b and c");
}

TEST(ListText, QuotesEachItem) {
  EXPECT_EQ(list_text(std::vector<std::string>{"a", "b", "c"}, {.word = "or", .quote = "'"}),
            "'a', 'b' or 'c'");
}

TEST(ListText, HasAWordForOneAndForTwoTasks) {
  EXPECT_EQ(all_tasks_text(1), "the only task");
  EXPECT_EQ(all_tasks_text(2), "both tasks");
  EXPECT_EQ(all_tasks_text(3), "all 3 tasks");
}

}  // namespace
}  // namespace trainyard
