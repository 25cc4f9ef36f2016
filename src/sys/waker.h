// Wakes an event loop from another thread: the loop watches its descriptor.
//
// Any thread may wake; one drains.
#pragma once

#include <utility>

#include "base/result.h"
#include "sys/descriptor.h"

namespace trainyard::sys {

class Waker {
 public:
  /// An error where no descriptor is left.
  static Result<Waker> make();

  /// Its descriptor can be read from now on. Again: no effect.
  void wake() const;
  /// Makes it unreadable, until the next wake.
  void drain() const;
  [[nodiscard]] int descriptor() const { return event_.get(); }

 private:
  explicit Waker(Descriptor event) : event_(std::move(event)) {}

  Descriptor event_;
};

}  // namespace trainyard::sys
