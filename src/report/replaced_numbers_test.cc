// Warnings about results that are counted by number.
#include "report/replaced_numbers.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "wire/metric_line.h"
#include "wire/result_text.h"

namespace trainyard::report {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(ReplacedNumbers, CountsTheResultsOfEachNumber) {
  ReplacedNumbers replaced;
  for (const char* const result :
       {R"({"loss": NaN})", R"({"loss": NaN, "acc": 0.5})", R"({"val": {"loss": Infinity}})"}) {
    EXPECT_TRUE(replaced.look_at("result.1.json: " + wire::parse_result(result).warning)) << result;
  }
  EXPECT_EQ(replaced.count(), 3);
  EXPECT_THAT(replaced.lines(), ElementsAre("loss is NaN in 2 results (shown as -)",
                                            "val.loss is Infinity in 1 result (shown as -)"));
}

TEST(ReplacedNumbers, CountsAMetricWithTheNumbersOfResultFiles) {
  ReplacedNumbers replaced;
  wire::LastMetrics last;
  last.add(wire::metric_of("loss", "nan").value());
  EXPECT_TRUE(replaced.look_at(last.warning_of(last.values())));
  EXPECT_TRUE(replaced.look_at("result.1.json: 'loss' was NaN: kept as null"));
  EXPECT_THAT(replaced.lines(), ElementsAre("loss is NaN in 2 results (shown as -)"));
}

TEST(ReplacedNumbers, CountsEachNumberOfAWarning) {
  ReplacedNumbers replaced;
  wire::LastMetrics last;
  last.add(wire::metric_of("loss", "nan").value());
  last.add(wire::metric_of("acc", "inf").value());
  EXPECT_TRUE(replaced.look_at(last.warning_of(last.values())));
  EXPECT_TRUE(replaced.look_at("result.1.json: " +
                               wire::parse_result(R"({"loss": NaN, "f1": NaN})").warning));
  EXPECT_EQ(replaced.count(), 2) << "results";
  EXPECT_THAT(replaced.lines(), ElementsAre("acc is Infinity in 1 result (shown as -)",
                                            "f1 is NaN in 1 result (shown as -)",
                                            "loss is NaN in 2 results (shown as -)"));
}

TEST(ReplacedNumbers, LeavesOtherWarningsToBeShown) {
  ReplacedNumbers replaced;
  for (const char* const result :
       {"", "[1]", "{\"a\": 1", R"([NaN])", R"({"a": [NaN, NaN, NaN, NaN, NaN, NaN]})"}) {
    EXPECT_FALSE(replaced.look_at("result.1.json: " + wire::parse_result(result).warning))
        << result;
  }
  EXPECT_FALSE(replaced.look_at(""));
  EXPECT_EQ(replaced.count(), 0);
  EXPECT_THAT(replaced.lines(), IsEmpty());
}

TEST(ReplacedNumbers, AreABoundedNumber) {
  ReplacedNumbers replaced;
  for (std::size_t i = 0; i < ReplacedNumbers::kNumbersMax; ++i) {
    EXPECT_TRUE(replaced.look_at(fmt::format("result.1.json: '{}' was NaN: kept as null", i)));
  }
  EXPECT_FALSE(replaced.look_at("result.1.json: 'one more' was NaN: kept as null"));
  EXPECT_FALSE(replaced.look_at("metric '0' was NaN, 'one more' was NaN: kept as null"));
  EXPECT_EQ(replaced.lines().front(), "0 is NaN in 1 result (shown as -)");
  EXPECT_TRUE(replaced.look_at("result.1.json: '0' was NaN: kept as null"));
}

}  // namespace
}  // namespace trainyard::report
