// The progress output of `trainyard plan` while it plays a long run.
#include <string_view>

#include <gtest/gtest.h>

#include "report/plan_report.h"

namespace trainyard::report {
namespace {

TEST(PlanProgress, IsALineEveryTenSecondsWhereNobodyWatches) {
  std::string written;
  PlanProgress progress(false, [&](std::string_view text) { written += text; });
  progress.begin("this machine", 1'000'000, Duration{500});
  progress.on(1, Duration{10'499});
  EXPECT_EQ(written, "");
  progress.on(120'000, Duration{10'500});
  progress.on(120'001, Duration{20'499});
  progress.on(250'000, Duration{20'500});
  progress.finish();
  EXPECT_EQ(written,
            "this machine: 120,000 of 1,000,000 tasks simulated\n"
            "this machine: 250,000 of 1,000,000 tasks simulated\n");
}

TEST(PlanProgress, IsDrawnOverInATerminalAndTakenAwayAtTheEnd) {
  std::string written;
  PlanProgress progress(true, [&](std::string_view text) { written += text; });
  progress.begin("1x24GB\x1b[2J", 2000, Duration{0});
  progress.on(1, Duration{499});
  EXPECT_EQ(written, "");
  progress.finish();
  EXPECT_EQ(written, "") << "nothing was drawn of one that took no time";
  progress.on(1000, Duration{500});
  progress.finish();
  EXPECT_EQ(written, "\r1x24GB[2J: 1,000 of 2,000 tasks simulated\x1b[K\r\x1b[K");
}

}  // namespace
}  // namespace trainyard::report
