#include "cli/queue_news.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <ranges>
#include <string>
#include <string_view>
#include <variant>

#include "model/command.h"
#include "model/turn.h"
#include "schedule/queue_choice.h"

namespace trainyard::cli {
namespace {

constexpr std::string_view kFoundRoom = "found\n";

}  // namespace

std::optional<std::string> QueueNews::see(const model::Turn& turn) {
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
      if (schedule::waits_for_room(cause)) without_room_.emplace(shape, cause);
      if (cause == model::Cause::Held || cause == model::Cause::NotYet) later_.insert(shape);
    }
  }
  // Before anything has started, that nothing is known to be in the way says nothing.
  if (without_room_.empty() && later_.empty() && !started_) return std::nullopt;
  if (told_ == word()) return std::nullopt;
  told_ = word();
  return told_;
}

std::string QueueNews::word() const {
  if (without_room_.empty()) return std::string(kFoundRoom);
  return std::string(model::to_text(std::ranges::min(without_room_ | std::views::values))) + '\n';
}

std::optional<model::Cause> cause_in(std::string_view words) {
  if (words.ends_with(kFoundRoom)) return std::nullopt;
  if (words.ends_with('\n')) words.remove_suffix(1);
  return model::cause_from(words.substr(words.rfind('\n') + 1));
}

}  // namespace trainyard::cli
