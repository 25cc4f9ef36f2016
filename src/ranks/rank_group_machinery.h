// What only the thread of a rank group has: it is made and ended there.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>

#include "io/event_loop.h"
#include "io/frame_server.h"
#include "io/keeper.h"
#include "io/port_lease.h"
#include "ranks/rank_group_state.h"

namespace trainyard {

struct RankGroup::State::Machinery {
  io::EventLoop loop;
  std::unique_ptr<io::Keeper> keeper;
  std::unique_ptr<io::FrameServer> server;
  std::optional<io::PortLease> lease;
  std::set<int> watched_requests;  ///< Ranks whose replies are read here, and not by a caller.
};

}  // namespace trainyard
