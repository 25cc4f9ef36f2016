// The reservations of tasks, and what is left to reserve.
//
// Memory is counted twice, and the smaller sum is used. By the ledger: the capacity less what every
// running task holds, which is its reservation or its measured use, whichever is more. By the live
// reading: what the kernel has available, less what was reserved and not taken yet. The first alone
// would miss the use of others, the second the late use of tasks; no byte is reserved for two
// tasks.
//
// The reservations of other yards on the machine (schedule/neighbours.h) are counted in both sums
// like those of our tasks.
//
// Disk is counted by the live reading alone, less all reservations of running tasks: nobody knows
// how much of them they have written by now, and what a task wrote stays when it ends. So the
// reservation of an ended task counts until the next reading, which shows what it wrote.
//
// CPUs are counted by the ledger alone. Free amounts may be negative: others may take what was
// there, and no task is ended for that here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <ranges>
#include <vector>

#include "base/bytes.h"
#include "model/event.h"
#include "model/ids.h"
#include "model/plan.h"
#include "model/resources.h"
#include "schedule/neighbours.h"

namespace trainyard::schedule {

/// The free room of machines, kept so that one with enough is found without a look at all of them: a
/// tree in which each node has the maximum of the nodes below it.
///
/// For the files of this folder alone. Pure; to set one and to find one costs O(log machines), the
/// latter more where one has the CPUs and another one the memory.
class FreeRoom {
 public:
  struct Room {
    model::Cpus cpus;
    Bytes memory;
  };

  /// Machines may be set in any order; a machine that was not set has no known room.
  void set(model::MachineIndex machine, const Room& room);
  /// The machine is not found any more, until it is set again.
  void forget(model::MachineIndex machine);

  /// The first machine from this on with as much room; nothing if none has.
  [[nodiscard]] std::optional<model::MachineIndex> first(model::MachineIndex from,
                                                         const Room& enough) const;

 private:
  static constexpr Room kNone{.cpus = {-1}, .memory = {-1}};

  void grow(std::size_t machines);
  void put(std::size_t place, const Room& room);
  void take_from_children(std::size_t node);
  [[nodiscard]] bool has(std::size_t node, const Room& enough) const {
    return nodes_[node].cpus >= enough.cpus && nodes_[node].memory >= enough.memory;
  }

  std::size_t leaves_ = 0;   ///< A power of two.
  std::vector<Room> nodes_;  ///< The root is 1, the children of n are 2n and 2n + 1.
};

/// The memory that the limits keep free on a machine: the larger of remain-limit and the memory
/// beyond utilization-limit (fedflow `Scheduler`).
Bytes memory_kept_free(const model::Policy& policy, const model::Capacity& capacity);

class Ledger {
 public:
  Ledger(const model::Policy& policy, const model::Capacity& capacity);

  /// Takes in a reading of the machine, whose tasks are in order. Tasks that are not in the ledger
  /// are ignored: their processes may be about to be gone.
  void see(const model::Sampled& reading);

  /// Reserves for a task that holds nothing. The caller makes sure that there is room.
  void promise(model::TaskIndex task, const model::Request& request);
  /// Reserves more for a task, or takes a part of the reservation back (negative).
  void change(model::TaskIndex task, const model::Request& by);
  /// The task has ended and is gone.
  void release(model::TaskIndex task);
  /// The task was not started after all, and its start was reported nowhere.
  void take_back(model::TaskIndex task);
  /// The reservations of all other yards on the machine together.
  void set_neighbours(const HostNeighbours& neighbours);
  /// From now on writes the free amounts to `all`, too, which outlives this.
  void show_in(FreeRoom& all, model::MachineIndex machine);

  /// The memory that may still be reserved. Negative when more is in use than should be.
  [[nodiscard]] Bytes memory_free() const;
  [[nodiscard]] model::Cpus cpus_free() const {
    return capacity_.cpus - cpus_promised_ - neighbours_.cpus;
  }
  [[nodiscard]] model::Cpus cpus_promised() const { return cpus_promised_; }

  /// Memory that the limits keep free; no task can reserve it.
  [[nodiscard]] Bytes memory_kept_free() const { return kept_free_; }

  /// The memory that could be reserved if nothing of ours ran, by the last reading.
  [[nodiscard]] Bytes memory_free_alone() const;

  /// The memory that all tasks hold, and the memory used by others except other yards.
  [[nodiscard]] Bytes memory_held() const { return held_; }
  [[nodiscard]] Bytes memory_of_others() const;
  /// The memory that the kernel had available at the last reading, plus that of tasks that ended
  /// since.
  [[nodiscard]] Bytes memory_available() const { return available_; }
  /// The memory that a running task holds.
  [[nodiscard]] Bytes memory_held_by(model::TaskIndex task) const;
  /// The memory of a running task at the last reading.
  [[nodiscard]] Bytes memory_measured_of(model::TaskIndex task) const;
  /// Number of tasks that hold CPUs. A two-phase task that does not train yet holds none.
  [[nodiscard]] int tasks_with_cpus() const;
  /// The tasks that hold something, in order.
  [[nodiscard]] auto holders() const { return std::views::keys(holdings_); }
  [[nodiscard]] int tasks() const { return static_cast<int>(holdings_.size()); }
  [[nodiscard]] double cpu_used_by_others() const { return cpu_used_by_others_; }

  /// The disk space that may still be reserved; nothing if it was never measured: any amount.
  /// Negative when others have taken it.
  [[nodiscard]] std::optional<Bytes> disk_free() const;
  /// At the last reading.
  [[nodiscard]] const std::optional<model::DiskRoom>& disk() const { return disk_; }
  /// Some reserved space is not seen to be written yet: it may be free when the tasks that reserved
  /// it end, or at the next reading.
  [[nodiscard]] bool disk_may_come_free() const {
    return disk_promised_ + disk_of_ended_ > Bytes{};
  }
  /// The reservations of running tasks, and the number of these tasks.
  [[nodiscard]] Bytes disk_promised() const { return disk_promised_; }
  [[nodiscard]] int tasks_with_disk() const;

 private:
  struct Holding {
    model::Request promise;
    Bytes measured;  ///< At the last reading; nothing before the first that saw it.
  };

  void take_out(const Holding& holding);
  void put_in(const Holding& holding);
  /// The disk space that a reservation counts for: no more than there is, so that no sum overflows,
  /// and nothing while the disk was never measured.
  [[nodiscard]] Bytes disk_of(const model::Request& request) const;
  void show();

  model::Capacity capacity_;
  Bytes kept_free_;
  Bytes available_;  ///< Available at the last reading, plus what ended tasks had then.
  // Sums over holdings_, so that asking costs nothing. A holding is changed between take_out() and
  // put_in(), and in no other way.
  Bytes held_;         ///< The sum of max(promise, measured).
  Bytes outstanding_;  ///< The sum of reservations that were not taken at the last reading.
  Bytes measured_;     ///< The sum of the memory of tasks at the last reading.
  model::Cpus cpus_promised_;
  double cpu_used_by_others_ = 0;
  std::optional<model::DiskRoom> disk_;
  Bytes disk_promised_;  ///< The sum of disk_of() over holdings_.
  Bytes disk_of_ended_;  ///< Reservations of tasks that ended since the last reading.
  HostNeighbours neighbours_;
  std::map<model::TaskIndex, Holding> holdings_;
  FreeRoom* all_ = nullptr;
  model::MachineIndex machine_;
};

}  // namespace trainyard::schedule
