#include "job/raised_numbers.h"

#include <cstdint>
#include <string_view>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "job/job.h"
#include "job/test_job.h"
#include "model/resources.h"

namespace trainyard::job {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(WrittenAndTaken, ComparesEachNumberWithThoseThatSayIt) {
  WrittenAndTaken seen;
  seen.see("g", "memory", gb(5), gb(4));
  seen.see("g", "memory", gb(12), gb(11));
  EXPECT_THAT(seen.notes(), IsEmpty()) << "what the big ones took is nothing to the small ones";
  seen.see("g", "memory", gb(5), gb(6));
  seen.see("g", "gpu-memory", gb(8), gb(3));
  seen.see("g", "gpu-memory", gb(8), gb(2));
  seen.see("g", "gpu-memory", gb(9), Bytes{});
  EXPECT_THAT(seen.notes(),
              ElementsAre("group 'g': gpu-memory is set to 8 GB; tasks used at most 3 GB last time",
                          "group 'g': memory is set to 5 GB; tasks used at most 6 GB last time"));
}

TEST(WrittenAndTaken, SaysOfANumberThatWasRaisedWhatIsReserved) {
  WrittenAndTaken seen;
  seen.see("g", "memory", gb(5), gb(8));
  seen.raised("g", "memory", gb(5), gb(6));
  EXPECT_THAT(seen.notes(), ElementsAre("group 'g': memory is set to 5 GB; tasks used at "
                                        "most 8 GB last time; reserving 6 GB"));
  seen.raised("g", "memory", gb(5), gb(7));
  EXPECT_THAT(seen.notes(), ElementsAre("group 'g': memory is set to 5 GB; tasks used at "
                                        "most 8 GB last time; reserving 6 GB to 7 GB"));
}

TEST(WrittenAndTaken, ReportsDurationsWithWhatIsExpectedInstead) {
  WrittenAndTaken seen;
  seen.see("g", Duration{3'600'000}, Duration{60'000});
  seen.see("h", Duration{3'600'000}, Duration{90'000});
  seen.see("h", Duration{3'600'000}, Duration{60'000});
  EXPECT_THAT(seen.notes(), ElementsAre("group 'g': duration is set to 1h; tasks took 1m last "
                                        "time; expecting that",
                                        "group 'h': duration is set to 1h; tasks took 1m to 1m30s "
                                        "last time; expecting that"));
}

TEST(WrittenAndTaken, TellsOnlyAFewOfAGroup) {
  WrittenAndTaken seen;
  for (int n = 1; n <= 5; ++n) seen.see("g", "memory", gb(n), gb(n + 1));
  ASSERT_EQ(seen.notes().size(), WrittenAndTaken::kNotesMax + 1);
  EXPECT_EQ(seen.notes().back(), "group 'g': the same holds for 2 other values of memory");
}

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
