// How long a machine is there, where somebody takes it away at a time that is known, as a batch
// system does: who may begin there, and when those that run have to be interrupted so that they
// have had their signal, TERM and its grace before that.
//
// For the files of this folder alone. Pure.
#pragma once

#include <optional>

#include "base/time.h"

namespace trainyard::schedule {

class MachineTime {
 public:
  /// Between the last KILL and the end of the machine: what it takes to hear that all have ended.
  static constexpr Duration kForNews{5'000};

  /// What is asked of it for one that may begin.
  struct Wish {
    Duration before{0};                 ///< So long before TERM it wants its signal.
    std::optional<Duration> takes;      ///< As it is expected to; nothing: nobody knows.
    bool goes_on_where_it_was = false;  ///< Little is lost when it is interrupted.
  };

  /// `until`: nothing where no such time is known. `grace` is that between TERM and KILL.
  MachineTime(Instant joined, std::optional<Instant> until, Duration grace);

  /// Whether one may begin now. One that would not be done in all the time that the machine has had
  /// begins whenever it can: holding it back would be of no use.
  [[nodiscard]] bool is_enough_for(const Wish& wish, Instant now) const;

  /// When one is interrupted that has begun. A signal never takes more than half of the time.
  [[nodiscard]] std::optional<Instant> end_of(Duration before) const;
  /// When TERM has come to everybody.
  [[nodiscard]] std::optional<Instant> last_term() const { return last_term_; }

  /// One has begun, and is interrupted then at the latest.
  void began(Duration before);
  /// When somebody is to be interrupted next; nobody has to be there any more by then.
  [[nodiscard]] std::optional<Instant> next_end() const { return next_end_; }
  /// All that are due have been, and this is the next one.
  void set_next_end(std::optional<Instant> at) { next_end_ = at; }

 private:
  Instant joined_;
  std::optional<Instant> last_term_;
  std::optional<Instant> next_end_;
};

}  // namespace trainyard::schedule
