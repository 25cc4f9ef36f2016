// For as long as it lives, nobody waits for an event of a bus: a step has failed, and those beside
// it are to end. Any thread.
#pragma once

#include <atomic>
#include <memory>

#include "pipeline/bus_state.h"
#include "trainyard/event_bus.h"

namespace trainyard {

class WaitsCutShort {
 public:
  explicit WaitsCutShort(EventBus& bus) : bus_(bus.state_) {}
  WaitsCutShort(const WaitsCutShort&) = delete;
  WaitsCutShort& operator=(const WaitsCutShort&) = delete;
  ~WaitsCutShort() {
    if (begun_) bus_->let_waits_be();
  }

  /// From now on. Again: no effect.
  void begin() {
    if (!begun_.exchange(true)) bus_->cut_waits_short();
  }

 private:
  std::shared_ptr<detail::BusState> bus_;
  std::atomic<bool> begun_ = false;
};

}  // namespace trainyard
