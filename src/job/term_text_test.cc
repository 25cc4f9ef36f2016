#include "job/term_text.h"

#include <csignal>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "job/test_job.h"

namespace trainyard::job {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(RetryOn, KnowsTheTimeLimitAndNothingElse) {
  EXPECT_FALSE(parse_retry_on("").value());
  EXPECT_TRUE(parse_retry_on("time-limit").value());
  EXPECT_TRUE(parse_retry_on("time-limit,time-limit").value());
  EXPECT_EQ(parse_retry_on("time-limits").error().message,
            "'time-limits' is not time-limit (did you mean 'time-limit'?)");
  EXPECT_EQ(
      parse_retry_on("time-limit,oom").error().message,
      "must be time-limit, not 'oom'; 'oom-retries' sets the retries after running out of memory");
}

TEST(RetryOn, IsAWordOrAListAndAMistakeIsToldWithItsPlace) {
  EXPECT_THAT(in_group("retries: 1\nretry-on: time-limit"), IsEmpty());
  EXPECT_THAT(in_group("retry-on: []"), IsEmpty());
  EXPECT_THAT(in_group("retry-on: [time-limt]"),
              ElementsAre("sweep.yaml:4:15: group 'train': retry-on: 'time-limt' is not "
                          "time-limit (did you mean 'time-limit'?)"));
  EXPECT_THAT(
      in_group("retry-on: [[a]]"),
      ElementsAre("sweep.yaml:4:16: group 'train': 'retry-on' must be a single value, not a list"));
}

TEST(RetryOn, NeedsTheNumberOfRetries) {
  EXPECT_THAT(in_group("retry-on: time-limit"),
              ElementsAre("sweep.yaml:4:15: group 'train': retry-on: 'time-limit' needs 'retries', "
                          "the number of retries"));
  EXPECT_THAT(in_group("retries: 0\nretry-on: time-limit"), IsEmpty()) << "0 is a number, too";
}

TEST(Retries, AreCountsAndTimes) {
  EXPECT_THAT(in_group("retries: 254"), IsEmpty());
  EXPECT_THAT(in_group("retries: 255"),
              ElementsAre("sweep.yaml:4:14: group 'train': retries: '255' is not a whole number "
                          "from 0 to 254"));
  EXPECT_THAT(in_group("retries: -1"),
              ElementsAre(HasSubstr("retries: '-1' is not a whole number from 0 to 254")));
  EXPECT_THAT(in_group("oom-retries: 255"),
              ElementsAre(HasSubstr("'255' is not a whole number from 0 to 254")));
  EXPECT_THAT(in_group("retry-delay: x"), ElementsAre(HasSubstr("group 'train': retry-delay: ")));
}

TEST(Retries, AreToldInWords) {
  EXPECT_EQ(to_text(model::Retries{}), "");
  EXPECT_EQ(to_text(model::Retries{.failures = 2}), "2 after a failure");
  EXPECT_EQ(
      to_text(model::Retries{
          .failures = 2, .out_of_memory = 5, .after_time_limit = true, .delay = Duration{30'000}}),
      "2 after a failure or the time limit, the first after 30 s; 5 after out of memory");
  EXPECT_EQ(to_text(model::Retries{.delay = Duration{1'000}}), "none after a failure (0 retries)");
}

std::string error_of(std::string_view text) {
  const auto signal = parse_early_signal(text);
  return signal ? "" : signal.error().message;
}

TEST(EarlySignal, IsReadAsSlurmWritesIt) {
  const model::EarlySignal two_minutes{.number = SIGUSR1, .before = Duration{120'000}};
  EXPECT_EQ(parse_early_signal("USR1@120"), two_minutes);
  EXPECT_EQ(parse_early_signal("SIGUSR1@120"), two_minutes);
  EXPECT_EQ(parse_early_signal("USR1@2min"), two_minutes);
  EXPECT_EQ(parse_early_signal("USR2"),
            (model::EarlySignal{.number = SIGUSR2, .before = Duration{60'000}}));
}

TEST(EarlySignal, IsRefusedWhereItCannotWork) {
  EXPECT_EQ(error_of("KILL@5"), "SIGKILL cannot be caught; use another signal, as in USR1@120");
  EXPECT_EQ(error_of("SIGTERM"), "SIGTERM is sent anyway; use another signal, as in USR1@120");
  EXPECT_EQ(error_of("URS1@5"), "unknown signal 'URS1' (did you mean USR1?)");
  EXPECT_EQ(error_of("10@5"), "unknown signal '10'; write a name, as in USR1@120");
  EXPECT_EQ(error_of("USR1@0"), "must be from 1 second to 1 day, not '0'");
  EXPECT_EQ(error_of("USR1@2d"), "must be from 1 second to 1 day, not '2d'");
  EXPECT_NE(error_of("USR1@soon"), "");
  EXPECT_NE(error_of("USR1@"), "");
  EXPECT_NE(error_of(""), "");
}

TEST(EarlySignal, MustComeAfterTheStart) {
  const model::EarlySignal minute{.number = SIGUSR1, .before = Duration{60'000}};
  EXPECT_TRUE(fits_into(Duration{0}, minute));
  EXPECT_TRUE(fits_into(Duration{60'001}, minute));
  EXPECT_FALSE(fits_into(Duration{60'000}, minute));
  EXPECT_TRUE(fits_into(Duration{1}, {}));
  EXPECT_EQ(too_early_text(Duration{60'000}, minute),
            "1m before the time limit is too early; 'time-limit' is 1m");
  EXPECT_EQ(to_text(minute), "SIGUSR1, 1m before TERM");
}

}  // namespace

}  // namespace trainyard::job
