// Mistakes are reported sorted, once each, and only up to a limit.
#include "text/mistake.h"

#include <utility>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace trainyard::text {
namespace {

using ::testing::ElementsAre;

Mistake at(int line, int column, std::string message, std::string file = "a.yaml") {
  return {.file = std::move(file), .line = line, .column = column, .message = std::move(message)};
}

TEST(Mistake, NamesFileLineAndColumn) {
  EXPECT_EQ(to_text(at(12, 5, "unknown key")), "a.yaml:12:5: unknown key");
  EXPECT_EQ(to_text({.file = "a.yaml", .message = "is empty"}), "a.yaml: is empty");
}

TEST(Mistake, IsOneLineThatIsSafeToShow) {
  EXPECT_EQ(to_text(at(1, 2, "the id 'a\nb\t'", "\x1b\xff.yaml")),
            "\\x1b\\xff.yaml:1:2: the id 'a\\nb\\t'");
}

TEST(MistakeList, SortsByPlaceAndTellsEachOnce) {
  MistakeList list;
  EXPECT_TRUE(list.empty());
  list.add(at(9, 1, "x"));
  list.add(at(2, 7, "y"));
  list.add(at(2, 7, "y"));
  list.add(at(2, 3, "z"));
  EXPECT_EQ(list.count(), 4U);
  EXPECT_THAT(std::move(list).take(), ElementsAre(at(2, 3, "z"), at(2, 7, "y"), at(9, 1, "x")));
}

TEST(MistakeList, KeepsTheOrderInWhichFilesWereRead) {
  MistakeList list;
  list.add(at(1, 1, "x", "z.yaml"));
  list.add(at(5, 1, "x", "a.yaml"));
  list.add(at(3, 1, "x", "a.yaml"));
  EXPECT_THAT(std::move(list).take(), ElementsAre(at(1, 1, "x", "z.yaml"), at(3, 1, "x", "a.yaml"),
                                                  at(5, 1, "x", "a.yaml")));
}

TEST(MistakeList, ShowsAHundredAndCountsTheRest) {
  MistakeList list;
  constexpr int kMany = 20'000;
  for (int line = 1; line <= kMany; ++line) list.add(at(line, 1, "x"));
  const Mistakes shown = std::move(list).take();
  ASSERT_EQ(shown.size(), MistakeList::kShownMax + 1);
  EXPECT_EQ(shown[99], at(100, 1, "x"));
  EXPECT_EQ(to_text(shown.back()), "a.yaml: and 19900 more mistakes");
  EXPECT_EQ(count(shown), 20'000U);
}

}  // namespace
}  // namespace trainyard::text
