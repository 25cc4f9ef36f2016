// What is promised to whom, and what is left to promise.
//
// Memory is counted twice, and the smaller sum is believed. By the ledger: the capacity less what
// every running task holds, which is its promise or what it was seen to use, whichever is more. By
// the live reading: what the kernel has to give, less what was promised and not taken yet. The
// first alone would forget what others use, the second what a task takes late; two tasks are never
// promised the same byte.
//
// What the other yards on the machine hold (schedule/neighbours.h) is counted in both sums as what
// our tasks hold.
//
// Disk is counted by the live reading alone, less all that was promised to those that run: what of
// it they have written by now nobody knows, and what one wrote stays when it ends. So what was
// promised to one that has ended counts until the next reading, which shows what it wrote.
//
// CPUs are counted by the ledger alone. What is free may be negative: others may take what was
// there, and no task is ended for that here.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <ranges>

#include "base/bytes.h"
#include "model/event.h"
#include "model/ids.h"
#include "model/plan.h"
#include "model/resources.h"
#include "schedule/free_room.h"
#include "schedule/neighbours.h"

namespace trainyard::schedule {

/// What the limits keep free of a machine's memory: the larger of remain-limit and what
/// utilization-limit leaves (fedflow `Scheduler`, F-041).
Bytes memory_kept_free(const model::Policy& policy, const model::Capacity& capacity);

class Ledger {
 public:
  Ledger(const model::Policy& policy, const model::Capacity& capacity);

  /// Takes in a reading of the machine, whose tasks are in order. Tasks that are not in the ledger
  /// are not looked at: their processes may be about to be gone.
  void see(const model::Sampled& reading);

  /// Reserves for a task that holds nothing. Whether there is room is the caller's to know.
  void promise(model::TaskIndex task, const model::Request& request);
  /// Promises it more, or takes a part of the promise back (negative).
  void change(model::TaskIndex task, const model::Request& by);
  /// It has ended and is gone.
  void release(model::TaskIndex task);
  /// It never was, and nobody was told of it.
  void take_back(model::TaskIndex task);
  /// What the other yards on the machine hold, all together.
  void set_neighbours(const HostNeighbours& neighbours);
  /// From now on how much is free stands there, too, which outlives this.
  void show_in(FreeRoom& all, model::MachineIndex machine);

  /// How much memory may still be promised. Negative when more is in use than should be.
  [[nodiscard]] Bytes memory_free() const;
  [[nodiscard]] model::Cpus cpus_free() const {
    return capacity_.cpus - cpus_promised_ - neighbours_.cpus;
  }
  [[nodiscard]] model::Cpus cpus_promised() const { return cpus_promised_; }

  /// Memory that the limits keep free; no task is promised any of it.
  [[nodiscard]] Bytes memory_kept_free() const { return kept_free_; }

  /// What could be promised if nothing of ours ran, by the last reading.
  [[nodiscard]] Bytes memory_free_alone() const;

  /// What all tasks hold, and how much of the machine's memory others use beside other yards.
  [[nodiscard]] Bytes memory_held() const { return held_; }
  [[nodiscard]] Bytes memory_of_others() const;
  /// What the kernel could give to new work, at the last reading and with what has ended since.
  [[nodiscard]] Bytes memory_available() const { return available_; }
  /// What one running task holds.
  [[nodiscard]] Bytes memory_held_by(model::TaskIndex task) const;
  /// What a running task had at the last reading.
  [[nodiscard]] Bytes memory_measured_of(model::TaskIndex task) const;
  /// How many tasks hold CPUs. A two-phase task that does not train yet holds none.
  [[nodiscard]] int tasks_with_cpus() const;
  /// Those that hold something, in order.
  [[nodiscard]] auto holders() const { return std::views::keys(holdings_); }
  [[nodiscard]] int tasks() const { return static_cast<int>(holdings_.size()); }
  [[nodiscard]] double cpu_used_by_others() const { return cpu_used_by_others_; }

  /// How much of the disk may still be promised; nothing where nobody has looked: any amount.
  /// Negative when others have taken it.
  [[nodiscard]] std::optional<Bytes> disk_free() const;
  /// At the last reading.
  [[nodiscard]] const std::optional<model::DiskRoom>& disk() const { return disk_; }
  /// Some that was promised is not seen to be written yet: it may be free when those end that have
  /// it, or at the next reading.
  [[nodiscard]] bool disk_may_come_free() const {
    return disk_promised_ + disk_of_ended_ > Bytes{};
  }
  /// To those that run, and how many of these there are.
  [[nodiscard]] Bytes disk_promised() const { return disk_promised_; }
  [[nodiscard]] int tasks_with_disk() const;

 private:
  struct Holding {
    model::Request promise;
    Bytes measured;  ///< At the last reading; nothing before the first that saw it.
  };

  void take_out(const Holding& holding);
  void put_in(const Holding& holding);
  /// How much of the disk a promise counts as: no more than there is, so that no sum overflows, and
  /// nothing while nobody has looked.
  [[nodiscard]] Bytes disk_of(const model::Request& request) const;
  void show();

  model::Capacity capacity_;
  Bytes kept_free_;
  Bytes available_;  ///< What was available at the last reading, plus what ended tasks had then.
  // Sums over holdings_, so that asking costs nothing. A holding is changed between take_out() and
  // put_in(), and in no other way.
  Bytes held_;         ///< The sum of max(promise, measured).
  Bytes outstanding_;  ///< The sum of what is promised and was not taken at the last reading.
  Bytes measured_;     ///< The sum of what tasks had at the last reading.
  model::Cpus cpus_promised_;
  double cpu_used_by_others_ = 0;
  std::optional<model::DiskRoom> disk_;
  Bytes disk_promised_;  ///< The sum of disk_of() over holdings_.
  Bytes disk_of_ended_;  ///< What was promised to those that have ended since the last reading.
  HostNeighbours neighbours_;
  std::map<model::TaskIndex, Holding> holdings_;
  FreeRoom* all_ = nullptr;
  model::MachineIndex machine_;
};

}  // namespace trainyard::schedule
