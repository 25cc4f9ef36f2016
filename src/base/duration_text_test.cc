// Lengths of time as people write and read them, one rule a test.
#include "base/duration_text.h"

#include <gtest/gtest.h>

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
  constexpr Duration::rep kMinute = 60'000;
  constexpr Duration::rep kHour = 60 * kMinute;
  EXPECT_EQ(milliseconds_of("1:30:00"), 90 * kMinute);
  EXPECT_EQ(milliseconds_of("1-12:00:00"), 36 * kHour);
  // Behind days come hours, also where less than three numbers do.
  EXPECT_EQ(milliseconds_of("1-12:30"), (36 * kHour) + (30 * kMinute));
  EXPECT_EQ(milliseconds_of("0-1:30"), 90 * kMinute);
  EXPECT_EQ(milliseconds_of("1-12"), 36 * kHour);
  EXPECT_EQ(milliseconds_of("0-48:00"), 48 * kHour);
}

std::string refusal_of(std::string_view text) {
  const Result<Duration> duration = parse_duration(text);
  return duration ? "taken" : duration.error().message;
}

TEST(DurationText, RefusesTwoNumbersThatMayBeMinutesOrHours) {
  EXPECT_EQ(refusal_of("1:30"), "'1:30' is ambiguous (did you mean '1m30s' or '1h30m'?)");
  EXPECT_EQ(refusal_of("01:05"), "'01:05' is ambiguous (did you mean '1m5s' or '1h5m'?)");
  EXPECT_EQ(refusal_of("90:00"), "'90:00' is ambiguous (did you mean '90m' or '90h'?)");
  EXPECT_EQ(parse_slurm_time("1:30").value(), Duration{90'000});
  EXPECT_FALSE(parse_slurm_time("90s").has_value());
}

TEST(DurationText, SuggestsTheUnitBehindTheLastOne) {
  EXPECT_EQ(refusal_of("90"), "'90' has no unit (did you mean '90s' or '90m'?)");
  EXPECT_EQ(refusal_of("1d12"), "'1d12' has no unit (did you mean '1d12h'?)");
  EXPECT_EQ(refusal_of("2h30"), "'2h30' has no unit (did you mean '2h30m'?)");
  EXPECT_EQ(refusal_of("5 min 30"), "'5 min 30' has no unit (did you mean '5 min 30s'?)");
}

TEST(DurationText, SuggestsTheKnownUnitForAnotherSpelling) {
  EXPECT_EQ(refusal_of("30M"), "'30M': unknown unit 'M' (did you mean '30m'?)");
  EXPECT_EQ(refusal_of("500MS"), "'500MS': unknown unit 'MS' (did you mean '500ms'?)");
  EXPECT_EQ(refusal_of("2 hours"), "'2 hours': unknown unit 'hours' (did you mean '2 h'?)");
  EXPECT_EQ(refusal_of("1h 5 Secs"), "'1h 5 Secs': unknown unit 'Secs' (did you mean '1h 5 s'?)");
  EXPECT_EQ(refusal_of("2H30m"), "'2H30m': unknown unit 'H'; use ms, s, m, h, d or w");
  EXPECT_EQ(refusal_of("2M 30M"), "'2M 30M': unknown unit 'M'; use ms, s, m, h, d or w");
  EXPECT_EQ(refusal_of("5x"), "'5x': unknown unit 'x'; use ms, s, m, h, d or w");
  EXPECT_EQ(refusal_of("5%"),
            "'5%' is not a valid time; write it as in '90s', '2h30m' or '1:30:00'");
}

TEST(DurationText, RefusesADelayThatIsATimeOfDayAsWell) {
  const auto refusal = [](std::string_view text) {
    const Result<Duration> delay = parse_delay(text);
    return delay ? std::string("taken") : delay.error().message;
  };
  EXPECT_EQ(refusal("22:00"),
            "'22:00' may mean 22m or a time of day; write '22m', or for a time of day how "
            "long it is until then, as in '2h30m'");
  EXPECT_EQ(refusal("6:30:00"),
            "'6:30:00' may mean 6h30m or a time of day; write '6h30m', or for a time of "
            "day how long it is until then, as in '2h30m'");
  EXPECT_NE(refusal("24:00"), "taken");
  for (const std::string_view text : {"0", "10m", "22 min", "26:00:00", "0-22:00"}) {
    EXPECT_EQ(refusal(text), "taken") << text;
  }
  EXPECT_EQ(refusal("90:00"), "'90:00' is ambiguous (did you mean '90m' or '90h'?)");
  EXPECT_EQ(refusal("90"), "'90' has no unit (did you mean '90s' or '90m'?)");
}

TEST(DurationText, RefusesWhatIsNoLengthOfTime) {
  for (const std::string_view text :
       {"",   "soon",  "inf",  "infs",   "nan",       "5x",   "-3s", "1:2:3:4", "1:75", "1-",
        "-5", "1-2-3", "1-5h", "1-1:75", "1-1:2:3:4", "1:-2", "h",   "s5",      ":",    "1:"}) {
    EXPECT_FALSE(parse_duration(text).has_value()) << text;
  }
  EXPECT_EQ(refusal_of("inf"),
            "'inf' is not a valid time; write it as in '90s', '2h30m' or '1:30:00'");
  EXPECT_EQ(refusal_of("9999999w"), "'9999999w' is longer than ten years");
  EXPECT_EQ(refusal_of("0.0001s"), "'0.0001s' is shorter than a millisecond");
}

TEST(DurationText, IsWrittenExactlyAndReadBack) {
  EXPECT_EQ(exact_text(Duration{0}), "0 s");
  EXPECT_EQ(exact_text(Duration{412}), "0.412 s");
  EXPECT_EQ(exact_text(Duration{90'000}), "1m30s");
  EXPECT_EQ(exact_text(Duration{7'200'000}), "2h");
  EXPECT_EQ(exact_text(Duration{131'400'000}), "1d12h30m");
  EXPECT_EQ(exact_text(Duration{86'401'500}), "1d1.5s");
  for (const Duration::rep time : {1, 999, 59'999, 60'001, 3'600'000, 86'399'999, 1'000'000'007}) {
    EXPECT_EQ(milliseconds_of(exact_text(Duration{time})), time) << exact_text(Duration{time});
  }
}

TEST(DurationText, IsToldToPeopleShortly) {
  EXPECT_EQ(to_text(Duration{412}), "0.4 s");
  EXPECT_EQ(to_text(Duration{12'300}), "12.3 s");
  EXPECT_EQ(to_text(Duration{59'949}), "59.9 s");
  EXPECT_EQ(to_text(Duration{59'950}), "1m");
  EXPECT_EQ(to_text(Duration{60'000}), "1m");
  EXPECT_EQ(to_text(Duration{245'000}), "4m5s");
  EXPECT_EQ(to_text(Duration{7'509'000}), "2h5m");
  EXPECT_EQ(to_text(Duration{240'999}), "4m");
  EXPECT_EQ(to_text(Duration{266'709'000}), "3d2h");
}

}  // namespace
}  // namespace trainyard
