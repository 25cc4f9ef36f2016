// The commands that retry what ran out of memory or time.
#include "report/retry_advice.h"

#include <initializer_list>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

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
  return looked_at(rows).text({.directory = "my runs/x"});
}

std::string resume_advice_on(std::initializer_list<journal::TaskRow> rows) {
  return looked_at(rows).resume_text({.directory = "my runs/x"});
}

journal::TaskRow out_of_memory_row(std::string_view id, std::string_view message = "") {
  return failed_row(id, model::Failure::OutOfMemory, message);
}

/// A task that reached the time limit of its job, 2 s.
journal::TaskRow timed_out_row(std::string_view id) {
  journal::TaskRow row = failed_row(id, model::Failure::Timeout, "");
  row.time_limit = Duration{2000};
  return row;
}

std::string memory_line(std::string_view options) {
  return fmt::format("tasks out of memory: \"trainyard retry 'my runs/x' :oom {}\" reserves more\n",
                     options);
}

std::string time_limit_line(std::string_view options) {
  return fmt::format(
      "tasks over their time limit: \"trainyard retry 'my runs/x' :timeout {}\" allows more time\n",
      options);
}

TEST(RetryAdvice, HasALineForEachCause) {
  EXPECT_EQ(
      advice_on({out_of_memory_row("a"), out_of_memory_row("b"), timed_out_row("c")}),
      "tasks out of memory: \"trainyard retry 'my runs/x' :oom --memory 1.2GB\" reserves more\n"
      "tasks over their time limit: \"trainyard retry 'my runs/x' :timeout --time-limit 4s\" "
      "allows more time\n");
}

TEST(RetryAdvice, ReservesAFifthMoreThanTheLargestOfItsTasksUsed) {
  journal::TaskRow small = out_of_memory_row("a");
  small.memory_requested = mb(100);
  small.memory_peak = mb(307);
  EXPECT_EQ(advice_on({small}), memory_line("--memory 370MB"));
  EXPECT_EQ(advice_on({out_of_memory_row("b"), small}), memory_line("--memory 1.2GB"));
}

TEST(RetryAdvice, NamesBothMemoriesOfATaskThatSharesAGpu) {
  journal::TaskRow row = out_of_memory_row("a");
  row.gpus = "0";
  EXPECT_EQ(advice_on({row}), memory_line("--memory 1.2GB")) << "a whole GPU has no more";
  row.gpu_memory_requested = gb(4);
  row.gpu_memory_peak = gb(3);
  EXPECT_EQ(advice_on({row}), memory_line("--memory 1.2GB --gpu-memory 6GB"));
}

TEST(RetryAdvice, DoublesTheTimeLimitThatAnEarlierRetryAllowed) {
  journal::TaskRow row = timed_out_row("a");
  row.ended = Instant{Duration{4010}};
  EXPECT_EQ(advice_on({row}), time_limit_line("--time-limit 8s"));
}

TEST(RetryAdvice, KeepsTheMemoryThatAnEarlierRetryReserved) {
  journal::TaskRow row = timed_out_row("a");
  row.memory_planned = mb(100);
  row.memory_requested = mb(400);
  row.gpu_memory_planned = gb(2);
  row.gpu_memory_requested = gb(3);
  EXPECT_EQ(advice_on({row}), time_limit_line("--memory 400MB --gpu-memory 3GB --time-limit 4s"));
}

