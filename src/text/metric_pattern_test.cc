// Matches of users' patterns, and the messages for patterns that are wrong.
#include "text/metric_pattern.h"

#include <string>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace trainyard::text {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

std::vector<std::string> found(std::string_view pattern, std::string_view line) {
  const auto compiled = MetricPattern::compile(pattern);
  if (!compiled) return {compiled.error().message};
  std::vector<std::string> all;
  for (const wire::Metric& metric : compiled->find_in(line).metrics) {
    all.push_back(fmt::format("{}={}", metric.name,
                              metric.number ? fmt::format("{}", *metric.number) : "null"));
  }
  return all;
}

std::string refusal(std::string_view pattern) {
  const auto compiled = MetricPattern::compile(pattern);
  return compiled ? "" : compiled.error().message;
}

TEST(MetricPattern, FindsWhatItsGroupsName) {
  EXPECT_THAT(found("loss[=:] ?(?P<loss>[0-9.e+-]*[0-9])", "[3] loss: 0.31, lr 1e-3"),
              ElementsAre("loss=0.31"));
  EXPECT_THAT(found("epoch (?P<epoch>\\d+)/\\d+.*acc=(?P<acc>\\S+)", "epoch 3/9 it/s acc=nan"),
              ElementsAre("epoch=3", "acc=null"));
  EXPECT_THAT(found("loss=(?P<loss>\\S+)|acc=(?P<acc>\\S+)", "acc=0.5 loss=1 acc=0.75"),
              ElementsAre("acc=0.5", "loss=1", "acc=0.75"))
      << "as often as it is there";
  EXPECT_THAT(found("a=(?P<x>.)|b=(?P<x>.)", "b=1 a=2"), ElementsAre("x=1", "x=2"));
}

TEST(MetricPattern, ThatIsRecommendedReadsAnyNumberAndNoFullStop) {
  const std::string_view pattern = "acc=(?P<acc>[0-9.e+-]*[0-9])";
  EXPECT_THAT(found(pattern, "acc=9.5e-05"), ElementsAre("acc=9.5e-05"));
  EXPECT_THAT(found(pattern, "acc=1e+16,"), ElementsAre("acc=1e+16"));
  EXPECT_THAT(found(pattern, "It ended with acc=0.9."), ElementsAre("acc=0.9"));
  EXPECT_THAT(found(pattern, "acc=-2"), ElementsAre("acc=-2"));
}

TEST(MetricPattern, NamesTheFirstTextOfALineThatIsNoNumber) {
  const auto mistake = [](std::string_view pattern, std::string_view line) {
    return MetricPattern::compile(pattern).value().find_in(line).mistake;
  };
  EXPECT_EQ(mistake("acc=(?P<acc>[0-9.]+)", "acc=0.9. acc=0.5 acc=0.8."), "acc=0.9.");
  EXPECT_EQ(mistake("acc=(?P<acc>[0-9.]+)", "acc=0.9 acc=. "), "acc=.");
  EXPECT_EQ(mistake("acc=(?P<acc>[0-9.]+)", "acc=0.9 acc=high"), "");
  EXPECT_EQ(mistake("(?P<x>[0-9]*)|(?P<y>1)", "ab1"), "") << "an empty text names no number";
  EXPECT_EQ(mistake("x=(?P<x>.*)", "x=" + std::string(100, 'y')), "x=" + std::string(78, 'y'));
}

TEST(MetricPattern, FindsNothingInOtherLines) {
  using namespace std::string_view_literals;
  const std::string_view pattern = "loss=(?P<loss>.*)";
  EXPECT_THAT(found(pattern, ""), IsEmpty());
  EXPECT_THAT(found(pattern, "loss=high"), IsEmpty());
  EXPECT_THAT(found(pattern, "loss=1\0"sv), IsEmpty());
  EXPECT_THAT(found(pattern, "\xff\xfeloss=1\xff"), ElementsAre("loss=1")) << "and beside it";
  EXPECT_THAT(found(pattern, "loss=" + std::string(1'000'000, '1')), IsEmpty()) << "too long";
}

TEST(MetricPattern, ComesToAnEndWhereItFindsNothingForEver) {
  EXPECT_THAT(found("(?P<x>[0-9]*)", "ab1"), ElementsAre("x=1"));
  EXPECT_THAT(found("(?P<x>1)", std::string(4'000, '1')), SizeIs(wire::kMetricsOfLineMax));
  EXPECT_THAT(found("(?P<x>a*)*(?P<y>a*)*b", std::string(4'000, 'a')), IsEmpty())
      << "and in a time that grows with the line alone";
}

TEST(MetricPattern, IsRefusedWithWhatWouldBeRight) {
  EXPECT_EQ(refusal("loss=([0-9.]+"),
            "not a valid regular expression (RE2): missing ')': loss=([0-9.]+");
  EXPECT_EQ(refusal("loss=[0-9"), "not a valid regular expression (RE2): missing ']': [0-9");
  EXPECT_EQ(refusal("loss=[0-9.]+"),
            "the pattern has no named group for a number; write one as in 'loss[=:] "
            "?(?P<loss>[0-9.e+-]*[0-9])'");
  EXPECT_EQ(refusal(""), refusal("loss=(\\S+)")) << "a group without a name is none";
  EXPECT_THAT(refusal("loss=(?<loss>\\S+)"),
              HasSubstr("; the name of a group is written (?P<loss>...)"));
  EXPECT_THAT(refusal("(?=a)(?P<loss>b)"), HasSubstr("invalid perl operator: (?="));
  EXPECT_THAT(refusal("(?P<1a>b)"), HasSubstr("the group '1a' of the pattern has no name for a"));
  EXPECT_THAT(refusal("((((?P<a>b){100}){100}){100})"),
              HasSubstr("not a valid regular expression (RE2): "));
  EXPECT_EQ(refusal(std::string(1'001, 'x')), "the pattern is longer than 1000 bytes");
  EXPECT_THAT(refusal("\xff(?P<a>b)"),
              HasSubstr("not a valid regular expression (RE2): invalid UTF-8"));
  std::string many;
  for (int n = 0; n < 33; ++n) many += fmt::format("(?P<m{}>x)", n);
  EXPECT_EQ(refusal(many), "the pattern has 33 named groups, but at most 32 are allowed");
}

}  // namespace
}  // namespace trainyard::text
