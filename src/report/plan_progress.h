// The progress of `trainyard plan` in playing a run through, which takes minutes for a million
// tasks. In a terminal one line is redrawn, elsewhere there is a line every ten seconds. Has no
// clock: the caller passes the time. Belongs to one thread.
#pragma once

#include <cstddef>
#include <string>
#include <utility>

#include "base/time.h"
#include "report/sink.h"

namespace trainyard::report {

class PlanProgress {
 public:
  static constexpr Duration kDrawEvery{500};
  static constexpr Duration kLineEvery{10'000};

  PlanProgress(bool terminal, Sink write) : terminal_(terminal), write_(std::move(write)) {}

  /// `tasks` is the number to play through; `what` names the machine and the way.
  void begin(std::string what, std::size_t tasks, Duration now);
  void on(std::size_t ended, Duration now);
  /// Takes the line away.
  void finish();

 private:
  bool terminal_;
  Sink write_;
  std::string what_;
  std::size_t tasks_ = 0;
  Duration shown_at_{0};
  bool drawn_ = false;
};

}  // namespace trainyard::report
