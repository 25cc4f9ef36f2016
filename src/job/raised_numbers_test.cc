// The memory in the job file counts until tasks of that kind have used more.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/bytes.h"
#include "base/time.h"
#include "job/job.h"
#include "job/learned.h"
#include "job/test_job.h"
#include "model/ids.h"
#include "model/resources.h"
#include "model/terms.h"

namespace trainyard::job {
namespace {

using ::testing::Contains;

/// A job of which runs have taught this, on a machine with a GPU of 8 GB, and others maybe.
Job taught(std::string_view text, const Learned& learned, std::vector<model::Gpu> more = {}) {
  more.insert(more.begin(), {.number = 0, .name = "NVIDIA H100", .memory = gb(8)});
  return taught_job(text, learned.to_json(), more);
}

LearnedTask that_took_of_gpu(Bytes memory, Bytes gpu_memory) {
  return {.memory = memory, .gpu_memory = gpu_memory, .train = Duration{60'000}};
}

model::Request reserved_for(const Job& job, std::uint32_t task) {
  return job.plan().shape_of(model::TaskIndex{task}).terms.request;
}

constexpr std::string_view kSmallAndLarge =
    "groups:\n"
    "- name: g\n"
    "  memory: 2GB\n"
    "  tasks:\n"
    "  - {id: a, gpu-memory: 1GB, command: x}\n"
    "  - {id: b, gpu-memory: 2GB, command: x}\n"
    "  - {id: new, gpu-memory: 2GB, command: x}\n";

TEST(RaisedNumbers, AreWhatTasksThatSayTheSameTookTheLastTime) {
  Learned learned;
  learned.add("g", "a", that_took_of_gpu(gb(1), gb(3)));
  learned.add("g", "b", that_took_of_gpu(gb(3), gb(5)));
  const Job job = taught(kSmallAndLarge, learned);
  EXPECT_EQ(reserved_for(job, 0).gpu_memory, gb(3))
      << "no margin, and not what the large ones took";
  EXPECT_EQ(reserved_for(job, 0).memory, gb(2)) << "never made smaller";
  EXPECT_EQ(reserved_for(job, 1).gpu_memory, gb(5));
  EXPECT_EQ(reserved_for(job, 1).memory, gb(3));
  EXPECT_EQ(reserved_for(job, 2).gpu_memory, gb(5)) << "of its kind, though it has never run";
  EXPECT_EQ(job.learned_numbers({1}).gpu_memory.value_or(Expected<Bytes>{}).value, gb(5));
  EXPECT_THAT(job.notes(), Contains("group 'g': gpu-memory is set to 1 GB; tasks used at "
                                    "most 3 GB last time; reserving 3 GB"));
}

TEST(RaisedNumbers, LeaveAHardLimitAndWhatNoCardHereHas) {
  Learned learned;
  learned.add("g", "a", that_took_of_gpu(gb(3), gb(3)));
  const std::string hard =
      "groups:\n- {name: g, memory: 2GB, gpu-memory: 1GB, memory-limit: hard, "
      "gpu-memory-limit: hard, tasks: [{id: a, command: x}]}\n";
  EXPECT_EQ(reserved_for(taught(hard, learned), 0).memory, gb(2));
  EXPECT_EQ(reserved_for(taught(hard, learned), 0).gpu_memory, gb(1));
  Learned of_a_large_card;
  of_a_large_card.add("g", "a", that_took_of_gpu(gb(1), gb(40)));
  EXPECT_EQ(reserved_for(taught(kSmallAndLarge, of_a_large_card), 0).gpu_memory, gb(1));
}

TEST(RaisedNumbers, CountOnACardThatHasNotAnsweredYetButForTasksOfTwoPhases) {
  Learned learned;
  learned.add("g", "a", that_took_of_gpu(gb(1), gb(40)));
  const std::vector<model::Gpu> silent{{.number = 1, .late = true}};
  for (const std::string written : {"1GB", "at least 1GB"}) {
    const std::string one = "groups:\n- name: g\n  memory: 2GB\n  gpu-memory: " + written +
                            "\n  tasks: [{id: a, command: x}]\n";
    EXPECT_GE(reserved_for(taught(one, learned, silent), 0).gpu_memory, gb(40)) << written;
    EXPECT_EQ(reserved_for(taught(one + "  two-phase: true\n", learned, silent), 0).gpu_memory,
              gb(1))
        << written;
  }
}

TEST(RaisedNumbers, AreLeftAloneWhereLearningIsSwitchedOff) {
  Learned learned;
  learned.add("g", "a", that_took_of_gpu(gb(3), gb(3)));
  const std::string off =
      "config: {scheduler: {auto-adjust: false}}\n" + std::string(kSmallAndLarge);
  EXPECT_EQ(reserved_for(taught(off, learned), 0).gpu_memory, gb(1));
}

TEST(RaisedNumbers, AreEnoughForNearlyAllAndNotForTheOddOne) {
  Learned learned;
  for (int i = 0; i < 40; ++i) {
    learned.add("g", "i=" + std::to_string(i), that_took_of_gpu(gb(1), i == 7 ? gb(6) : gb(3)));
  }
  const Job job =
      taught("groups:\n- {name: g, gpu-memory: 1GB, matrix: {i: 0..39}, tasks: [{command: x}]}\n",
             learned);
  EXPECT_EQ(job.plan().shapes.size(), 1U) << "they stay of one kind";
  EXPECT_EQ(reserved_for(job, 7).gpu_memory, gb(3));
  EXPECT_THAT(job.notes(), Contains("group 'g': gpu-memory is set to 1 GB; tasks used at most 6 GB "
                                    "last time; reserving 3 GB"));
}

}  // namespace
}  // namespace trainyard::job
