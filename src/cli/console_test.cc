#include "cli/console.h"

#include <utility>

#include <gtest/gtest.h>

namespace trainyard::cli {
namespace {

TEST(Console, ShowsWhatWouldActOnATerminal) {
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  EXPECT_TRUE(print("g/a\x1b[2J will not start\n"));
  EXPECT_EQ(answer("{\"name\": \"\x7f\"}\n"), ExitCode::Success);
  EXPECT_EQ(fail("'runs/\x1b]0;x' has a run already"), ExitCode::Usage);
  EXPECT_EQ(testing::internal::GetCapturedStdout(),
            "g/a\\x1b[2J will not start\n{\"name\": \"\\u007f\"}\n");
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "trainyard: 'runs/\\x1b]0;x' has a run already\n");
}

TEST(Console, PrintsEachMistakeOfAnErrorWithTheNameOfTheProgram) {
  Error error;
  error.add("lab1: no response");
  error.add("lab2: lost");
  testing::internal::CaptureStderr();
  EXPECT_EQ(fail(std::move(error).in("slurm"), ExitCode::NotDone), ExitCode::NotDone);
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "trainyard: slurm: lab1: no response\n"
            "trainyard: slurm: lab2: lost\n");
}

TEST(Console, PrintsEachMistakeOfAFileAsItPrintsAnyError) {
  testing::internal::CaptureStderr();
  EXPECT_EQ(fail(text::Mistakes{{.file = "a.yaml", .line = 2, .column = 3, .message = "unknown"},
                                {.file = "a.yaml", .message = "is not a text file"}}),
            ExitCode::Usage);
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "trainyard: a.yaml:2:3: unknown\n"
            "trainyard: a.yaml: is not a text file\n"
            "trainyard: 2 mistakes, nothing was done\n");
}

TEST(Console, PrintsBytesAsTheyAre) {
  testing::internal::CaptureStdout();
  EXPECT_EQ(answer_bytes("\x1b[31m\r\xe2"), ExitCode::Success);
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "\x1b[31m\r\xe2");
}

TEST(Console, QuotesACommandForARun) {
  EXPECT_EQ(command_for_run("run --resume", "runs/x"), "'trainyard run --resume runs/x'");
  EXPECT_EQ(command_for_run("kill", "runs/my x"), "\"trainyard kill 'runs/my x'\"");
}

}  // namespace
}  // namespace trainyard::cli
