// How the answer to a call says that there is none: the topic of its frame is why, its fields say
// it for people. Pure; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "trainyard/pool_options.h"
#include "wire/control.h"
#include "wire/fields.h"
#include "wire/frame.h"

namespace trainyard::workers {

/// The number of the frame by which a child says that its object is made, or why it is not.
inline constexpr std::uint64_t kMadeSequence = 0;

inline wire::Frame failure_reply(std::uint64_t sequence, const CallError& error) {
  return {.kind = wire::FrameKind::Reply,
          .topic = static_cast<std::uint64_t>(error.kind) + 1,
          .sequence = sequence,
          .fields = wire::failure_fields(wire::last_of(error.message, wire::kTracebackBytesMax))};
}

inline bool is_failure(const wire::Frame& reply) { return reply.topic != 0; }

inline CallError read_failure_reply(const wire::Frame& reply) {
  // A child says only these three of itself.
  using Kind = CallError::Kind;
  Kind kind = Kind::Threw;
  for (const Kind each : {Kind::NotMade, Kind::NotCarried}) {
    if (reply.topic == static_cast<std::uint64_t>(each) + 1) kind = each;
  }
  return {.kind = kind, .child = 0, .message = wire::read_failure(reply.fields)};
}

}  // namespace trainyard::workers
