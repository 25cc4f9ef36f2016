// The files that a killed yard leaves in the directory for sockets. A process that outlives it
// removes them.
//
// No threads.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "base/time.h"
#include "sys/descriptor.h"

namespace trainyard::process {

class SocketRemains {
 public:
  /// The maximum number of directories: a yard tries a few places.
  static constexpr std::size_t kMax = 16;
  /// The maximum wait for the end of a yard that has closed its socket without a word: a killed
  /// process closes its descriptors before it has ended, long before on a busy machine.
  static constexpr Duration kDying{5'000};

  /// `yard` is readable when that has ended, or closed when it has already.
  void watch(sys::Descriptor yard) { yard_ = std::move(yard); }
  void add(std::string directory);
  [[nodiscard]] bool is_empty() const { return directories_.empty(); }

  /// Waits for that at most `within`.
  [[nodiscard]] bool yard_has_ended(Duration within = Duration{0}) const;
  /// Removes the sockets, the logs (*.log) beside them, and their directories when nothing else is
  /// in them, if the yard has ended by then: one that lives does that itself.
  void remove(Duration within = Duration{0}) const;
  /// As poll(2) takes it.
  [[nodiscard]] int yard() const { return yard_.get(); }

 private:
  sys::Descriptor yard_;
  std::vector<std::string> directories_;
};

}  // namespace trainyard::process
