// Whether the run that goes on is to end, and why. Any thread.
#pragma once

#include <atomic>
#include <mutex>
#include <stop_token>
#include <string>

#include "trainyard/pipeline_base.h"

namespace trainyard::pipeline {

class RunEnd {
 public:
  /// A run begins: what was said before does not count.
  void begin_run();
  /// An iteration by hand begins: a failure before it has asked to stop.
  void forget_failure();
  /// The first one counts.
  void finish(std::string why, Outcome outcome = Outcome::Finished);
  /// The run is over, whatever ended it.
  void end_run() { finishing_ = true; }
  [[nodiscard]] bool finishing() const { return finishing_.load(std::memory_order_relaxed); }
  [[nodiscard]] std::string why() const;
  [[nodiscard]] Outcome outcome() const;

  /// Asks to stop from finish() or wake() on.
  [[nodiscard]] std::stop_token token() const;
  /// The run is to end for another reason.
  void wake();

 private:
  mutable std::mutex mutex_;
  std::string why_;
  Outcome outcome_ = Outcome::Finished;
  std::stop_source ending_;
  std::atomic<bool> finishing_ = false;
};

}  // namespace trainyard::pipeline
