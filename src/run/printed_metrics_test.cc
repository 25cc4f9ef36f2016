// Reading of logs that grow, are cut, and contain anything.
#include "run/printed_metrics.h"

#include <fstream>
#include <ios>

#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sys/test_directory.h"

namespace trainyard::run {
namespace {

class PrintedMetricsTest : public ::testing::Test {
 protected:
  void print(std::string_view text, std::string_view log = "stdout.log") {
    std::ofstream(path(log), std::ios::binary | std::ios::app) << text;
  }
  [[nodiscard]] std::string path(std::string_view log = "stdout.log") const {
    return place_ / std::string(log);
  }
  /// The metrics that are known after a look.
  std::string looked() {
    printed_.look();
    return printed_.last().values();
  }

  sys::TemporaryDirectory place_;
  PrintedMetrics printed_{{path(), path("stderr.log")}, {}};
};

TEST_F(PrintedMetricsTest, AreReadAsTheLogsGrow) {
  EXPECT_EQ(looked(), "") << "there is no log yet";
  print("begins\n::metric loss=0.5 step=1\n");
  EXPECT_EQ(looked(), R"({"loss":0.5,"step":1})");
  EXPECT_TRUE(printed_.take_news());
  EXPECT_EQ(looked(), R"({"loss":0.5,"step":1})");
  EXPECT_FALSE(printed_.take_news()) << "nothing is new";
  print("::metric loss=0.25\n::metric loss=0.125\n");
  print("::metric fraction=0.5 acc=1\n", "stderr.log");
  EXPECT_EQ(looked(), R"({"acc":1,"loss":0.125,"step":1})");
  EXPECT_EQ(printed_.last().fraction(), 0.5);
  EXPECT_TRUE(printed_.take_news());
}

TEST_F(PrintedMetricsTest, AreReadOnceTheirLineIsWhole) {
  print("::metric loss=0.1");
  EXPECT_EQ(looked(), "");
  print("25\n::metric lo");
  EXPECT_EQ(looked(), R"({"loss":0.125})");
  print("ss=2\r");
  EXPECT_EQ(looked(), R"({"loss":2})") << "as a progress bar ends its lines";
  print("::metric loss=3");
  printed_.finish();
  EXPECT_EQ(printed_.last().values(), R"({"loss":3})") << "nothing follows any more";
}

TEST_F(PrintedMetricsTest, AreFoundByThePatternInOtherLines) {
  printed_ = PrintedMetrics({path()}, [](std::string_view line) {
    return wire::MetricLine{.metrics = {{.name = "bytes",
                                         .number = static_cast<double>(line.size()),
                                         .whole = static_cast<std::int64_t>(line.size())}}};
  });
  print("1234\n::metric loss=1\n\n123");
  EXPECT_EQ(looked(), R"({"bytes":4,"loss":1})");
  printed_.finish();
  EXPECT_EQ(printed_.last().values(), R"({"bytes":3,"loss":1})");
}

TEST_F(PrintedMetricsTest, AreWarnedOfWhereTheyAreNotValid) {
  EXPECT_EQ(printed_.warning(true), "");
  print("::metric loss=1 acc=87%\n");
  EXPECT_EQ(looked(), R"({"loss":1})");
  EXPECT_EQ(printed_.warning(false), "printed metric 'acc=87%' is not valid: write NAME=NUMBER");
  print("::metric acc=88%\n::metric acc 0.9\n::metric acc=0.9\n");
  printed_.finish();
  EXPECT_EQ(printed_.last().values(), R"({"acc":0.9,"loss":1})");
  EXPECT_EQ(printed_.warning(true),
            "printed metric 'acc=87%' is not valid (and 2 more): write NAME=NUMBER");
}

TEST_F(PrintedMetricsTest, AreWarnedOfWhereThePatternFindsNoneUntilTheEnd) {
  const auto with_pattern = [this] {
    return PrintedMetrics({path()}, [](std::string_view line) {
      wire::MetricLine found;
      if (line == "loss 1") found.metrics.push_back(wire::metric_of("loss", "1").value());
      return found;
    });
  };
  constexpr std::string_view kNone = "the pattern of 'metrics' found no number in the output";
  printed_ = with_pattern();
  EXPECT_EQ(printed_.warning(true), kNone) << "it printed nothing";
  print("loss: 1\n::metric acc=1\n");
  printed_.finish();
  EXPECT_EQ(printed_.warning(true), kNone);
  EXPECT_EQ(printed_.warning(false), "") << "a failed task may not have come to that line";
  print("::metric acc=x\n");
  printed_.finish();
  EXPECT_EQ(printed_.warning(true),
            fmt::format("printed metric 'acc=x' is not valid: write NAME=NUMBER; {}", kNone));
  printed_ = with_pattern();
  print("loss 1\n");
  printed_.finish();
  EXPECT_EQ(printed_.warning(false), "printed metric 'acc=x' is not valid: write NAME=NUMBER");
  // It may have been in output that nobody has read.
  print(std::string(PrintedMetrics::kOfALogMax + 1'000, '\n'), "stderr.log");
  printed_ = PrintedMetrics({path("stderr.log")},
                            [](std::string_view /*line*/) { return wire::MetricLine(); });
  printed_.finish();
  EXPECT_EQ(printed_.warning(true), "");
}

TEST_F(PrintedMetricsTest, AreWarnedOfOnceWhereThePatternFindsNoNumbers) {
  printed_ = PrintedMetrics({path()}, [](std::string_view line) {
    wire::MetricLine found;
    if (line == "acc 1") found.metrics.push_back(wire::metric_of("acc", "1").value());
    if (line != "acc 1") found.mistake = line;
    return found;
  });
  print("acc=0.9.\n");
  printed_.finish();
  EXPECT_EQ(printed_.warning(true),
            "the pattern of 'metrics' found 'acc=0.9.', which is not a number");
  print("acc 1\nacc=0.8.\nacc=0.7.\n");
  printed_.finish();
  EXPECT_EQ(printed_.last().values(), R"({"acc":1})");
  EXPECT_EQ(printed_.warning(false),
            "the pattern of 'metrics' found 'acc=0.9.', which is not a number (and 2 more)");
}

TEST_F(PrintedMetricsTest, AreNotOfALineThatIsTooLong) {
  print("::metric a=1 " + std::string(1'000'000, 'x'));
  EXPECT_EQ(looked(), "");
  print(std::string(1'000'000, 'x') + " b=2\n::metric c=3\n");
  EXPECT_EQ(looked(), R"({"c":3})");
  print("::metric d=4 " + std::string(wire::kMetricLineMax, 'x'));
  printed_.finish();
  EXPECT_EQ(printed_.last().values(), R"({"c":3})");
}

TEST_F(PrintedMetricsTest, AreFoundBesideGarbage) {
  std::string garbage;
  for (int byte = 0; byte < 256; ++byte) garbage += static_cast<char>(byte);
  print("::metric \xff=1 " + std::string(10'000, 'n') + "=1\n" + garbage +
        "\n::metric ok=1 y=nan\n" + garbage);
  EXPECT_EQ(looked(), R"({"ok":1,"y":null})");
}

TEST_F(PrintedMetricsTest, AreReadAnewWhereALogWasCut) {
  print("::metric loss=1 step=1000\n::metric half=1");
  EXPECT_EQ(looked(), R"({"loss":1,"step":1000})");
  std::ofstream(path()) << "::metric loss=2\n";
  EXPECT_EQ(looked(), R"({"loss":2,"step":1000})") << "no half line is put before it";
  ::unlink(path().c_str());
  EXPECT_EQ(looked(), R"({"loss":2,"step":1000})");
  print("::metric loss=3\n");
  EXPECT_EQ(looked(), R"({"loss":3,"step":1000})");
}

TEST_F(PrintedMetricsTest, AreReadBehindTheHoleOfALogThatWasCutUnderItsWriter) {
  print("::metric loss=1\n");
  EXPECT_EQ(looked(), R"({"loss":1})");
  ASSERT_EQ(::truncate(path().c_str(), 0), 0);
  ASSERT_EQ(::truncate(path().c_str(), 16), 0);
  print("::metric loss=2\n");
  printed_.finish();
  EXPECT_EQ(printed_.last().values(), R"({"loss":2})");
  // The same in a log that was not read before.
  print(std::string(1'000, '\0') + "::metric loss=3\n", "stderr.log");
  EXPECT_EQ(looked(), R"({"loss":3})");
}

TEST_F(PrintedMetricsTest, AreOfTheEndOfALogThatGrowsTooFast) {
  std::string lines = "::metric first=1\n";
  while (lines.size() < PrintedMetrics::kOfALogMax + 1'000) lines += "a line of no interest\n";
  print(lines + "::metric last=1\n");
  EXPECT_LE(printed_.look(), PrintedMetrics::kOfALogMax);
  EXPECT_EQ(printed_.last().values(), R"({"last":1})");
  EXPECT_EQ(printed_.look(), 0U);
}

TEST_F(PrintedMetricsTest, AreReadInLooksThatAreBounded) {
  std::string lines = "::metric first=1\n";
  while (lines.size() < 500'000) lines += "a line of no interest\n";
  print(lines + "::metric last=1\n");
  std::size_t looks = 0;
  for (; printed_.last().values() != R"({"first":1,"last":1})" && looks < 100; ++looks) {
    EXPECT_LE(printed_.look(100'000), 2 * (std::size_t{64} << 10));
  }
  EXPECT_EQ(looks, 4U) << "what was not read is read by the next ones";
}

TEST_F(PrintedMetricsTest, AreNotReadFromWhatIsNoPlainFile) {
  print("::metric secret=1\n", "elsewhere");
  ASSERT_EQ(::symlink(path("elsewhere").c_str(), path().c_str()), 0);
  ASSERT_EQ(::mkfifo(path("stderr.log").c_str(), 0600), 0);
  EXPECT_EQ(looked(), "");
  printed_.finish();
  EXPECT_EQ(printed_.last().values(), "");
}

}  // namespace
}  // namespace trainyard::run
