// Lengths of time as people write and read them, one rule a test.
#include "base/duration_text.h"

#include <string_view>

#include <gtest/gtest.h>

#include "base/result.h"
#include "base/time.h"

namespace trainyard {
namespace {

Duration::rep milliseconds_of(std::string_view text) {
  const Result<Duration> duration = parse_duration(text);
  EXPECT_TRUE(duration.has_value()) << text;
  return duration ? duration->count() : -1;
}

TEST(DurationText, ReadsUnitsAndTheirSums) {
  EXPECT_EQ(milliseconds_of("500ms"), 500);
  EXPECT_EQ(milliseconds_of("90s"), 90'000);
  EXPECT_EQ(milliseconds_of("1.5h"), 5'400'000);
  EXPECT_EQ(milliseconds_of("2h30m"), 9'000'000);
  EXPECT_EQ(milliseconds_of("2 h 30 min"), 9'000'000);
  EXPECT_EQ(milliseconds_of("1d"), 86'400'000);
  EXPECT_EQ(milliseconds_of("0"), 0);
}

TEST(DurationText, ReadsClockFormsAsSlurmDoes) {
  EXPECT_EQ(milliseconds_of("01:30"), 90'000);
  EXPECT_EQ(milliseconds_of("1:30:00"), 5'400'000);
  EXPECT_EQ(milliseconds_of("1-12:00:00"), 129'600'000);
}

TEST(DurationText, RefusesWhatIsNoLengthOfTime) {
  for (const std::string_view text : {"", "soon", "inf", "infs", "nan", "5x", "-3s", "1:2:3:4",
                                      "1:75", "1-", "1-5", "h", "s5", ":", "1:"}) {
    EXPECT_FALSE(parse_duration(text).has_value()) << text;
  }
  EXPECT_EQ(parse_duration("inf").error().message,
            "'inf' is not a valid time; write it as in '90s', '2h30m' or '1:30:00'");
  EXPECT_EQ(parse_duration("9999999w").error().message, "'9999999w' is longer than ten years");
  EXPECT_EQ(parse_duration("90").error().message,
            "'90' has no unit (did you mean '90s' or '90m'?)");
}

TEST(DurationText, IsToldToPeopleShortly) {
  EXPECT_EQ(to_text(Duration{412}), "0.4 s");
  EXPECT_EQ(to_text(Duration{12'300}), "12.3 s");
  EXPECT_EQ(to_text(Duration{245'000}), "4:05");
  EXPECT_EQ(to_text(Duration{7'509'000}), "2:05:09");
  EXPECT_EQ(to_text(Duration{266'709'000}), "3d 2:05:09");
}

}  // namespace
}  // namespace trainyard
