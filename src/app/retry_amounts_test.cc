// The amounts of a retry that are wrong, have no effect, or are more than the machine has.
#include "app/retry_amounts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "app/test_run_facts.h"
#include "job/test_job.h"

namespace trainyard::app {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// The mistakes in the amounts of a request.
std::vector<std::string> wrong_amounts(const RetryRequest& request) {
  const Result<RequestedAmounts> amounts = read_amounts(request);
  if (amounts) return {};
  std::vector<std::string> all{amounts.error().message};
  all.insert(all.end(), amounts.error().others.begin(), amounts.error().others.end());
  return all;
}

/// Three tasks that reserve 10, 20 and 30 MB, the last with a GPU.
job::Jobs three_jobs() {
  model::Capacity machine = job::small_machine();
  machine.gpus = {{.number = 0, .name = "A", .memory = gb(24)}};
  return job::Jobs(job::job_of(
      "groups: [{name: g, tasks: [{id: a, memory: 10MB, command: x}, {id: b, memory: 20MB, "
      "command: x}, {id: c, memory: 30MB, gpu-memory: 3GB, command: x}]}]",
      job::in_job_directory(), machine));
}

std::vector<journal::TaskRow> three_tasks() {
  std::vector<journal::TaskRow> rows{test_task("g", "a"), test_task("g", "b"), test_task("g", "c")};
  rows[2].gpus = "0";
  rows[2].gpu_memory_requested = gb(3);
  return rows;
}

Result<RequestedAmounts> fitted_three(const RetryRequest& request) {
  return fitted(read_amounts(request).value(), three_tasks(), three_jobs());
}

TEST(RetryAmounts, AreReadWithTheirUnits) {
  const auto amounts = read_amounts({.memory = "20GB", .gpu_memory = "3GB", .time_limit = "2h"});
  ASSERT_TRUE(amounts);
  EXPECT_EQ(amounts->with, (wire::Retry{.memory_bytes = 20'000'000'000,
                                        .gpu_memory_bytes = 3'000'000'000,
                                        .time_limit_ms = 7'200'000}));
  EXPECT_EQ(with_text(amounts->with),
            " with at least 20 GB of memory, at least 3 GB on each GPU, a time limit of 2h");
  EXPECT_EQ(with_text({}), "");
}

TEST(RetryAmounts, AreAllNamedThatAreWrong) {
  EXPECT_THAT(
      wrong_amounts({.memory = "0", .time_limit = "0s"}),
      ElementsAre("--memory: '0' must be more than 0", "--time-limit: '0s' must be more than 0"));
  EXPECT_THAT(wrong_amounts({.memory = "much", .gpu_memory = "0GB", .time_limit = "soon"}),
              ElementsAre(HasSubstr("--memory: 'much'"), "--gpu-memory: '0GB' must be more than 0",
                          HasSubstr("--time-limit: 'soon'")));
  EXPECT_THAT(wrong_amounts({}), IsEmpty());
}

TEST(RetryAmounts, AreTypedAgainAsTheyWereTyped) {
  EXPECT_EQ(typed_amounts({.memory = "20 GB", .time_limit = "2h"}),
            " --memory '20 GB' --time-limit 2h");
  EXPECT_EQ(typed_amounts({}), "");
}

TEST(RetryAmounts, OfAGpuAreRefusedIfNoTaskUsesOne) {
  const auto amounts = read_amounts({.gpu_memory = "4GB"}).value();
  const std::string cure = "; leave it out, or reserve more of the machine's memory with --memory";
  std::vector<journal::TaskRow> rows = three_tasks();
  rows.pop_back();
  EXPECT_EQ(note_unused_gpu_memory(amounts, rows).error().message,
            "--gpu-memory: g/a and 1 more use no GPU" + cure);
  rows.pop_back();
  EXPECT_EQ(note_unused_gpu_memory(amounts, rows).error().message,
            "--gpu-memory: g/a uses no GPU" + cure);
}

TEST(RetryAmounts, OfAGpuAreNotedIfSomeTasksUseNone) {
  const auto amounts = read_amounts({.gpu_memory = "4GB"}).value();
  EXPECT_THAT(note_unused_gpu_memory(amounts, three_tasks())->notes,
              ElementsAre("--gpu-memory: g/a and 1 more use no GPU, and are retried without one"));
  std::vector<journal::TaskRow> rows = three_tasks();
  rows[0].attempt = 0;
  EXPECT_THAT(note_unused_gpu_memory(amounts, rows)->notes,
              ElementsAre("--gpu-memory: g/b uses no GPU, and is retried without one"))
      << "a task without an attempt may yet use one";
}

TEST(RetryAmounts, AreNotedForTasksThatRequestMore) {
  const auto some = fitted_three({.memory = "15MB"});
  ASSERT_TRUE(some);
  EXPECT_THAT(
      some->notes,
      ElementsAre(
          "--memory: g/b (20 MB) and 1 more request more than 15 MB and keep their requests"));
  EXPECT_EQ(some->with.memory_bytes, 15'000'000);
  const auto one = fitted_three({.gpu_memory = "2GB"});
  ASSERT_TRUE(one);
  EXPECT_THAT(
      one->notes,
      ElementsAre("--gpu-memory: g/c (3 GB) requests more than 2 GB and keeps its request"));
}

TEST(RetryAmounts, AreDroppedIfAllTasksRequestMore) {
  const auto amounts = fitted_three({.memory = "5MB", .time_limit = "1s"});
  ASSERT_TRUE(amounts);
  EXPECT_EQ(amounts->with, (wire::Retry{.time_limit_ms = 1000}));
}

TEST(RetryAmounts, AreRefusedWithTheNumberOfTasksForEachReason) {
  const auto amounts = fitted_three({.memory = "900TB"});
  ASSERT_FALSE(amounts);
  EXPECT_THAT(amounts.error().message,
              HasSubstr("g/a and 2 more tasks can never run here: each needs 900 TB of memory"));
  EXPECT_THAT(amounts.error().others, IsEmpty());
  EXPECT_THAT(fitted_three({.gpu_memory = "28GB"}).error().message,
              HasSubstr("g/c can never run here: needs 28 GB of memory on a GPU"));
}

TEST(NeverRunningTasks, AreNamedForTwentyReasons) {
  NeverRunningTasks never;
  Error error;
  never.add_to(error);
  EXPECT_EQ(error.message, "");
  for (int i = 1; i <= 22; ++i) never.add(test_task("g", std::to_string(i)), std::to_string(i));
  never.add(test_task("g", "again"), "1");
  never.add_to(error);
  EXPECT_EQ(error.message, "g/1 and 1 more task can never run here: 1");
  ASSERT_EQ(error.others.size(), 20);
  EXPECT_EQ(error.others[18], "g/20 can never run here: 20");
  EXPECT_EQ(error.others[19], "and 2 more");
}

}  // namespace
}  // namespace trainyard::app
