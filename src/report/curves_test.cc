#include "report/curves.h"

#include <cstdint>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace trainyard::report {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using Point = CurveLine::Point;

journal::ProgressRow row(std::uint32_t task, std::int64_t at_ms, std::optional<double> fraction,
                         std::string values) {
  return {.task = {task},
          .attempt = 1,
          .at = {Duration(at_ms)},
          .fraction = fraction,
          .values = std::move(values)};
}

TEST(Curves, AreOneForEachValueWithALineForEachTask) {
  Curves curves;
  EXPECT_TRUE(curves.look_at(row(0, 1000, 0.0, R"({"loss":2,"phase":"warm"})"), "a"));
  EXPECT_TRUE(curves.look_at(row(0, 2000, 0.5, R"({"loss":1,"acc":0.5})"), "a"));
  EXPECT_TRUE(curves.look_at(row(1, 1500, 0.25, R"({"loss":3})"), "b"));
  const std::vector<Curve> all = curves.take();
  ASSERT_THAT(all, SizeIs(1));
  EXPECT_EQ(all[0].key, "loss");
  EXPECT_EQ(all[0].from + " to " + all[0].to, "0 % to 50 %");
  ASSERT_THAT(all[0].lines, SizeIs(2));
  EXPECT_EQ(all[0].lines[0].id, "a");
  EXPECT_THAT(all[0].lines[0].points, ElementsAre(Point{0, 2, {}}, Point{0.5, 1, {}}));
  EXPECT_THAT(all[0].lines[1].points, ElementsAre(Point{0.25, 3, {}}));
}

TEST(Curves, GoOverTimeWhereSomebodyDidNotSayHowFarItWas) {
  Curves curves;
  curves.look_at(row(0, 1000, 0.0, R"({"loss":2})"), "a");
  curves.look_at(row(0, 3500, std::nullopt, R"({"loss":1})"), "a");
  const std::vector<Curve> all = curves.take();
  ASSERT_THAT(all, SizeIs(1));
  EXPECT_EQ(all[0].from + " to " + all[0].to, "0 s to 2 s");
  EXPECT_THAT(all[0].lines[0].points, ElementsAre(Point{0, 2, {}}, Point{2.5, 1, {}}));
}

TEST(Curves, AreBounded) {
  Curves curves;
  std::string values;
  for (int key = 0; key <= Curves::kKeysMax; ++key) {
    values += (key == 0 ? "{\"k" : ",\"k") + std::to_string(key) + "\":1";
  }
  values += "}";
  for (std::uint32_t task = 0; task < Curves::kTasksMax; ++task) {
    EXPECT_TRUE(curves.look_at(row(task, 0, 0, values), "x"));
    EXPECT_TRUE(curves.look_at(row(task, 1, 1, values), "x"));
  }
  EXPECT_FALSE(curves.look_at(row(Curves::kTasksMax, 0, 0, "{}"), "x"));
  EXPECT_THAT(curves.take(), SizeIs(Curves::kKeysMax));
  EXPECT_THAT(Curves().take(), IsEmpty());
}

TEST(Curves, AreDrawnWithTheEndsOfTheirAxes) {
  Curves curves;
  curves.look_at(row(0, 0, 0.0, R"({"a<b":0.25})"), "lr=<1>");
  curves.look_at(row(0, 1, 1.0, R"({"a<b":0.75})"), "lr=<1>");
  const std::string svg = curve_svg(curves.take().at(0));
  EXPECT_THAT(svg, HasSubstr("a&lt;b</text>"));
  EXPECT_THAT(svg, HasSubstr(">0.75</text>"));
  EXPECT_THAT(svg, HasSubstr(">0.25</text>"));
  EXPECT_THAT(svg, HasSubstr(">100 %</text>"));
  EXPECT_THAT(svg, HasSubstr("<polyline points=\"56.0,166.0 448.0,26.0 \"><title>lr=&lt;1&gt;<"));
}

}  // namespace
}  // namespace trainyard::report
