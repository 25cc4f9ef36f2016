// The reasons why tasks wait are read back as they were written.
#include "journal/waiting_table.h"

#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/bytes.h"
#include "base/time.h"
#include "journal/journal.h"
#include "journal/test_run.h"
#include "model/resources.h"

namespace trainyard::journal {
namespace {

/// Every number another one, so that none is taken for its neighbour.
model::Reason told_reason() {
  return {.cause = model::Cause::Gpus,
          .needs = {.memory = gb(1),
                    .cpus = model::cpus(2),
                    .gpus = 3,
                    .gpu_memory = gb(4),
                    .gpu = model::GpuIndex{5},
                    .largest = true,
                    .sharing = {.utilization = 600, .max_per_gpu = 7},
                    .disk = gb(12),
                    .where = {.machine = "lab*", .gpu = "H?00"},
                    .avoids = {{.machine = {13}, .gpu = {0}}, {.machine = {13}, .gpu = {2}}}},
          .parallel_max = 8,
          .groups = "'train'",
          .refusal = "no space left on device",
          .first_since = at(9),
          .not_before = at(10),
          .machine = {13},
          .per_gpu_measured = true,
          .own_until_known = true,
          .gpu_memory_seen = gb(11)};
}

model::Headroom told_room() {
  return {.at = at(1),
          .memory_free = gb(2),
          .memory_held = gb(3),
          .memory_of_others = gb(4),
          .memory_kept_free = gb(34),
          .memory_kept_by = "remain-limit.memory",
          .holders = 5,
          .cpus = model::cpus(6),
          .cpus_free = model::cpus(7),
          .cpu_holders = 8,
          .cpu_used_by_others = 0.5,
          .cpu_utilization_max = 0.75,
          .gpu_utilization_max = 900,
          .processes_max = 10,
          .processes_reason = "11 open files",
          .ahead = 12,
          .waiting_max = 13,
          .try_first_time = Duration(14),
          .gpus = {{.label = "0",
                    .whole = true,
                    .holders = 15,
                    .tasks = 16,
                    .utilization = 170,
                    .tasks_max = 18,
                    .free = gb(19),
                    .of_others = gb(20),
                    .lingering = gb(21),
                    .avoided_for = 22,
                    .uuid = "GPU-23",
                    .drained = true,
                    .name = "NVIDIA H200"},
                   {.label = "1:0", .present = false}},
          .neighbours = {{.user = 24,
                          .user_name = "mona",
                          .midnight_unix_s = 25,
                          .waits = Duration(26),
                          .its = {.ticket = "27-a", .held = {.memory = gb(28), .tasks = 29}}}},
          .gpus_max = 30,
          .gpus_max_until = "19:00",
          .disk_free = gb(31),
          .disk_promised = gb(32),
          .disk_holders = 33};
}

/// The room of the machine that a reason names, as it is in the table.
model::Headroom room_read(Database& database, std::uint32_t machine) {
  return must(read_rooms(database))
      .room_of({.cause = model::Cause::Gpus, .needs = {}, .machine = {machine}});
}

struct Waiting {
  static Database open(const JournalDirectory& directory) {
    const TestJob job{numbered(1)};
    must(Journal::create(directory.journal(), "sweep", job.batch(), {}));
    return must(Database::open(directory.journal(), Database::Access::Write));
  }

  JournalDirectory directory;
  Database database = open(directory);
};

TEST(WaitingTable, ReadsBackWhatIsTold) {
  Waiting run;
  EXPECT_EQ(room_read(run.database, 0), model::Headroom{});
  WaitingTable table = must(WaitingTable::open(run.database));
  must(table.put(0, told_reason(), std::nullopt));
  must(table.put({}, told_room()));
  Statement row =
      must(run.database.prepare(fmt::format("SELECT {} FROM shapes s", kReasonColumns)));
  ASSERT_TRUE(must(row.next()));
  EXPECT_EQ(read_reason(row, 0), told_reason());
  EXPECT_EQ(room_read(run.database, 0), told_room());
}

TEST(WaitingTable, KeepsTheRoomOfEachMachineUntilItIsGone) {
  Waiting run;
  WaitingTable table = must(WaitingTable::open(run.database));
  const model::Headroom other{.memory_free = gb(7), .gpus = {{.label = "0", .free = gb(9)}}};
  must(table.put({}, told_room()));
  must(table.put({1}, other));
  EXPECT_EQ(room_read(run.database, 0), told_room());
  EXPECT_EQ(room_read(run.database, 1), other);
  must(table.leave({}));
  EXPECT_EQ(room_read(run.database, 0), other) << "what is of the run is said by the others";
  EXPECT_EQ(must(run.database.number("SELECT count(*) FROM headroom_gpus")), 1);
}

}  // namespace
}  // namespace trainyard::journal
