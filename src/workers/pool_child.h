// The main function of a child of a pool: makes the object, and has it do what the parent
// asks for, one call at a time. The one thread of a fresh fork.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/result.h"
#include "link/frame_socket.h"
#include "ranks/shared_arenas.h"
#include "trainyard/detail/codec.h"
#include "trainyard/detail/pool_core.h"
#include "wire/frame.h"
#include "workers/pool_link.h"

namespace trainyard::workers {

class PoolChild {
 public:
  struct Place {
    int index = 0;
    std::string socket;
    std::string token;
  };
  /// From the hello to the end of the connection. The exit code of the process; what it cannot tell
  /// its parent it prints.
  static int run(const Place& place, const detail::PoolMake& make);

 private:
  explicit PoolChild(link::FrameSocket socket);
  int serve(int index, const detail::PoolMake& make);
  void answer(detail::PoolObject& object, wire::Frame frame);
  [[nodiscard]] detail::PoolAnswer call(detail::PoolObject& object, wire::Frame frame);
  void reply(std::uint64_t sequence, detail::PoolAnswer answer);
  void send(const wire::Frame& frame);
  void pass_on_released();

  link::FrameSocket socket_;
  std::shared_ptr<ranks::SharedArenas> arenas_;
  std::shared_ptr<PoolReleases> releases_;
};

}  // namespace trainyard::workers
