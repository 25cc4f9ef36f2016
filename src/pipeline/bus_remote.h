// The connection of a bus to other processes. workers/ implements it; the bus only knows the
// interface.
#pragma once

#include <chrono>
#include <memory>
#include <stdexcept>
#include <string_view>

#include "trainyard/detail/codec.h"
#include "trainyard/event.h"
#include "trainyard/event_bus.h"

namespace trainyard::detail {

class BusState;

/// Thrown where a worker that fails could not send an event. Ends the listener that emitted it,
/// which may have many more to emit.
class NotSent : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Any thread may call anything; none of it with a lock of the bus.
class BusRemote {
 public:
  BusRemote() = default;
  BusRemote(const BusRemote&) = delete;
  BusRemote& operator=(const BusRemote&) = delete;
  virtual ~BusRemote() = default;

  /// Somebody here listens to this name, or pattern, once more; and once less.
  virtual void want(std::string_view name) = 0;
  virtual void want_not(std::string_view name) = 0;
  /// Throws when it cannot be encoded or sent; NotSent, where this worker fails.
  virtual void send(const EventName& name, const Codec& codec, const void* payload,
                    bool is_retained) = 0;
  /// A thread is about to wait for an event: nothing may be held back for its sake.
  virtual void will_wait() = 0;
  /// It has waited so long for an event of this name; `came`: and has it.
  virtual void waited(std::string_view name, std::chrono::nanoseconds took, bool came) = 0;
  /// Between these two this worker fails, and waits for a listener to return before it can say so:
  /// send() does not wait for long for others that take nothing. They nest.
  virtual void begin_to_fail() = 0;
  virtual void has_failed() = 0;
  /// The bus has stopped: it calls nothing more.
  virtual void bus_stopped(BusState& bus) = 0;
};

/// The codec of events with a plain name.
extern const Codec kJsonCodec;

/// For who connects a bus.
class BusAccess {
 public:
  static std::shared_ptr<BusState> state_of(EventBus& bus) { return bus.state_; }
};

}  // namespace trainyard::detail
