// Why tasks wait, where a run has several machines.
#include "model/machine_rooms.h"

#include <gtest/gtest.h>

#include "base/bytes.h"
#include "model/resources.h"

namespace trainyard::model {
namespace {

constexpr MachineIndex kSecond{1};

Reason lacks_memory(MachineIndex machine) {
  return {.cause = Cause::Memory, .needs = {.memory = gb(5)}, .machine = machine};
}

TEST(MachineRooms, TellTheNumbersOfTheMachineThatAReasonNames) {
  MachineRooms rooms;
  rooms.join({}, "lab1");
  rooms.join(kSecond, "lab2");
  rooms.see({}, {.memory_free = gb(1)});
  rooms.see(kSecond, {.memory_free = gb(4)});
  EXPECT_EQ(rooms.reason_text(lacks_memory({})), "on lab1: needs 5 GB of memory, 1 GB available");
  EXPECT_EQ(rooms.reason_text(lacks_memory(kSecond)),
            "on lab2: needs 5 GB of memory, 4 GB available");
}

TEST(MachineRooms, NameNoMachineWhereThereIsOne) {
  MachineRooms rooms;
  rooms.hear(MachineJoined{.name = "lab1"});
  rooms.see({}, {.memory_free = gb(1)});
  EXPECT_EQ(rooms.reason_text(lacks_memory({})), "needs 5 GB of memory, 1 GB available");
  EXPECT_EQ(rooms.name_for(lacks_memory({})), "lab1");
}

TEST(MachineRooms, NameNoMachineForWhatIsOfTheRun) {
  MachineRooms rooms;
  rooms.join({}, "lab1");
  rooms.join(kSecond, "lab2");
  const Reason parallel{.cause = Cause::Parallel, .parallel_max = 1};
  EXPECT_EQ(rooms.reason_text(parallel), "max-parallel allows 1 task of its group at once");
  EXPECT_EQ(rooms.name_for(parallel), "");
}

TEST(MachineRooms, TellWhatIsOfTheRunByAMachineThatIsThereStill) {
  MachineRooms rooms;
  rooms.join({}, "lab1");
  rooms.join(kSecond, "lab2");
  rooms.see({}, {.ahead = 3, .waiting_max = 3});
  rooms.see(kSecond, {.ahead = 4, .waiting_max = 4});
  rooms.hear(MachineGone{});
  const Reason ahead{.cause = Cause::Ahead};
  EXPECT_EQ(rooms.reason_text(ahead), "max-waiting allows 4 tasks to load ahead");
}

TEST(MachineRooms, NameThoseThatThereAreWhereNoneWillDo) {
  MachineRooms rooms;
  rooms.join({}, "lab1");
  rooms.join(kSecond, "lab2");
  rooms.see({}, {});
  rooms.see(kSecond, {});
  const Reason elsewhere{.cause = Cause::Elsewhere, .needs = {.where = {.machine = "big*"}}};
  EXPECT_EQ(rooms.reason_text(elsewhere),
            "where: no available machine is called 'big*'; the available machines are lab1, lab2");
  rooms.hear(MachineGone{});
  EXPECT_EQ(rooms.reason_text(elsewhere),
            "where: no available machine is called 'big*'; the only available machine is lab2");
}

}  // namespace
}  // namespace trainyard::model
