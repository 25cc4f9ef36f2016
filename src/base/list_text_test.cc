// Lists as people write them, one rule a test.
#include "base/list_text.h"

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

TEST(ListText, NamesTheFirstItemsAndCountsTheOthers) {
  const std::vector<std::string> items{"a", "b", "c", "d"};
  EXPECT_EQ(short_list_text(std::vector<std::string>{}, 2), "");
  EXPECT_EQ(short_list_text(items, 4), "a, b, c, d");
  EXPECT_EQ(short_list_text(items, 3), "a, b, c and 1 more");
  EXPECT_EQ(short_list_text(items, 2), "a, b and 2 more");
}

TEST(ListText, HasAWordForOneAndForTwoTasks) {
  EXPECT_EQ(all_tasks_text(1), "the only task");
  EXPECT_EQ(all_tasks_text(2), "both tasks");
  EXPECT_EQ(all_tasks_text(3), "all 3 tasks");
}

TEST(ListText, JoinsNumbersThatFollowEachOther) {
  EXPECT_EQ(ranges_of({}), "");
  EXPECT_EQ(ranges_of({7}), "7");
  EXPECT_EQ(ranges_of({2, 3, 5}), "2 to 3, 5");
  EXPECT_EQ(ranges_of({1, 3, 4, 5, 9}), "1, 3 to 5, 9");
}

}  // namespace
}  // namespace trainyard
