// The parts that only the thread of a rank group has: they are made and ended there.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>

#include "link/frame_server.h"
#include "process/keeper.h"
#include "process/port_lease.h"
#include "ranks/rank_group_state.h"
#include "sys/event_loop.h"

namespace trainyard::ranks {

struct RankGroup::State::Machinery {
  sys::EventLoop loop;
  std::unique_ptr<process::Keeper> keeper;
  std::unique_ptr<link::FrameServer> server;
  std::optional<process::PortLease> lease;
  std::set<int> watched_requests;  ///< Ranks whose replies are read here, and not by a caller.
};

}  // namespace trainyard::ranks
