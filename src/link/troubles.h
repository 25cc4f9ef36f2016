// Faults of clients, for a log: reported up to a limit. One thread.
#pragma once

#include <optional>
#include <string>

#include "base/time.h"

namespace trainyard::link {

class Troubles {
 public:
  /// In so much time at most so many are told.
  Troubles(Duration window, int troubles_max) : window_(window), max_(troubles_max) {}

  /// The line for the log, if one is due: with the number that was held back before.
  std::optional<std::string> tell(std::string what);

 private:
  Duration window_;
  int max_;
  std::optional<Duration> begin_;
  int told_ = 0;
  int held_back_ = 0;
};

}  // namespace trainyard::link
