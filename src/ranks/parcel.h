// A Shareable as it travels: the fields of a frame, and its buffers in the frame or in arenas.
//
// Small buffers go in the frame; those that lie in an arena of the sender go as they are; all
// others are copied once, into one arena, or, when none is free, into the frame. Any thread.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "ranks/shared_arenas.h"
#include "trainyard/shareable.h"
#include "wire/frame.h"
#include "wire/rank.h"

namespace trainyard::ranks {

struct Parcel {
  wire::Payload payload;
  std::vector<std::string> raw;
  std::vector<wire::SharedBuffer> shared;
  /// Keeps the arenas until they have been sent.
  std::vector<std::shared_ptr<detail::BufferMemory>> held;
};

/// Buffers that together have less go in the frame.
constexpr std::size_t kInFrameMax = std::size_t{32} << 10;
/// Buffers that were filled in place, in arenas of their own.
constexpr std::size_t kInPlaceMax = wire::kDescriptorsMax - 1;

/// An error: more buffers than a frame may have, no room for them, or values that are nested deeper
/// than wire::kValueLevelsMax.
Result<Parcel> pack(const Shareable& shareable, SharedArenas& arenas);

/// Finds the memory of a shared buffer of the frame, by its place among them.
using OpenShared =
    std::function<Result<std::shared_ptr<detail::BufferMemory>>(const wire::SharedBuffer&)>;

/// An error: what came contradicts itself.
Result<Shareable> unpack(wire::Payload payload, wire::Frame frame, const OpenShared& open);

}  // namespace trainyard::ranks
