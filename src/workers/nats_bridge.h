// A bridge over servers of NATS. Their library is looked for when the program runs, which needs
// none to be installed where nothing is attached.
//
// Our event loop reads and writes for the library, which has threads of its own only to see whether
// the server is there. Each connection, also the next after a loss, is made by a thread of ours.
#pragma once

#include <expected>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "sys/event_loop.h"
#include "trainyard/parallel.h"
#include "workers/datagram.h"
#include "workers/nats_address.h"

namespace trainyard::workers {

struct NatsBridgeOptions {
  std::vector<NatsAddress> servers;
  NatsOptions nats;
  std::string run;
  MachineId own = 0;
  bool is_hub = false;  ///< It also receives the requests to join.
};

/// Why there is no connection.
struct NoNats {
  std::string why;          ///< With the names of the servers.
  bool may_come = false;    ///< Nobody listens there, or answers: perhaps not yet.
  bool is_refused = false;  ///< The server does not know this user, or takes tiny messages alone.
};

/// Connects, which takes some seconds where a server does not answer. The loop runs meanwhile, and
/// nothing is waited for once `is_given_up` returns true, which is called after each of its turns.
/// The bridge must not outlive the loop.
std::expected<std::unique_ptr<Bridge>, NoNats> connect_nats(
    sys::EventLoop& loop, NatsBridgeOptions options,
    const std::function<bool()>& is_given_up = [] { return false; });

}  // namespace trainyard::workers
