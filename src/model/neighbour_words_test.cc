#include "model/neighbour_words.h"

#include <cstdint>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/bytes.h"
#include "base/time.h"
#include "model/promises.h"
#include "model/resources.h"

namespace trainyard::model {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;

constexpr std::int64_t kTen = 1'764'122'400 + 600;  // 02:10 of a day that begins two hours earlier.
constexpr std::int64_t kMidnight = 1'764'122'400 - 7'200;

Neighbour mona() {
  return {
      .user = 1001,
      .midnight_unix_s = kMidnight,
      .waits = Duration(60'000),
      .its = {
          .ticket = "1-a",
          .held = {
              .memory = gb(6),
              .cpus = cpus(3),
              .tasks = 1,
              .since_unix_s = kTen,
              .cards = {{.uuid = "GPU-a", .memory = gb(18), .tasks = 1, .since_unix_s = kTen}}}}};
}

Headroom room_with(const Neighbour& neighbour) {
  return {.memory_free = gb(1),
          .memory_held = gb(2),
          .holders = 1,
          .cpus = cpus(4),
          .gpus = {{.label = "0", .free = gb(2), .uuid = "GPU-a"}},
          .neighbours = {neighbour}};
}

TEST(NeighbourWords, WhoWaitsForAGpuReadsWhoHasReservedIt) {
  const Reason reason{.cause = Cause::Gpus, .needs = {.gpus = 1, .gpu_memory = gb(4)}};
  EXPECT_EQ(reason_text(reason, room_with(mona())),
            "needs 4 GB on its GPU, GPU 0 has the most free memory: 2 GB, another user's run (uid "
            "1001) has "
            "reserved 18 GB of GPU 0 since 02:10");
}

TEST(NeighbourWords, WhoWaitsForAWholeGpuReadsItToo) {
  const Reason reason{.cause = Cause::Gpus, .needs = {.gpus = 1}};
  Headroom room = room_with(mona());
  room.gpus.front().holders = 1;
  room.neighbours.front().its.held.cards.front().whole = true;
  EXPECT_EQ(reason_text(reason, room),
            "needs a whole GPU, 0 of 1 GPU without tasks, another user's run (uid "
            "1001) has reserved all of GPU 0 since 02:10");
}

TEST(NeighbourWords, WhoWaitsForMemoryOrCpusReadsItToo) {
  Headroom room = room_with(mona());
  EXPECT_EQ(reason_text({.cause = Cause::Memory, .needs = {.memory = gb(5)}}, room),
            "needs 5 GB of memory, 1 GB available, 2 GB reserved or used by 1 task, another user's "
            "run (uid 1001) "
            "has reserved 6 GB since 02:10");
  EXPECT_EQ(
      reason_text({.cause = Cause::Cpus, .needs = {.cpus = cpus(2)}}, room),
      "needs 2 CPUs: all 4 CPUs are reserved, 3 by another user's run (uid 1001) since 02:10");
  room.cpu_holders = 1;
  EXPECT_EQ(
      reason_text({.cause = Cause::Cpus, .needs = {.cpus = cpus(2)}}, room),
      "needs 2 CPUs: all 4 CPUs are reserved, 1 by 1 task of this run, 3 by another user's run "
      "(uid 1001) since 02:10");
}

TEST(NeighbourWords, WhoWaitsForCpusReadsHowManyEachRunHasReserved) {
  Headroom room = room_with(mona());
  room.cpus = cpus(8);
  room.cpu_holders = 2;
  const Reason reason{.cause = Cause::Cpus, .needs = {.cpus = cpus(2)}};
  EXPECT_THAT(reason_text(reason, room),
              HasSubstr("all 8 CPUs are reserved, 5 by 2 tasks of this"));
  room.cpus_free = cpus(1);
  EXPECT_THAT(
      reason_text(reason, room),
      HasSubstr("1 of 8 CPUs free, the rest reserved, 4 by 2 tasks of this run, 3 by another "
                "user's run (uid 1001) since 02:10"));
  room.cpu_holders = 0;
  EXPECT_THAT(reason_text(reason, room),
              HasSubstr("1 of 8 CPUs free, the rest reserved, 3 by another user's run"));
  room.cpu_holders = 2;
  room.neighbours.front().its.held.cpus = cpus(9);
  EXPECT_THAT(reason_text(reason, room),
              HasSubstr("the rest reserved, some by 2 tasks of this run, some by another user"));
  room.neighbours.front().its.cpus_total = cpus(16);
  EXPECT_THAT(reason_text(reason, room), HasSubstr("the rest reserved, 7 by 2 tasks of this run"))
      << "its CPUs may be others than ours";
  room.neighbours.resize(kNeighboursKept);
  EXPECT_THAT(reason_text(reason, room),
              HasSubstr("the rest reserved, some by 2 tasks of this run"))
      << "the journal may have left out others";
}

TEST(NeighbourWords, OfManyTheLargestAreNamedAndTheOthersCounted) {
  Headroom room = room_with(mona());
  for (const int size : {1, 9, 7}) {
    Neighbour ours{.is_ours = true, .its = {.run = static_cast<std::uint32_t>(size)}};
    ours.its.held.memory = gb(size);
    room.neighbours.push_back(ours);
  }
  EXPECT_EQ(memory_words_of_neighbours(room),
            ", your run 9 has reserved 9 GB, your run 7 has reserved 7 GB, and 2 more runs have "
            "reserved some of it");
  room.neighbours.pop_back();
  EXPECT_THAT(memory_words_of_neighbours(room),
              EndsWith(", and 1 more run has reserved some of it"));
}

TEST(NeighbourWords, WhatIsAboutToBeHeldCountsAsHeld) {
  Headroom room = room_with(mona());
  room.neighbours.front().its.claimed.cpus = cpus(1);
  EXPECT_EQ(cpu_words_of_neighbours(room), ", 4 by another user's run (uid 1001) since 02:10");
}

TEST(NeighbourWords, WhoGivesWayReadsToWhomAndSinceWhenThatOneWaits) {
  Headroom room = room_with(mona());
  room.neighbours.front().its.want = Want{.gpus = 1, .since_unix_s = kTen};
  const Reason gpus{.cause = Cause::GivesWay, .needs = {.gpus = 1}};
  EXPECT_EQ(reason_text(gpus, room),
            "gives way to another user's run (uid 1001), which has waited since 02:10 and has no "
            "larger share of the machine");
  const Reason cpu{.cause = Cause::GivesWay, .needs = {.cpus = cpus(1)}};
  EXPECT_EQ(reason_text(cpu, room),
            "gives way to another run that has no larger share of the machine")
      << "the one that waits for a GPU is not meant";
  room.neighbours.front().is_ours = true;
  room.neighbours.front().its.run = 46;
  EXPECT_EQ(reason_text(gpus, room),
            "gives way to your run 46, which has waited since 02:10 and has no larger share of "
            "the machine; to kill its tasks, type: trainyard kill 46 '*'");
}

TEST(NeighbourWords, ALimitOfGpusSaysUntilWhen) {
  const Reason reason{.cause = Cause::GpuLimit, .needs = {.gpus = 1}};
  Headroom room = room_with(mona());
  room.gpus_max = 2;
  EXPECT_EQ(reason_text(reason, room), "'limits.gpus' allows your runs 2 GPUs in total");
  room.gpus_max_until = "19:00";
  EXPECT_EQ(reason_text(reason, room),
            "'limits.gpus' allows your runs 2 GPUs in total until 19:00");
}

TEST(NeighbourWords, ADrainedGpuIsSaidToBe) {
  const Reason reason{.cause = Cause::Gpus, .needs = {.gpus = 1, .gpu_memory = gb(1)}};
  Headroom room = room_with(mona());
  room.neighbours.clear();
  room.gpus.front().drained = true;
  EXPECT_EQ(reason_text(reason, room),
            "needs 1 GB on its GPU, GPU 0 is drained ('trainyard drain')");
  EXPECT_EQ(brief_reason_text(reason, room),
            "needs 1 GB on its GPU, and GPUs with enough memory are drained");
}

}  // namespace
}  // namespace trainyard::model
