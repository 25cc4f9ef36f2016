// Why a task waits, in words, with the numbers of the last reading.
#include <string>

#include <gtest/gtest.h>

#include "base/bytes.h"
#include "base/time.h"
#include "model/ids.h"
#include "model/resources.h"
#include "model/waiting.h"

namespace trainyard::model {
namespace {

Headroom two_cards() {
  return {.gpus = {{.label = "0", .holders = 1, .free = gb(1), .of_others = gb(11)},
                   {.label = "1", .free = gb(5), .of_others = mb(200)}}};
}

std::string gpu_words(const Request& needs, const Headroom& room, Cause cause = Cause::Gpus) {
  return reason_text({.cause = cause, .needs = needs}, room);
}

TEST(ReasonText, SaysNothingWhereNobodyWaits) { EXPECT_EQ(reason_text({}, {}), ""); }

TEST(ReasonText, SaysWhoIsTriedFirstAndHowLongItHasLived) {
  Reason reason{.cause = Cause::TriedFirst, .first = TaskIndex{3}};
  Headroom room{.at = Instant{Duration{90'000}}, .try_first_time = Duration{120'000}};
  EXPECT_EQ(reason_text(reason, room, "lr=0.1"),
            "waits for lr=0.1, which runs first ('try-first')");
  reason.first_since = Instant{Duration{10'000}};
  EXPECT_EQ(reason_text(reason, room, "lr=0.1"),
            "waits for lr=0.1, which runs first ('try-first'): 1m20s of 2m");
  EXPECT_EQ(brief_reason_text(reason, room), "waits for a task, which runs first ('try-first')");
  room.at = Instant{Duration{900'000}};
  EXPECT_EQ(reason_text(reason, room, "lr=0.1"),
            "waits for lr=0.1, which runs first ('try-first'): 2m of 2m")
      << "the reading may be a moment late";
}

TEST(ReasonText, SaysWhatIsNeededAndWhoHasIt) {
  Headroom room{.memory_free = gb(4), .memory_held = gb(2), .holders = 1};
  const Reason memory{.cause = Cause::Memory, .needs = {.memory = gb(5)}};
  EXPECT_EQ(reason_text(memory, room),
            "needs 5 GB of memory, 4 GB available, 2 GB reserved or used by 1 task");
  room = {.memory_free = Bytes{} - gb(1),
          .memory_held = gb(3),
          .memory_of_others = gb(7),
          .holders = 2};
  EXPECT_EQ(reason_text(memory, room),
            "needs 5 GB of memory, 0 B available, 3 GB reserved or used by 2 tasks, other "
            "processes use 7 GB");
  EXPECT_EQ(reason_text({.cause = Cause::Cpus, .needs = {.cpus = cpus(1)}},
                        {.cpus = cpus(4), .cpus_free = {500}, .cpu_holders = 2}),
            "needs 1 CPU: 0.5 of 4 CPUs free, the rest reserved by 2 tasks");
}

TEST(ReasonText, CountsPartsOfACpuOfASingleOne) {
  EXPECT_EQ(reason_text({.cause = Cause::Cpus, .needs = {.cpus = {750}}},
                        {.cpus = cpus(1), .cpus_free = {500}, .cpu_holders = 1}),
            "needs 0.75 CPUs: 0.5 of 1 CPU free, the rest reserved by 1 task");
}

TEST(ReasonText, SaysWhichTasksHaveReservedAllCpus) {
  const auto text = [](int of_machine, int holders) {
    return reason_text({.cause = Cause::Cpus, .needs = {.cpus = cpus(1)}},
                       {.cpus = cpus(of_machine), .cpus_free = cpus(0), .cpu_holders = holders});
  };
  EXPECT_EQ(text(1, 1), "needs 1 CPU: the only CPU is reserved by 1 task");
  EXPECT_EQ(text(2, 2), "needs 1 CPU: both CPUs are reserved by 2 tasks");
  EXPECT_EQ(text(8, 1), "needs 1 CPU: all 8 CPUs are reserved by 1 task");
}

TEST(ReasonText, NamesTheMemoryThatIsKeptFreeAndTheSettingThatKeepsIt) {
  const Reason memory{.cause = Cause::Memory, .needs = {.memory = gb(20)}};
  EXPECT_EQ(reason_text(memory, {.memory_free = gb(18),
                                 .memory_of_others = gb(4),
                                 .memory_kept_free = mb(2'500),
                                 .memory_kept_by = "remain-limit.memory"}),
            "needs 20 GB of memory, 18 GB available (2.5 GB kept free: remain-limit.memory), other "
            "processes use 4 GB");
  EXPECT_EQ(reason_text(memory, {.memory_free = gb(20) - Bytes{1}, .memory_of_others = mb(40)}),
            "needs 20000000000 bytes of memory, 19999999999 bytes available, other processes use "
            "40 MB")
      << "20 GB in either place would look like enough";
}

TEST(ReasonText, SaysWhatTheMachineIsShortOf) {
  EXPECT_EQ(reason_text({.cause = Cause::StartsRefused, .refusal = "no inodes left"}, {}),
            "cannot start tasks: no inodes left");
}

TEST(ReasonText, SaysHowBusyOthersKeepTheCpus) {
  EXPECT_EQ(
      reason_text({.cause = Cause::OthersUseCpu},
                  {.cpu_used_by_others = 0.93, .cpu_utilization_max = 0.8}),
      "other processes use 93 % of the CPUs: from 80 %, a task without a GPU starts only when no "
      "other runs");
  EXPECT_EQ(reason_text({.cause = Cause::OthersUseCpu, .needs = {.cpus = cpus(1)}},
                        {.cpus = cpus(2),
                         .cpus_free = cpus(0),
                         .cpu_holders = 2,
                         .cpu_used_by_others = 0.93,
                         .cpu_utilization_max = 0.8}),
            "needs 1 CPU: both CPUs are reserved by 2 tasks; other processes use 93 % of the "
            "CPUs: from 80 %, a task without a GPU starts only when no other runs");
}

TEST(ReasonText, SaysWhichLimitItIs) {
  EXPECT_EQ(reason_text({.cause = Cause::Processes}, {.processes_max = 1}),
            "max-process allows 1 task at once");
  EXPECT_EQ(reason_text({.cause = Cause::Processes},
                        {.processes_max = 448, .processes_reason = "512 open files"}),
            "the machine allows 448 tasks at once (512 open files)");
  EXPECT_EQ(reason_text({.cause = Cause::Parallel, .parallel_max = 2}, {}),
            "max-parallel allows 2 tasks of its group at once");
  EXPECT_EQ(reason_text({.cause = Cause::Ahead}, {.ahead = 3, .waiting_max = 3}),
            "max-waiting allows 3 tasks to load ahead");
  EXPECT_EQ(reason_text({.cause = Cause::Ahead}, {.ahead = 1}), "1 task has loaded ahead already");
}

TEST(ReasonText, SaysOfAGpuWhatOthersHaveOfThatOne) {
  EXPECT_EQ(gpu_words({.gpus = 1, .gpu_memory = gb(9)}, two_cards()),
            "needs 9 GB on its GPU, GPU 1 has the most free memory: 5 GB");
  EXPECT_EQ(gpu_words({.gpus = 1, .gpu_memory = gb(9), .gpu = GpuIndex{0}}, two_cards()),
            "needs 9 GB on its GPU, GPU 0 has the most free memory: 1 GB, other processes use 11 "
            "GB of it");
  Headroom room = two_cards();
  EXPECT_EQ(gpu_words({.gpus = 2, .gpu_memory = gb(9)}, room),
            "needs 9 GB on each of 2 GPUs, GPU 0 has the most free memory: 1 GB, other processes "
            "use 11 GB of it")
      << "it is the second one that is in the way";
  room.gpus[0].whole = room.gpus[1].whole = true;
  EXPECT_EQ(gpu_words({.gpus = 2, .gpu_memory = gb(9)}, room),
            "needs 9 GB on each of 2 GPUs, another task has reserved all of GPU 0");
}

TEST(ReasonText, CountsTheGpusThatNobodyHolds) {
  Headroom room = two_cards();
  EXPECT_EQ(gpu_words({.gpus = 1}, room), "needs a whole GPU, 1 of 2 GPUs without tasks");
  room.gpus[0].holders = 0;
  EXPECT_EQ(gpu_words({.gpus = 2}, room),
            "needs 2 whole GPUs, 2 of 2 GPUs without tasks, other processes use 11 GB of GPU 0");
}

TEST(ReasonText, SaysForWhomAGpuIsLeftAlone) {
  Headroom room = two_cards();
  room.gpus[0].holders = 0;
  room.gpus[0].avoided_for = 1001;
  const std::string words = ", user 1001 is using GPU 0 (other processes use 11 GB of it)";
  EXPECT_EQ(gpu_words({.gpus = 2}, room), "needs 2 whole GPUs, 2 of 2 GPUs without tasks" + words);
  EXPECT_EQ(gpu_words({.gpus = 1, .gpu_memory = gb(6)}, room),
            "needs 6 GB on its GPU, GPU 1 has the most free memory: 5 GB" + words);
  room.gpus[1].avoided_for = 0;
  EXPECT_EQ(gpu_words({.gpus = 1, .gpu_memory = gb(6)}, room),
            "needs 6 GB on its GPU, GPU 1 has the most free memory: 5 GB" + words +
                ", user 0 is using GPU 1 (other processes use 200 MB of it)");
}

TEST(ReasonText, SaysOfAGpuWithRoomWhoMayShareIt) {
  Headroom room = two_cards();
  room.gpus[1].tasks = 1;
  Request needs{.gpus = 1, .gpu_memory = gb(4), .sharing = {.max_per_gpu = 1}};
  EXPECT_EQ(gpu_words(needs, room),
            "needs 4 GB on its GPU, GPU 1 has enough memory, but 1 task is on it and 'max-per-gpu' "
            "allows no more");
  EXPECT_EQ(reason_text({.cause = Cause::Gpus, .needs = needs, .per_gpu_measured = true}, room),
            "needs 4 GB on its GPU, GPU 1 has enough memory, but running more than 1 task per GPU "
            "was measured to do less work in total");
  room.gpus[1].tasks_max = 1;
  needs.sharing = {.max_per_gpu = 2};
  EXPECT_EQ(gpu_words(needs, room),
            "needs 4 GB on its GPU, GPU 1 has enough memory, but 1 task is on it, which allows at "
            "most 1");
  room.gpus[1].tasks_max = 0;
  room.gpus[1].utilization = 700;
  needs.sharing = {.utilization = 400};
  EXPECT_EQ(gpu_words(needs, room),
            "needs 4 GB on its GPU, GPU 1 has enough memory, but its tasks use 70 % of it and this "
            "one 40 %: 'utilization-limit.gpu' is 100 %");
}

TEST(ReasonText, SaysNeverThatOneNeedsAGpuOfItsOwnOfWhichOnlyTheMemoryIsNotKnown) {
  Reason reason{.cause = Cause::Gpus, .needs = {.gpus = 1}, .own_until_known = true};
  EXPECT_EQ(reason_text(reason, two_cards()),
            "needs a whole GPU until a task of its kind has ended and its GPU memory is known, "
            "1 of 2 GPUs without tasks");
  reason.gpu_memory_seen = mb(9600);
  EXPECT_EQ(reason_text(reason, two_cards()),
            "needs a whole GPU until a task of its kind has ended and its GPU memory is known "
            "(9.6 GB seen so far), 1 of 2 GPUs without tasks");
  EXPECT_EQ(gpu_words({.gpus = 1, .largest = true}, two_cards()),
            "needs a whole GPU of the largest size for its last retry, 1 of 2 GPUs without tasks");
}

TEST(ReasonText, SaysNothingOfGpusThatWouldNotDoWhateverOthersDid) {
  Headroom room = two_cards();
  room.gpus[0].avoided_for = 1001;
  room.gpus[0].lingering = gb(2);
  EXPECT_EQ(
      gpu_words({.gpus = 1, .gpu_memory = gb(9), .gpu = GpuIndex{1}}, room, Cause::GpusLinger),
      "needs 9 GB on its GPU, GPU 1 has the most free memory: 5 GB");
  EXPECT_EQ(gpu_words({.gpus = 1}, room), "needs a whole GPU, 1 of 2 GPUs without tasks")
      << "a task holds the one that is left to another user";
}

TEST(ReasonText, SaysWhatTheDriverDoesNotShow) {
  Headroom room = two_cards();
  room.gpus[0].present = false;
  room.gpus[1].lingering = gb(2);
  EXPECT_EQ(gpu_words({.gpus = 1, .gpu_memory = gb(9)}, room, Cause::GpusGone),
            "needs 9 GB on its GPU, GPU 1 has the most free memory: 5 GB, GPU 0 does not answer "
            "(or is avoided after it dropped out)");
  EXPECT_EQ(
      gpu_words({.gpus = 1, .gpu_memory = gb(9)}, room, Cause::GpusLinger),
      "needs 9 GB on its GPU, GPU 1 has the most free memory: 5 GB, the driver does not report 2 "
      "GB of ended tasks as free yet, GPU 0 does not answer (or is avoided after it dropped out)");
}

TEST(ReasonText, SaysWhichGpusATaskAvoids) {
  Headroom room = two_cards();
  room.gpus[1].present = false;
  const Request request{.gpus = 1, .gpu_memory = gb(4), .avoids = {{.gpu = {1}}}};
  EXPECT_EQ(gpu_words(request, room),
            "needs 4 GB on its GPU, GPU 0 has the most free memory: 1 GB, other processes use 11 "
            "GB of it, GPU 1 is avoided because the task was lost on it");
  room.gpus[1].last_resort = true;
  EXPECT_EQ(gpu_words(request, room),
            "needs 4 GB on its GPU, GPU 0 has the most free memory: 1 GB, other processes use 11 "
            "GB of it, GPU 1 is avoided after it dropped out");
}

TEST(ReasonText, SaysHowMuchOfTheDiskIsFreeAndHowMuchOfThatIsPromised) {
  const Reason reason{.cause = Cause::Disk, .needs = {.disk = gb(20)}};
  Headroom room{.disk_free = gb(12)};
  EXPECT_EQ(reason_text(reason, room), "needs 20 GB of disk, 12 GB free");
  EXPECT_EQ(brief_reason_text(reason, room), "needs 20 GB of disk");
  room.disk_promised = gb(5);
  room.disk_holders = 1;
  EXPECT_EQ(reason_text(reason, room),
            "needs 20 GB of disk, 12 GB free, 5 GB of it reserved by 1 task");
  room.disk_holders = 2;
  EXPECT_EQ(reason_text(reason, room),
            "needs 20 GB of disk, 12 GB free, 5 GB of it reserved by 2 tasks");
}

TEST(Cause, ComesBackFromItsWord) {
  for (int number = 0; number <= static_cast<int>(Cause::GpuLimit); ++number) {
    const auto cause = static_cast<Cause>(number);
    EXPECT_EQ(cause_from(to_text(cause)), cause) << number;
    EXPECT_EQ(to_text(cause).empty(), cause == Cause::None) << number;
  }
  EXPECT_EQ(cause_from("nonsense"), Cause::None);
}

}  // namespace
}  // namespace trainyard::model
