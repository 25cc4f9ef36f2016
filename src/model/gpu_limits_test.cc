#include "model/gpu_limits.h"

#include <gtest/gtest.h>

namespace trainyard::model {
namespace {

GpuHours hours(std::string_view text, int gpus) {
  GpuHours read = parse_hours(text).value();
  read.gpus_max = gpus;
  return read;
}

std::string why_not(std::string_view text) {
  const Result<GpuHours> read = parse_hours(text);
  return read ? "none" : read.error().message;
}

constexpr int kMonday = 0;
constexpr int kFriday = 4;
constexpr int kSaturday = 5;
constexpr int kSunday = 6;

WeekMoment moment(int day, int hour, int minute = 0) {
  return {.day = day, .minute = 60 * hour + minute};
}

TEST(GpuLimits, ByTheHourOneHoldsAndElseTheUsual) {
  const GpuLimits limits{.usual = 3, .hours = {hours("Mon-Fri 08:00-19:00", 2)}};
  EXPECT_EQ(limit_at(limits, moment(kMonday, 7, 59)),
            (GpuLimitNow{.gpus_max = 3, .until = "08:00"}));
  EXPECT_EQ(limit_at(limits, moment(kMonday, 8)), (GpuLimitNow{.gpus_max = 2, .until = "19:00"}));
  EXPECT_EQ(limit_at(limits, moment(kFriday, 18, 59)),
            (GpuLimitNow{.gpus_max = 2, .until = "19:00"}));
  EXPECT_EQ(limit_at(limits, moment(kFriday, 19)), (GpuLimitNow{.gpus_max = 3, .until = "08:00"}));
  EXPECT_EQ(limit_at(limits, moment(kSaturday, 12)),
            (GpuLimitNow{.gpus_max = 3, .until = "08:00"}));
}

TEST(GpuLimits, WithoutHoursNothingChanges) {
  EXPECT_EQ(limit_at({}, moment(kMonday, 7)), GpuLimitNow{});
  EXPECT_EQ(limit_at({.usual = 2}, moment(kMonday, 7)), (GpuLimitNow{.gpus_max = 2}));
  EXPECT_EQ(limit_at({.usual = 2, .hours = {hours("00:00-24:00", 1)}}, moment(kSunday, 7)),
            (GpuLimitNow{.gpus_max = 1}));
}

TEST(GpuLimits, OfSeveralThatHoldTheStrictestCounts) {
  const GpuLimits limits{.hours = {hours("Mon-Fri 08:00-19:00", 2), hours("Mon 10:00-11:00", 1),
                                   hours("Mon 09:00-12:00", 3)}};
  EXPECT_EQ(limit_at(limits, moment(kMonday, 9)), (GpuLimitNow{.gpus_max = 2, .until = "10:00"}));
  EXPECT_EQ(limit_at(limits, moment(kMonday, 10)), (GpuLimitNow{.gpus_max = 1, .until = "11:00"}));
  EXPECT_EQ(limit_at(limits, moment(kMonday, 20)), (GpuLimitNow{.until = "08:00"}));
}

TEST(GpuLimits, OverMidnightItIsTheDayOnWhichItBegan) {
  const GpuLimits limits{.hours = {hours("Fri 22:00-06:00", 1)}};
  EXPECT_EQ(limit_at(limits, moment(kFriday, 21)).gpus_max, std::nullopt);
  EXPECT_EQ(limit_at(limits, moment(kFriday, 23)), (GpuLimitNow{.gpus_max = 1, .until = "06:00"}));
  EXPECT_EQ(limit_at(limits, moment(kSaturday, 5)), (GpuLimitNow{.gpus_max = 1, .until = "06:00"}));
  EXPECT_EQ(limit_at(limits, moment(kSaturday, 6)).gpus_max, std::nullopt);
  EXPECT_EQ(limit_at(limits, moment(kFriday, 5)).gpus_max, std::nullopt) << "Thursday has none";
}

TEST(GpuLimits, DaysMayBeListedAndGoRoundTheWeek) {
  EXPECT_EQ(parse_hours("Sat,Sun 08:00-19:00")->days, 0b1100000);
  EXPECT_EQ(parse_hours("Sat-Mon 08:00-19:00")->days, 0b1100001);
  EXPECT_EQ(parse_hours("08:00-19:00")->days, 0b1111111);
}

TEST(GpuLimits, SayWhatIsWrong) {
  EXPECT_EQ(why_not("Mom-Fri 08:00-19:00"),
            "'Mom' is not a day of the week (Mon, Tue, ..., Sun) (did you mean 'Mon'?)");
  for (const char* const text : {"Mon", "8-19", "08:00", "Mon 08:00-25:00", "08:00-08:00",
                                 "08:60-09:00", "24:00-08:00", ""}) {
    EXPECT_NE(
        why_not(text).find("is not a valid time of day; write it as in 'Mon-Fri 08:00-19:00'"),
        std::string::npos)
        << text;
  }
}

TEST(GpuLimits, AreReadBackAsTheyAreKept) {
  const std::vector<GpuHours> all{hours("Mon-Fri 08:00-19:00", 2), hours("Sun 22:00-06:00", 0)};
  EXPECT_EQ(to_text(all), "Mon,Tue,Wed,Thu,Fri 08:00-19:00=2; Sun 22:00-06:00=0");
  EXPECT_EQ(hours_from(to_text(all)).value(), all);
  EXPECT_TRUE(hours_from("")->empty());
  EXPECT_EQ(hours_from("Mon 08:00-19:00").error().message,
            "'Mon 08:00-19:00' has no number of GPUs; write it as in 'Mon-Fri 08:00-19:00=2'");
}

}  // namespace
}  // namespace trainyard::model
