// A matrix stays small: the memory of a hundred thousand tasks, counted in bytes.
#include <cstdint>
#include <iostream>
#include <string_view>

#include <malloc.h>

#include <gtest/gtest.h>

#include "job/job.h"
#include "job/test_job.h"
#include "model/ids.h"

namespace trainyard::job {
namespace {

std::int64_t bytes_in_use() {
  const struct mallinfo2 heap = ::mallinfo2();
  return static_cast<std::int64_t>(heap.uordblks + heap.hblkhd);
}

/// The memory that a job uses for each of its tasks.
std::int64_t bytes_per_task(std::string_view text) {
  const std::int64_t before = bytes_in_use();
  const Job job = job_of(text);
  const auto tasks = static_cast<std::int64_t>(job.plan().tasks.size());
  EXPECT_GE(tasks, 99'000);
  const std::int64_t each = (bytes_in_use() - before) / tasks;
  std::cout << each << " bytes a task\n";
  return each;
}

TEST(JobSize, IsAFewBytesForEachTaskOfAMatrix) {
  const std::int64_t each = bytes_per_task(
      "groups:\n"
      "- name: train\n"
      "  matrix: {lr: [1e-2, 1e-3, 1e-4, 1e-5], hidden: [32, 64, 128, 256, 512], seed: 0..4999}\n"
      "  memory: '{hidden}MB'\n"
      "  tasks: [{command: 'python train.py --lr {lr} --hidden {hidden} --seed {seed}'}]\n");
#if !defined(__SANITIZE_ADDRESS__)
  EXPECT_LE(each, 24);
#endif
}

TEST(JobSize, StaysSmallWithIncludeAndExclude) {
  const std::int64_t each = bytes_per_task(
      "groups:\n"
      "- name: train\n"
      "  matrix:\n"
      "    lr: [1e-2, 1e-3, 1e-4, 1e-5]\n"
      "    seed: 0..24999\n"
      "    exclude: [{lr: 1e-2, seed: 5}]\n"
      "    include: [{lr: 1e-3, note: fast}, {note: none}, {lr: 1, seed: 1}]\n"
      "  tasks: [{command: 'python train.py --lr {lr} --seed {seed}'}]\n");
#if !defined(__SANITIZE_ADDRESS__)
  EXPECT_LE(each, 32);
#endif
}

TEST(JobSize, FindsTheLastOfAHundredThousand) {
  const Job job = job_of("groups: [{name: g, matrix: {a: 0..99999}, tasks: [{command: x}]}]");
  EXPECT_EQ(job.task_id({99'999}), "a=99999");
  EXPECT_EQ(job.find("g", "a=99999"), model::TaskIndex{99'999});
}

}  // namespace
}  // namespace trainyard::job
