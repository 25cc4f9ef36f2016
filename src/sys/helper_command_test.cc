// Short commands of our own: what comes back, and that none can hold us up.
#include "sys/helper_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace trainyard::sys {
namespace {

using ::testing::StartsWith;

TEST(HelperCommand, BringsBackWhatItPrintsAndItsExitCode) {
  const auto result = run_helper(
      {.arguments = {"sh", "-c", "pwd; echo lost >&2; cat; exit 3"}, .directory = "/usr"});
  ASSERT_TRUE(result);
  EXPECT_EQ(result->text, "/usr\n");
  EXPECT_EQ(result->exit_code, 3);
  EXPECT_FALSE(result->cut);
}

TEST(HelperCommand, KeepsNoMoreThanItMay) {
  const auto result = run_helper({.arguments = {"yes"}, .directory = "/", .output_max = Bytes{5}});
  ASSERT_TRUE(result);
  EXPECT_EQ(result->text, "y\ny\ny");
  EXPECT_TRUE(result->cut);
}

TEST(HelperCommand, EndsOneThatTakesTooLongWithAllItHasStarted) {
  // If it waited for them, the test would outlive its time limit.
  const auto result = run_helper({.arguments = {"sh", "-c", "sleep 1000 & sleep 1000"},
                                  .directory = "/",
                                  .deadline = Duration(50)});
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().message, "'sh' did not end within 50 ms");
}

TEST(HelperCommand, EndsOneThatClosesItsOutputAndGoesOn) {
  const auto result = run_helper({.arguments = {"sh", "-c", "echo text; exec >&-; exec sleep 100"},
                                  .directory = "/",
                                  .deadline = Duration(200)});
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().message, "'sh' did not end within 200 ms");
}

TEST(HelperCommand, SaysWhenThereIsNoSuchProgram) {
  const auto result = run_helper({.arguments = {"trainyard-no-such-program"}, .directory = "/"});
  ASSERT_FALSE(result);
  EXPECT_THAT(result.error().message,
              StartsWith("cannot run 'trainyard-no-such-program': no such"));
}

}  // namespace
}  // namespace trainyard::sys
