#include "sys/terminal.h"

#include <gtest/gtest.h>

namespace trainyard::sys {
namespace {

TEST(StandardError, ShowsWhatWouldActOnATerminal) {
  testing::internal::CaptureStderr();
  write_standard_error("trainyard: 'd\x1b[2J' is not a run\n\tä\r\n");
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "trainyard: 'd\\x1b[2J' is not a run\n\tä\\r\n");
}

}  // namespace
}  // namespace trainyard::sys
