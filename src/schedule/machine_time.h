// The time that a machine is available, if it is taken away at a known time, as by a batch system:
// which tasks may begin there, and when the running ones have to be interrupted so that they have
// had their signal, TERM and its grace before that.
//
// For the files of this folder alone. Pure.
#pragma once

#include <optional>

#include "base/time.h"

namespace trainyard::schedule {

class MachineTime {
 public:
  /// Between the last KILL and the end of the machine: the time until all ends are reported.
  static constexpr Duration kForNews{5'000};

  /// The time that a task needs which may begin.
  struct Wish {
    Duration before{0};                 ///< Time between its signal and TERM.
    std::optional<Duration> takes;      ///< Its expected duration; nothing: unknown.
    bool goes_on_where_it_was = false;  ///< It resumes: little is lost by an interruption.
  };

  /// `until`: nothing if no such time is known. `grace` is the time between TERM and KILL.
  MachineTime(Instant joined, std::optional<Instant> until, Duration grace);

  /// Whether a task may begin now. A task that would not be done in all the time that the machine
  /// has had begins whenever it can: holding it back would be of no use.
  [[nodiscard]] bool is_enough_for(const Wish& wish, Instant now) const;

  /// The time at which a task that has begun is interrupted. A signal never takes more than half of
  /// the time.
  [[nodiscard]] std::optional<Instant> end_of(Duration before) const;
  /// The time by which TERM has been sent to all tasks.
  [[nodiscard]] std::optional<Instant> last_term() const { return last_term_; }

  /// A task has begun, and is interrupted at end_of() at the latest.
  void began(Duration before);
  /// The time of the next interruption; the task may have ended by then.
  [[nodiscard]] std::optional<Instant> next_end() const { return next_end_; }
  /// All interruptions that are due have been made, and this is the next one.
  void set_next_end(std::optional<Instant> at) { next_end_ = at; }

 private:
  Instant joined_;
  std::optional<Instant> last_term_;
  std::optional<Instant> next_end_;
};

}  // namespace trainyard::schedule
