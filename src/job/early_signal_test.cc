// The signal before TERM is read as Slurm writes it, and what cannot work is refused.
#include "job/early_signal.h"

#include <csignal>

#include <gtest/gtest.h>

#include "model/terms.h"

namespace trainyard::job {
namespace {

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
