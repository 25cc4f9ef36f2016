// What others do wrong, for a log: said, but not without end. One thread.
#pragma once

#include <optional>
#include <string>

#include "base/time.h"

namespace trainyard::link {

class Troubles {
 public:
  /// In so much time at most so many are told.
  Troubles(Duration window, int troubles_max) : window_(window), max_(troubles_max) {}

  /// What to say, when anything is to be said: with how many were held back before.
  std::optional<std::string> tell(std::string what);

 private:
  Duration window_;
  int max_;
  std::optional<Duration> begin_;
  int told_ = 0;
  int held_back_ = 0;
};

}  // namespace trainyard::link
