// The rules of a matrix, which are those of GitHub Actions.
#include "job/matrix.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/check.h"

namespace trainyard::job {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using List = std::vector<std::string>;

MatrixAxis axis(std::string key, List values) {
  return {.key = std::move(key), .values = AxisValues(std::move(values))};
}

List combinations(const Matrix& matrix) {
  List all;
  for (std::size_t i = 0; i < matrix.size(); ++i) {
    std::string text;
    for (std::size_t key = 0; key < matrix.keys().size(); ++key) {
      const auto value = matrix.value(i, key);
      if (value) text += (text.empty() ? "" : ",") + matrix.keys()[key] + "=" + *value;
    }
    all.push_back(text);
  }
  return all;
}

List combinations(MatrixSource source) {
  auto matrix = Matrix::expand(std::move(source));
  check(matrix.has_value(), "a good matrix");
  return combinations(*matrix);
}

List values_of(std::string_view text) {
  const auto range = parse_range(text);
  if (!range || !*range) return {"not a range"};
  const AxisValues values(**range);
  List list;
  for (std::size_t i = 0; i < values.size(); ++i) {
    list.push_back(values.at(i));
    EXPECT_EQ(values.find(list.back()), i);
  }
  return list;
}

std::string range_mistake(std::string_view text) {
  const auto range = parse_range(text);
  if (!range) return "no range";
  return *range ? "good" : range->error().message;
}

TEST(Matrix, KnowsTheValuesOfAKeyWhereAllCombinationsAreItsProduct) {
  const auto values_of_b = [](MatrixSource source) {
    source.axes = {axis("a", {"1", "2"}), axis("b", {"x", "y", "z"})};
    const auto matrix = Matrix::expand(std::move(source));
    return matrix ? matrix->values_in_product(1) : std::nullopt;
  };
  EXPECT_EQ(values_of_b({}), 3U);
  EXPECT_EQ(values_of_b({.exclude = {{{"a", "1"}, {"b", "x"}}}}), std::nullopt);
  EXPECT_EQ(values_of_b({.include = {{{"a", "3"}, {"b", "x"}}}}), std::nullopt);
  EXPECT_EQ(values_of_b({.include = {{{"a", "1"}, {"c", "x"}}}}), std::nullopt);
}

TEST(Range, HasBothItsEnds) {
  EXPECT_THAT(values_of("0..3"), ElementsAre("0", "1", "2", "3"));
  EXPECT_THAT(values_of("5..5"), ElementsAre("5"));
  EXPECT_THAT(values_of("2..-1"), ElementsAre("2", "1", "0", "-1"));
}

TEST(Range, HasSteps) {
  EXPECT_THAT(values_of("0..100..25"), ElementsAre("0", "25", "50", "75", "100"));
  EXPECT_THAT(values_of("0..10..4"), ElementsAre("0", "4", "8"));
  EXPECT_THAT(values_of("9..0..4"), ElementsAre("9", "5", "1"));
}

TEST(Range, KeepsLeadingZeros) {
  EXPECT_THAT(values_of("08..11"), ElementsAre("08", "09", "10", "11"));
  EXPECT_THAT(values_of("0..9..9"), ElementsAre("0", "9"));
}

TEST(Range, FindsOnlyValuesAsTyped) {
  const AxisValues padded(Range{.first = 0, .step = 1, .count = 20, .width = 2});
  EXPECT_EQ(padded.find("07"), 7U);
  EXPECT_EQ(padded.find("7"), std::nullopt);
  EXPECT_EQ(padded.find("20"), std::nullopt);
  EXPECT_EQ(padded.find(""), std::nullopt);
  EXPECT_EQ(padded.find("-1"), std::nullopt);
  const AxisValues stepped(Range{.first = 10, .step = -5, .count = 3});
  EXPECT_EQ(stepped.find("0"), 2U);
  EXPECT_EQ(stepped.find("7"), std::nullopt);
  EXPECT_EQ(stepped.find("15"), std::nullopt);
}

TEST(Range, SaysWhatIsWrongWithIt) {
  EXPECT_EQ(range_mistake("1e-3"), "no range");
  EXPECT_EQ(range_mistake("a..b"), "no range");
  EXPECT_EQ(range_mistake("1.5"), "no range");
  EXPECT_EQ(range_mistake("0..x"),
            "'0..x' is not a valid range; write it as in '0..99', '9..0' or '0..100..10'");
  EXPECT_EQ(range_mistake("0...9"),
            "'0...9' is not a valid range; write it as in '0..99', '9..0' or '0..100..10'");
  EXPECT_EQ(range_mistake("0..9..0"),
            "'0..9..0' must have a positive step; '9..0..3' counts down by itself");
  EXPECT_EQ(range_mistake("0..1000000"), "'0..1000000' has more than 1000000 values");
  EXPECT_EQ(range_mistake("-05..05"),
            "'-05..05' cannot have both leading zeros and negative numbers");
  EXPECT_EQ(range_mistake("0..99999999999999999999"),
            "'0..99999999999999999999' is not a valid range; write it as in '0..99', '9..0' or "
            "'0..100..10'");
}

TEST(Matrix, VariesTheLastKeyFastest) {
  EXPECT_THAT(combinations({.axes = {axis("bs", {"32", "64"}), axis("lr", {"1e-3", "1e-4"})}}),
              ElementsAre("bs=32,lr=1e-3", "bs=32,lr=1e-4", "bs=64,lr=1e-3", "bs=64,lr=1e-4"));
}

TEST(Matrix, LeavesOutWhatExcludeNamesInPartOrWhole) {
  EXPECT_THAT(combinations({.axes = {axis("os", {"linux", "mac"}), axis("v", {"1", "2", "3"})},
                            .exclude = {{{"os", "mac"}, {"v", "1"}}, {{"v", "3"}}}}),
              ElementsAre("os=linux,v=1", "os=linux,v=2", "os=mac,v=2"));
}

TEST(Matrix, IgnoresAnExcludeThatFitsNothing) {
  EXPECT_THAT(combinations({.axes = {axis("a", {"1"})}, .exclude = {{{"a", "2"}}}}),
              ElementsAre("a=1"));
}

// The example of the GitHub Actions documentation.
TEST(Matrix, AddsIncludesAsGitHubDoes) {
  EXPECT_THAT(
      combinations({.axes = {axis("fruit", {"apple", "pear"}), axis("animal", {"cat", "dog"})},
                    .include = {{{"color", "green"}},
                                {{"color", "pink"}, {"animal", "cat"}},
                                {{"fruit", "apple"}, {"shape", "circle"}},
                                {{"fruit", "banana"}},
                                {{"fruit", "banana"}, {"animal", "cat"}}}}),
      ElementsAre("fruit=apple,animal=cat,color=pink,shape=circle",
                  "fruit=apple,animal=dog,color=green,shape=circle",
                  "fruit=pear,animal=cat,color=pink", "fruit=pear,animal=dog,color=green",
                  "fruit=banana", "fruit=banana,animal=cat"));
}

TEST(Matrix, ProcessesExcludeBeforeInclude) {
  EXPECT_THAT(combinations({.axes = {axis("a", {"1", "2"})},
                            .exclude = {{{"a", "1"}}},
                            .include = {{{"a", "1"}, {"b", "x"}}, {{"b", "y"}}}}),
              ElementsAre("a=2,b=y", "a=1,b=x"));
}

TEST(Matrix, CanBeIncludesAlone) {
  EXPECT_THAT(combinations({.include = {{{"site", "production"}, {"dc", "a"}},
                                        {{"site", "staging"}, {"dc", "b"}}}}),
              ElementsAre("site=production,dc=a", "site=staging,dc=b"));
}

TEST(Matrix, CanLoseAllItsCombinations) {
  EXPECT_THAT(combinations({.axes = {axis("a", {"1"})}, .exclude = {{{"a", "1"}}}}), IsEmpty());
  EXPECT_THAT(
      combinations(
          {.axes = {axis("a", {"1"})}, .exclude = {{{"a", "1"}}}, .include = {{{"b", "2"}}}}),
      ElementsAre("b=2"));
}

TEST(Matrix, AddsNothingForAnIncludeThatSaysNothingNew) {
  EXPECT_THAT(combinations({.axes = {axis("a", {"1", "2"})}, .include = {{{"a", "1"}}}}),
              ElementsAre("a=1", "a=2"));
}

TEST(Matrix, KnowsWhichKeysAllHave) {
  const auto matrix = Matrix::expand(
      {.axes = {axis("a", {"1", "2"})}, .include = {{{"b", "x"}}, {{"a", "1"}, {"c", "y"}}}});
  ASSERT_TRUE(matrix.has_value());
  EXPECT_THAT(matrix->keys(), ElementsAre("a", "b", "c"));
  EXPECT_TRUE(matrix->everywhere(0));
  EXPECT_TRUE(matrix->everywhere(1));
  EXPECT_FALSE(matrix->everywhere(2));
}

TEST(Matrix, IsOneCombinationWithoutValuesByDefault) {
  const Matrix none;
  EXPECT_EQ(none.size(), 1U);
  EXPECT_THAT(none.keys(), IsEmpty());
}

std::string refusal(MatrixSource source) {
  const auto matrix = Matrix::expand(std::move(source));
  return matrix ? "good" : matrix.error().message;
}

TEST(Matrix, HasBounds) {
  const auto range = [](std::uint32_t count) { return AxisValues(Range{.count = count}); };
  EXPECT_EQ(refusal({.axes = {{.key = "a", .values = range(1'000'000)}}}), "good");
  EXPECT_EQ(refusal({.axes = {{.key = "a", .values = range(1'001)},
                              {.key = "b", .values = range(1'000)}}}),
            "makes more than 1000000 combinations");
  EXPECT_EQ(refusal({.axes = {{.key = "a", .values = range(1'000'000)}},
                     .exclude = std::vector<MatrixEntry>(1'001, MatrixEntry{{"a", "5"}})}),
            "has 1000000 combinations and 1001 entries of include and exclude, which is "
            "too many");
  MatrixSource wide;
  for (std::size_t i = 0; i <= Matrix::kKeysMax; ++i)
    wide.axes.push_back(axis("k" + std::to_string(i), {"v"}));
  EXPECT_EQ(refusal(std::move(wide)), "has more than 256 keys");
  MatrixSource many_keys;
  for (std::size_t i = 0; i < 100'000; ++i)
    many_keys.include.push_back({{"k" + std::to_string(i), "v"}});
  EXPECT_EQ(refusal(std::move(many_keys)), "has more than 256 keys");
}

}  // namespace
}  // namespace trainyard::job
