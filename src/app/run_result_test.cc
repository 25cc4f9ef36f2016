// A run in which tasks failed is told from one that is only incomplete.
#include "app/run_result.h"

#include <gtest/gtest.h>

namespace trainyard::app {
namespace {

using run::ExitCode;

TEST(RunResult, IsIncompleteIfTasksAreOnlyStopped) {
  const journal::GroupRow train{.tasks = 2, .finished = 1, .stopped = 1};
  const journal::GroupRow eval{.tasks = 1, .stopped = 1};
  EXPECT_EQ(exit_code_of({train, eval}), ExitCode::NotDone);
  EXPECT_EQ(shortfall_text({train, eval}), "1 of 3 tasks finished, 2 stopped");
}

TEST(RunResult, IsAFailureIfATaskFailedOrWasSkipped) {
  const journal::GroupRow failed{.tasks = 2, .failed = 1, .stopped = 1};
  const journal::GroupRow skipped{.tasks = 1, .skipped = 1};
  EXPECT_EQ(exit_code_of({failed}), ExitCode::TaskFailed);
  EXPECT_EQ(shortfall_text({failed, skipped}), "1 of 3 tasks failed, 1 skipped");
  EXPECT_EQ(exit_code_of({skipped}), ExitCode::TaskFailed);
  EXPECT_EQ(shortfall_text({skipped}), "1 of 1 task skipped");
}

TEST(RunResult, IsASuccessIfTheOtherTasksDidNotHaveToRun) {
  const journal::GroupRow train{.tasks = 4, .finished = 2, .not_needed = 1, .not_selected = 1};
  EXPECT_EQ(exit_code_of({train}), ExitCode::Success);
}

}  // namespace
}  // namespace trainyard::app
