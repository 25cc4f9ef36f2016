// Lines that have metrics, and lines that look so and have none.
#include "wire/metric_line.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "wire/result_text.h"
#include "wire/task.h"

namespace trainyard::wire {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

/// "loss=0.31", "step=40", "x=null".
std::vector<std::string> read(std::string_view line) {
  std::vector<std::string> found;
  for (const Metric& metric : read_metric_line(line).metrics) {
    const std::string number = metric.whole    ? fmt::format("{}", *metric.whole)
                               : metric.number ? fmt::format("{}", *metric.number)
                                               : "null";
    found.push_back(metric.name + "=" + number);
  }
  return found;
}

TEST(MetricLine, NamesNumbers) {
  EXPECT_THAT(read("::metric loss=0.31 step=40"), ElementsAre("loss=0.31", "step=40"));
  EXPECT_THAT(read("  ::metric\tval/acc=+1e-3,top@5=-7; _x.y-z=.5"),
              ElementsAre("val/acc=0.001", "top@5=-7", "_x.y-z=0.5"));
  EXPECT_THAT(read("::metric loss=1 loss=2"), ElementsAre("loss=1", "loss=2"));
}

TEST(MetricLine, IsNoOtherLine) {
  for (const std::string_view line :
       {"", "loss=0.31", "a ::metric loss=1", "::metrics loss=1", "::metricloss=1",
        ":metric loss=1", "::Metric loss=1", "::metric", "::metric "}) {
    EXPECT_THAT(read(line), IsEmpty()) << line;
  }
}

TEST(MetricLine, PassesOverWordsThatSayNoNumber) {
  EXPECT_THAT(read("::metric epoch 3 loss= =4 a=b x=0x10 1x=2 y=1e5z loss==1 z=1,5 y=1,2,3,ok=1"),
              ElementsAre("ok=1"));
  EXPECT_THAT(read("::metric a=+-1 b=++1 c=- d=. e=1e"), IsEmpty());
}

TEST(MetricLine, NamesItsFirstMistake) {
  const auto mistake = [](std::string_view line) { return read_metric_line(line).mistake; };
  EXPECT_EQ(mistake("::metric loss=1 acc=87% f1=x"), "acc=87%");
  EXPECT_EQ(mistake("::metric loss=1,5"), "loss=1,5");
  EXPECT_EQ(mistake("  ::metric acc 0.9"), "::metric acc 0.9") << "it has no metric at all";
  EXPECT_EQ(mistake("::metric acc = 0.5"), "::metric acc = 0.5") << "it has spaces";
  EXPECT_EQ(mistake("::metric"), "::metric");
  EXPECT_EQ(mistake("::metric epoch 3 loss=1"), "") << "a word between metrics is none";
  EXPECT_EQ(mistake("::metric loss=nan"), "") << "the end of the attempt warns of it";
  for (const std::string_view other : {"", "acc=87%", "::metrics acc=87%", "a ::metric acc=87%"}) {
    EXPECT_EQ(mistake(other), "") << other;
  }
  EXPECT_EQ(mistake("::metric \xff=2"), "\xEF\xBF\xBD=2");
  EXPECT_EQ(mistake("::metric a=" + std::string(1'000, 'x')).size(), MetricLine::kMistakeBytesMax);
}

TEST(MetricLine, KnowsNoValueWhereJsonHasNoNumber) {
  EXPECT_THAT(read("::metric a=nan b=-inf c=Infinity d=1e400 e=1e-400"),
              ElementsAre("a=null", "b=null", "c=null", "d=null", "e=null"));
}

TEST(MetricLine, TakesNoGarbageForAMetric) {
  using namespace std::string_view_literals;
  EXPECT_THAT(read("::metric l\0ss=1 loss=1\0 \xff\xfe=2 \xc3\xa4=3 ok=4"sv), ElementsAre("ok=4"));
  EXPECT_THAT(read("::metric \x1b[31mloss=1"), IsEmpty());
}

TEST(MetricLine, IsBounded) {
  const std::string name(kMetricNameMax, 'x');
  EXPECT_THAT(read("::metric " + name + "=1 " + name + "y=2 " + std::string(3'000, 'z') + "=3"),
              ElementsAre(name + "=1"));
  std::string many = "::metric";
  for (std::size_t n = 0; n < 100; ++n) many += fmt::format(" m{}=1", n);
  EXPECT_THAT(read(many), SizeIs(kMetricsOfLineMax));
  std::string longest = "::metric a=1" + std::string(kMetricLineMax, ' ');
  longest.resize(kMetricLineMax);
  EXPECT_THAT(read(longest), ElementsAre("a=1"));
  EXPECT_THAT(read(longest + " "), IsEmpty()) << "what is cut off could be half a number";
}

Metric metric(std::string_view name, std::string_view number) {
  return metric_of(name, number).value();
}

TEST(LastMetrics, AreTheLastValueOfEachName) {
  LastMetrics last;
  EXPECT_FALSE(last.take_news());
  EXPECT_EQ(last.values(), "");
  last.add(metric("loss", "0.5"));
  last.add(metric("step", "40"));
  last.add(metric("loss", "nan"));
  EXPECT_EQ(last.values(), R"({"loss":null,"step":40})");
  EXPECT_TRUE(last.take_news());
  EXPECT_FALSE(last.take_news()) << "told once";
}

TEST(LastMetrics, SayHowFarItIs) {
  LastMetrics last;
  for (const char* const wrong : {"1.5", "-0.1", "nan"}) last.add(metric("fraction", wrong));
  EXPECT_FALSE(last.take_news());
  EXPECT_EQ(last.fraction(), std::nullopt);
  last.add(metric("fraction", "0.25"));
  EXPECT_TRUE(last.take_news());
  EXPECT_EQ(last.fraction(), 0.25);
  EXPECT_EQ(last.values(), "") << "it is no value";
}

TEST(LastMetrics, GiveWayToWhatIsSaidBesideThem) {
  LastMetrics last;
  EXPECT_EQ(last.values_with(R"({"phase":"warm"})"), R"({"phase":"warm"})");
  last.add(metric("loss", "1"));
  last.add(metric("acc", "0.5"));
  EXPECT_EQ(last.values_with(R"({"loss":2,"phase":"warm"})"),
            R"({"acc":0.5,"loss":2,"phase":"warm"})");
  EXPECT_EQ(last.values_with("no object"), R"({"acc":0.5,"loss":1})");
}

TEST(LastMetrics, AreAddedToAResultThatLacksThem) {
  LastMetrics last;
  EXPECT_EQ(last.added_to(R"({"z":1})"), R"({"z":1})");
  last.add(metric("loss", "1"));
  last.add(metric("acc", "0.5"));
  EXPECT_EQ(last.added_to(R"({"z":{"b":1,"a":2},"loss":2})"),
            R"({"z":{"b":1,"a":2},"loss":2,"acc":0.5})")
      << "the result has the last word, and its order stays";
  EXPECT_EQ(last.added_to("{}"), R"({"acc":0.5,"loss":1})");
  const std::string longest = "{\"a\":\"" + std::string(kResultBytesMax - 8, 'a') + "\"}";
  ASSERT_EQ(longest.size(), kResultBytesMax);
  EXPECT_EQ(last.added_to(longest), longest) << "both are too long together";
}

TEST(LastMetrics, WarnOfANumberThatTheResultHasAsNull) {
  const auto warning = [](std::string_view number, std::string_view result) {
    LastMetrics last;
    last.add(metric("acc", "1"));
    last.add(metric("loss", number));
    return last.warning_of(result.empty() ? last.values() : result);
  };
  EXPECT_EQ(warning("nan", ""), "metric 'loss' was NaN: kept as null");
  EXPECT_EQ(warning("+inf", ""), "metric 'loss' was Infinity: kept as null");
  EXPECT_EQ(warning("-inf", ""), "metric 'loss' was -Infinity: kept as null");
  EXPECT_EQ(warning("1e400", ""), "metric 'loss' was 1e400: kept as null");
  EXPECT_EQ(warning(std::string(400, '9'), ""),
            "metric 'loss' was a number out of range: kept as null");
  EXPECT_EQ(warning("2", ""), "");
  EXPECT_EQ(warning("nan", R"({"loss":2})"), "") << "the task left another value";
  EXPECT_EQ(warning("nan", R"({"acc":null})"), "");
  LastMetrics two;
  two.add(metric("loss", "nan"));
  two.add(metric("acc", "nan"));
  EXPECT_EQ(two.warning_of(two.values()), "metric 'acc' was NaN, 'loss' was NaN: kept as null");
  EXPECT_EQ(two.warning_of(""), "");
  LastMetrics seven;
  for (const char* const name : {"a", "b", "c", "d", "e", "f", "g"}) seven.add(metric(name, "nan"));
  EXPECT_EQ(seven.warning_of(seven.values()),
            "metric 'a' was NaN, 'b' was NaN, 'c' was NaN, 'd' was NaN, 'e' was NaN: kept as null "
            "(and 2 more)");
}

TEST(LastMetrics, AreAsManyAsProgressCanSay) {
  LastMetrics last;
  for (std::size_t n = 0; n < 10'000; ++n) {
    std::string name = fmt::format("m{}_", n);
    name.resize(kMetricNameMax, 'x');
    last.add(metric(name, "-1.2345678901234567e-300"));
  }
  EXPECT_LE(last.values().size(), kValuesBytesMax);
  const auto report = read_report(to_fields(TaskReport{Progress{.values = last.values()}}));
  EXPECT_EQ(std::get<Progress>(report.value()).values, last.values());
  EXPECT_THAT(last.values(), ::testing::HasSubstr("\"m31_x"));
  EXPECT_THAT(last.values(), ::testing::Not(::testing::HasSubstr("\"m32_x"))) << "the first ones";
  const std::string said = "{\"a\":\"" + std::string(3'900, 'a') + "\"}";
  EXPECT_EQ(last.values_with(said), said) << "both are too long together";
}

}  // namespace
}  // namespace trainyard::wire
