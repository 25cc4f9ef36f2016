// The two connections to one rank, as the parent sees them. Guarded by the lock of its group.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "link/frame_socket.h"
#include "ranks/context_access.h"
#include "sys/descriptor.h"
#include "wire/frame.h"
#include "wire/rank.h"

namespace trainyard::ranks {

struct RankChannel {
  RankChannel(link::FrameSocket first, link::FrameSocket second, sys::Descriptor theirs)
      : requests(std::move(first)), words(std::move(second)), their_words(std::move(theirs)) {}

  link::FrameSocket requests;
  link::FrameSocket words;
  sys::Descriptor their_words;  ///< Kept until it has gone to the rank, with the first request.
  std::vector<std::string> listens;
  /// The shared buffers of the last request, until the rank has replied.
  std::vector<wire::SharedBuffer> reads;
  /// The contexts as the rank has them, by each of its connections, and by both.
  ContextMirror request_mirror;
  ContextMirror word_mirror;
  ContextMirror sticky_mirror;
};

}  // namespace trainyard::ranks
