#include "cli/queue_news.h"

#include <cstdint>
#include <optional>
#include <string_view>
#include <variant>

#include "model/command.h"
#include "model/turn.h"
#include "model/waiting.h"
#include "schedule/queue_choice.h"

namespace trainyard::cli {

std::optional<std::string_view> QueueNews::see(const model::Turn& turn) {
  for (const model::Decision& decision : turn.decisions) {
    for (const model::Command& command : decision.commands) {
      started_ |= std::holds_alternative<model::StartAttempt>(command);
    }
    for (const model::Change& change : decision.changes) {
      const auto* const changed = std::get_if<model::ReasonChanged>(&change);
      if (changed == nullptr) continue;
      const std::uint32_t shape = changed->shape.value;
      const model::Cause cause = changed->reason.cause;
      without_room_.erase(shape);
      later_.erase(shape);
      if (schedule::waits_for_room(cause)) without_room_.insert(shape);
      if (cause == model::Cause::Held || cause == model::Cause::NotYet) later_.insert(shape);
    }
  }
  // Before anything has started, that nothing is known to be in the way says nothing.
  if (without_room_.empty() && later_.empty() && !started_) return std::nullopt;
  if (told_ == word()) return std::nullopt;
  told_ = word();
  return told_;
}

std::string_view QueueNews::word() const {
  return without_room_.empty() ? kFoundRoom : kWaitsForRoom;
}

bool still_waits_for_room(std::string_view words) { return !words.ends_with(kFoundRoom); }

}  // namespace trainyard::cli