TEST(RetryAdvice, KeepsTheTimeLimitThatAnEarlierRetryAllowed) {
  journal::TaskRow longer = failed_row("a", model::Failure::OutOfMemory, "");
  longer.time_limit = Duration{2'000};
  longer.retry_time_limit = Duration{20'000};
  const journal::TaskRow other = failed_row("b", model::Failure::OutOfMemory, "");
  EXPECT_EQ(advice_on({longer, other}),
            "tasks out of memory: \"trainyard retry 'my runs/x' :oom --memory 1.2GB --time-limit "
            "20s\" reserves more\n");
}

TEST(RetryAdvice, OffersNoMemoryToATaskThatReservesNoGpu) {
  EXPECT_EQ(
      advice_on({out_of_memory_row(
          "a", fmt::format("out of memory; {}: CUDA out of memory (retry 1 of 1)",
                           model::kReservesNoGpu))}),
      "tasks ran out of GPU memory but reserve no GPU: add 'gpu-memory: auto' to the job file, "
      "then \"trainyard run --resume 'my runs/x'\"\n");
}

TEST(RetryAdvice, NamesNoJobFileToARunOfACommand) {
  const RetryAdvice advice =
      looked_at({out_of_memory_row("a", fmt::format("{}: CUDA", model::kReservesNoGpu)),
                 failed_row("b", model::Failure::Exit, "")});
  const ResumableRun run{.directory = "runs/x", .is_of_command = true};
  EXPECT_EQ(advice.text(run),
            "tasks ran out of GPU memory but reserve no GPU: run the command again with "
            "'--gpu-memory auto'\n");
  EXPECT_THAT(advice.resume_text(run),
              ::testing::StartsWith("after a fix of the program or its files: "));
  EXPECT_EQ(
      advice.text({.directory = "runs/x", .is_of_command = true, .has_gpus = false}),
      "tasks ran out of GPU memory but reserve no GPU: trainyard found no GPU, and 'trainyard "
      "doctor' shows why\n");
  EXPECT_THAT(advice.resume_text({.directory = "runs/x", .has_gpus = false}),
              ::testing::StartsWith("after a fix: "));
}

TEST(RetryAdvice, IsEmptyForOtherCausesAndWhileATaskIsRetried) {
  journal::TaskRow retrying = out_of_memory_row("a");
  retrying.standing.verdict = model::Verdict::None;
  EXPECT_EQ(advice_on({failed_row("b", model::Failure::Exit, ""), retrying}), "");
}

TEST(RetryAdvice, HasOneLineForAllOtherCauses) {
  const journal::TaskRow exited = failed_row("a", model::Failure::Exit, "");
  const journal::TaskRow too_long = failed_row("b", model::Failure::Timeout, "");
  const std::string line =
      "after a fix: \"trainyard run --resume 'my runs/x'\" runs the failed tasks again\n";
  EXPECT_EQ(resume_advice_on({exited, exited}), line);
  EXPECT_EQ(resume_advice_on({exited, too_long}), line);
  EXPECT_EQ(resume_advice_on({too_long, out_of_memory_row("c")}), "");
  EXPECT_EQ(resume_advice_on({}), "");
}

TEST(RetryAdvice, SaysThatAResumedRunOfACommandHasTheSameCommand) {
  EXPECT_EQ(looked_at({failed_row("a", model::Failure::Exit, "")})
                .resume_text({.directory = "runs/x", .is_of_command = true}),
            "after a fix of the program or its files: 'trainyard run --resume runs/x' runs the "
            "failed tasks again, with the same command\n");
}

TEST(RetryAdvice, SaysThatAResumedRunDoesNotReadASubmittedJobFileAgain) {
  journal::TaskRow submitted = failed_row("a", model::Failure::Exit, "");
  submitted.batch = 2;
  const ResumableRun run{.directory = "runs/x"};
  EXPECT_EQ(looked_at({submitted}).resume_text(run),
            "after a fix of the program or its files: 'trainyard run --resume runs/x' runs the "
            "failed tasks again, as they were submitted\n");
  EXPECT_EQ(looked_at({submitted, failed_row("b", model::Failure::Exit, "")}).resume_text(run),
            "after a fix: 'trainyard run --resume runs/x' runs the failed tasks again\n");
}

TEST(RetryAdvice, SaysThatAResumedRunAlsoRunsSkippedTasks) {
  EXPECT_EQ(
      looked_at({failed_row("a", model::Failure::Exit, "")})
          .resume_text({.directory = "runs/x", .has_skipped = true}),
      "after a fix: 'trainyard run --resume runs/x' runs the failed and skipped tasks again\n");
}

TEST(RetryAdvice, NamesNoFixWhereASignalFromOutsideKilledAllTasks) {
  const journal::TaskRow killed = failed_row("a", model::Failure::Killed, "");
  const journal::TaskRow exited = failed_row("b", model::Failure::Exit, "");
  EXPECT_EQ(resume_advice_on({killed, timed_out_row("c")}),
            "\"trainyard run --resume 'my runs/x'\" runs the failed tasks again\n");
  EXPECT_EQ(resume_advice_on({killed, exited}),
            "after a fix: \"trainyard run --resume 'my runs/x'\" runs the failed tasks again\n");
}

TEST(RetryAdvice, NamesTheCommandThatResumesTheRunOnce) {
  EXPECT_EQ(
      resume_advice_on({failed_row("a", model::Failure::Exit, ""),
                        out_of_memory_row("b", fmt::format("{}: CUDA", model::kReservesNoGpu))}),
      "");
}

}  // namespace
}  // namespace trainyard::report
