// The values of an event or a call as they travel between processes: the JSON and small buffers in
// the frame, large ones in arenas. Any thread.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include "base/result.h"
#include "ranks/parcel.h"
#include "ranks/shared_arenas.h"
#include "trainyard/buffer.h"
#include "trainyard/detail/codec.h"
#include "wire/frame.h"

namespace trainyard::workers {

/// Limits of the connection to a child, both ways.
inline constexpr wire::FrameLimits kPoolLimits{.fields_bytes_max = std::size_t{8} << 20,
                                               .buffers_max = 64,
                                               .buffers_bytes_max = std::size_t{64} << 20,
                                               .shared_max = 64};
/// The first of the buffers of a frame says what the others are.
inline constexpr std::size_t kBuffersMax = kPoolLimits.buffers_max - 1;

struct Parcel {
  wire::Frame frame;  ///< Its head is whose it is.
  /// Keeps the arenas until they have been sent.
  std::vector<std::shared_ptr<detail::BufferMemory>> held;
};

/// Called where no arena is free: waits until it is worth another try. False: it is not.
using WaitForArena = std::function<bool()>;

/// Buffers that lie in an arena of ours go as they are; of the others those that together have less
/// than ranks::kInFrameMax go in the frame, and more are copied once, into one arena, or into the
/// frame where none is free. An error: there is no room for them, or they are too many.
Result<Parcel> pack(detail::RemotePayload payload, ranks::SharedArenas& arenas,
                    const WaitForArena& wait = {});

/// An error: what came contradicts itself.
Result<detail::RemotePayload> unpack(wire::Frame frame, const ranks::OpenShared& open);

}  // namespace trainyard::workers
