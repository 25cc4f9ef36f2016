// The commands that retry what ran out of memory or time.
#include "report/retry_advice.h"

#include <initializer_list>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "journal/reader.h"
#include "model/status.h"
#include "model/waiting.h"
#include "report/test_rows.h"

namespace trainyard::report {
namespace {

RetryAdvice looked_at(std::initializer_list<journal::TaskRow> rows) {
  RetryAdvice advice;
  for (const journal::TaskRow& row : rows) advice.look_at(row);
  return advice;
}

std::string advice_on(std::initializer_list<journal::TaskRow> rows) {
  return looked_at(rows).text("my runs/x");
}

std::string resume_advice_on(std::initializer_list<journal::TaskRow> rows) {
  return looked_at(rows).resume_text({.directory = "my runs/x"});
}

TEST(RetryAdvice, HasALineForEachCause) {
  EXPECT_EQ(advice_on({failed_row("a", model::Failure::OutOfMemory, ""),
                       failed_row("b", model::Failure::OutOfMemory, ""),
                       failed_row("c", model::Failure::Timeout, "")}),
            "tasks out of memory: 'trainyard retry 'my runs/x' :oom --memory SIZE' reserves more\n"
            "tasks over their time limit: 'trainyard retry 'my runs/x' :timeout --time-limit TIME' "
            "allows more time\n");
}

TEST(RetryAdvice, NamesBothMemoriesOfATaskWithAGpu) {
  journal::TaskRow row = failed_row("a", model::Failure::OutOfMemory, "");
  row.gpus = "0";
  EXPECT_EQ(advice_on({row}),
            "tasks out of memory: 'trainyard retry 'my runs/x' :oom --memory SIZE --gpu-memory "
            "SIZE' reserves more\n");
}

TEST(RetryAdvice, OffersNoMemoryToATaskThatReservesNoGpu) {
  EXPECT_EQ(
      advice_on({failed_row("a", model::Failure::OutOfMemory,
                            fmt::format("out of memory 2 times (oom-retries: 1); {}: CUDA out of "
                                        "memory",
                                        model::kReservesNoGpu))}),
      "tasks ran out of GPU memory but reserve no GPU: add 'gpu-memory: SIZE' to the job file, "
      "then 'trainyard run --resume 'my runs/x''\n");
}

TEST(RetryAdvice, IsEmptyForOtherCausesAndWhileATaskIsRetried) {
  journal::TaskRow retrying = failed_row("a", model::Failure::OutOfMemory, "");
  retrying.standing.verdict = model::Verdict::None;
  EXPECT_EQ(advice_on({failed_row("b", model::Failure::Exit, ""), retrying}), "");
}

TEST(RetryAdvice, HasOneLineForAllOtherCauses) {
  const journal::TaskRow exited = failed_row("a", model::Failure::Exit, "");
  const journal::TaskRow too_long = failed_row("b", model::Failure::Timeout, "");
  const std::string line =
      "after a fix: 'trainyard run --resume 'my runs/x'' runs the failed tasks again\n";
  EXPECT_EQ(resume_advice_on({exited, exited}), line);
  EXPECT_EQ(resume_advice_on({exited, too_long}), line);
  EXPECT_EQ(resume_advice_on({too_long, failed_row("c", model::Failure::OutOfMemory, "")}), "");
  EXPECT_EQ(resume_advice_on({}), "");
}

TEST(RetryAdvice, SaysThatAResumedRunOfACommandHasTheSameCommand) {
  EXPECT_EQ(looked_at({failed_row("a", model::Failure::Exit, "")})
                .resume_text({.directory = "runs/x", .is_of_command = true}),
            "after a fix of the program: 'trainyard run --resume runs/x' runs the failed tasks "
            "again, with the same command\n");
}

TEST(RetryAdvice, NamesTheCommandThatResumesTheRunOnce) {
  EXPECT_EQ(resume_advice_on({failed_row("a", model::Failure::Exit, ""),
                              failed_row("b", model::Failure::OutOfMemory,
                                         fmt::format("{}: CUDA", model::kReservesNoGpu))}),
            "");
}

}  // namespace
}  // namespace trainyard::report
