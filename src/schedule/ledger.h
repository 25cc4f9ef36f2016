// What is promised to whom, and what is left to promise.
//
// Memory is counted twice, and the smaller sum is believed. By the ledger: the capacity less what
// every running task holds, which is its promise or what it was seen to use, whichever is more. By
// the live reading: what the kernel has to give, less what was promised and not taken yet. The
// first alone would forget what others use, the second what a task takes late; two tasks are never
// promised the same byte.
#pragma once

#include <cstdint>
#include <map>

#include "base/bytes.h"
#include "model/event.h"
#include "model/ids.h"
#include "model/plan.h"
#include "model/resources.h"

namespace trainyard {

/// What the limits keep free of a machine's memory: the larger of remain-limit and what
/// utilization-limit leaves (fedflow `Scheduler`, F-041).
Bytes memory_kept_free(const Limits& limits, const Capacity& capacity);

class Ledger {
 public:
  Ledger(const Limits& limits, const Capacity& capacity);

  /// Takes in a reading of the machine. Tasks that are not in the ledger are not looked at.
  void see(const Sampled& reading);

  void promise(TaskIndex task, const Request& request);
  /// Promises it more, or takes a part of the promise back (negative).
  void change(TaskIndex task, const Request& by);
  void release(TaskIndex task);

  /// What may still be promised. Negative when more is in use than should be.
  [[nodiscard]] Bytes memory_free() const;
  [[nodiscard]] Cpus cpus_free() const { return capacity_.cpus - cpus_promised_; }

  /// What could be promised if nothing of ours ran, by the last reading.
  [[nodiscard]] Bytes memory_free_alone() const;

  /// What all tasks hold, and how much of the machine's memory others use.
  [[nodiscard]] Bytes memory_held() const { return held_; }
  [[nodiscard]] Bytes memory_of_others() const;
  /// What the kernel could give to new work, at the last reading and with what has ended since.
  [[nodiscard]] Bytes memory_available() const { return available_; }
  /// What one running task holds.
  [[nodiscard]] Bytes memory_held_by(TaskIndex task) const;
  /// What it had at the last reading.
  [[nodiscard]] Bytes memory_measured_of(TaskIndex task) const;
  /// How many hold CPUs.
  [[nodiscard]] int tasks_with_cpus() const;
  [[nodiscard]] int tasks() const { return static_cast<int>(holdings_.size()); }
  [[nodiscard]] double cpu_used_by_others() const { return cpu_used_by_others_; }

 private:
  struct Holding {
    Request promise;
    Bytes measured;  ///< At the last reading; nothing before the first that saw it.
  };

  void take_out(const Holding& holding);
  void put_in(const Holding& holding);

  Capacity capacity_;
  Bytes kept_free_;
  Bytes available_;    ///< At the last reading, plus what ended tasks had then.
  Bytes held_;         ///< Sum of max(promise, measured).
  Bytes outstanding_;  ///< Sum of what is promised and was not taken at the last reading.
  Bytes measured_;     ///< Sum of what tasks had at the last reading.
  Cpus cpus_promised_;
  double cpu_used_by_others_ = 0;
  std::map<TaskIndex, Holding> holdings_;
};

}  // namespace trainyard
