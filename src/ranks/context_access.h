// The inside of a RankContext, for who sends contexts to others: what changed goes out as text, and
// comes in as text.
//
//   {"set": {"rate": [0.1, 3]}, "remove": ["round"]}    flags: 1 private, 2 sticky
//
// Any thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "trainyard/rank_context.h"

namespace trainyard {

/// The properties of this end that the other end of a channel has. Each value that was ever set has
/// a number of its own.
using ContextMirror = std::map<std::string, std::uint64_t, std::less<>>;

/// The reason why an event cannot be sent; nothing when it can.
std::optional<EventOutcome> refused(std::string_view event, const Json& data);

class ContextAccess {
 public:
  /// The changes that give the other end the transferable properties that this context shows. It
  /// keeps those that are sticky once, however many connections lead to it.
  static std::string changes(const RankContext& context, ContextMirror& mirror,
                             ContextMirror& sticky);

  /// The properties set and removed in this context since it was made or copied.
  static std::string own_changes(const RankContext& context);

  /// Another one with all the same properties.
  static RankContext copy(const RankContext& context);

  /// Takes in what the other end has changed; as its own changes those do not count. Returns what
  /// was refused: a reserved name, other flags, a live value under that name.
  static std::vector<std::string> merge(RankContext& context, std::string_view changes);

  static void set_position(RankContext& context, detail::RankPosition position);
  static const detail::RankPosition& position(const RankContext& context);
};

}  // namespace trainyard
