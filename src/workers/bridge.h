// How the machines of a run reach each other: messages that arrive once, twice or not at all, and
// from one machine to another in their order. NATS implements it (workers/nats_bridge.h).
//
// One thread, that of the loop, which also calls the listener, and not before start().
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

#include "workers/datagram.h"

namespace trainyard::workers {

class Bridge {
 public:
  struct Listener {
    std::function<void(std::string_view message)> on_message;
    /// No machine that has begun the run has received what was sent to it.
    std::function<void()> on_no_hub;
    /// Nothing goes through now; or it does again, and what was sent may be lost.
    std::function<void(bool is_up)> on_change;
    /// The connection has ended for good, for this reason: "NATS: 127.0.0.1:4222: ...".
    std::function<void(const std::string& why)> on_end;
    /// Worth knowing: "3 messages came faster than they were read".
    std::function<void(const std::string& what)> on_trouble;
  };

  Bridge() = default;
  Bridge(Bridge&&) = delete;
  Bridge& operator=(Bridge&&) = delete;
  virtual ~Bridge() = default;

  virtual void start(Listener listener) = 0;
  virtual void send(MachineId to, std::string_view message) = 0;
  /// Sends to the machine that has begun the run, whose id need not be known. Never delivered to
  /// this machine.
  virtual void send_to_hub(std::string_view message) = 0;
  /// Returns whether no sent message waits for room in the connection; true without a connection.
  /// Messages that wait when the bridge is destroyed are lost.
  [[nodiscard]] virtual bool is_drained() const = 0;
  /// The largest message, in bytes, that the present server accepts, or the last server.
  [[nodiscard]] virtual std::size_t message_bytes_max() const = 0;
  /// The address of that server: "127.0.0.1:4222".
  [[nodiscard]] virtual std::string name() const = 0;
};

}  // namespace trainyard::workers
