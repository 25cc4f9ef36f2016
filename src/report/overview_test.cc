#include "report/overview.h"

#include <string_view>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/command.h"

namespace trainyard::report {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;
using Point = CurveLine::Point;

/// A group whose tasks have left these results.
OverviewRow group(std::string_view name, const std::vector<std::string_view>& results) {
  OverviewRow row;
  row.group.name = name;
  row.group.phase = model::GroupPhase::Finished;
  row.group.tasks = row.group.finished = static_cast<int>(results.size());
  row.link = fmt::format("{}.html", name);
  row.took = Duration(1500);
  NumbersOfGroup numbers;
  for (const std::string_view result : results) numbers.look_at(read_fields(result));
  row.numbers = numbers.all();
  return row;
}

std::string page(const std::vector<OverviewRow>& rows) {
  std::string text;
  Sink sink = [&text](std::string_view piece) { text += piece; };
  ReportHead head;
  head.job = "fed<1>";
  write_overview(head, rows, sink);
  return text;
}

TEST(NumbersOfGroup, AreWhatTheTasksResultsHaveInCommon) {
  const OverviewRow row =
      group("g", {R"({"acc":0.5,"n":3,"note":"x"})", R"({"acc":0.75,"n":null})", "{}"});
  EXPECT_THAT(row.numbers, ElementsAre(NumberOfGroup{"acc", 2, 1.25, 0.5, 0.75},
                                       NumberOfGroup{"n", 1, 3, 3, 3}));
}

TEST(NumbersOfGroup, AreBounded) {
  std::string many = "{";
  for (int i = 0; i < 100; ++i) many += fmt::format("{}\"k{}\":{}", i > 0 ? "," : "", i, i);
  EXPECT_THAT(group("g", {many + "}"}).numbers, SizeIs(FieldColumns::kKeysMax));
}

TEST(CurvesOverGroups, AreDrawnForTheScoresThatSeveralGroupsHave) {
  const std::vector<OverviewRow> rows{
      group("train-1", {R"({"train_acc":0.5,"images":7})", R"({"train_acc":0.7,"images":9})"}),
      group("average-1", {R"({"test_acc":0.8,"round":1})"}),
      group("train-2", {R"({"train_acc":0.9,"images":7})", R"({"train_acc":0.9,"images":9})"}),
      group("average-2", {R"({"test_acc":0.85,"round":2})"}),
      group("last", {R"({"bleu_score":3})"})};
  const std::vector<Curve> curves = curves_over_groups(rows);
  ASSERT_THAT(curves, SizeIs(2));
  EXPECT_EQ(curves[0].key, "train_acc");
  ASSERT_THAT(curves[0].lines, SizeIs(3)) << "least, most, mean";
  EXPECT_THAT(curves[0].lines[0].points, ElementsAre(Point{0, 0.5, {}}, Point{1, 0.9, {}}));
  EXPECT_THAT(curves[0].lines[1].points, ElementsAre(Point{0, 0.7, {}}, Point{1, 0.9, {}}));
  EXPECT_THAT(curves[0].lines[2].points,
              ElementsAre(Point{0, 0.6, "train-1: 0.6"}, Point{1, 0.9, "train-2: 0.9"}));
  EXPECT_EQ(curves[1].key, "test_acc");
  EXPECT_EQ(curves[1].from, "average-1");
  EXPECT_EQ(curves[1].to, "average-2");
  ASSERT_THAT(curves[1].lines, SizeIs(1));
  EXPECT_THAT(curves[1].lines[0].points,
              ElementsAre(Point{0, 0.8, "average-1: 0.8"}, Point{1, 0.85, "average-2: 0.85"}));
}

TEST(CurvesOverGroups, AreDrawnForAnyNumberWhereNoneIsAScore) {
  const std::vector<OverviewRow> rows{group("a", {R"({"x":1,"s":"t"})"}),
                                      group("b", {R"({"x":2})"})};
  ASSERT_THAT(curves_over_groups(rows), SizeIs(1));
  EXPECT_EQ(curves_over_groups(rows)[0].key, "x");
  EXPECT_THAT(curves_over_groups(std::vector{rows[0]}), IsEmpty());
}

TEST(Overview, HasARowAndALinkForEachGroup) {
  const std::string text = page({group("a&b", {R"({"acc":0.5})"}), group("c", {R"({"acc":0.6})"})});
  EXPECT_THAT(text, HasSubstr("<title>fed&lt;1&gt;</title>"));
  EXPECT_THAT(text, HasSubstr("<a href=\"a%26b.html\">a&amp;b</a>"));
  EXPECT_THAT(text, HasSubstr("<h2>From group to group</h2>"));
  EXPECT_THAT(text, HasSubstr("<title>a&amp;b: 0.5</title></circle>"));
  EXPECT_THAT(text, HasSubstr(">1.5 s</td>"));
  EXPECT_THAT(text, Not(HasSubstr("The last")));
}

TEST(Overview, SaysHowManyTasksOfAGroupWereEditedSince) {
  OverviewRow row = group("train", {R"({"acc":0.5})", R"({"acc":0.6})"});
  row.edited = 1;
  EXPECT_THAT(page({row}), HasSubstr("<td class=\"n\">2 (1 edited since)</td>"));
}

TEST(Overview, ShowsTheLastGroupsOfTooMany) {
  std::vector<OverviewRow> rows;
  for (std::size_t i = 0; i < kOverviewGroupsMax + 1; ++i)
    rows.push_back(group(fmt::format("g{}", i), {}));
  const std::string text = page(rows);
  EXPECT_THAT(text, HasSubstr("The last 1,000 of 1,001."));
  EXPECT_THAT(text, Not(HasSubstr(">g0<")));
  EXPECT_THAT(text, HasSubstr(">g1<"));
  EXPECT_THAT(text, HasSubstr(">g1000<"));
}

}  // namespace
}  // namespace trainyard::report
