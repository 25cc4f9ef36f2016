#include "queue/rules/queue_news.h"

#include <algorithm>
#include <charconv>
#include <ranges>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "model/command.h"
#include "model/event.h"
#include "model/plan.h"
#include "model/waiting.h"

namespace trainyard::queue {
namespace {

constexpr std::string_view kFoundRoom = "found\n";

/// Takes the text up to the next space from the front of a line.
std::string_view take_field(std::string_view& line) {
  const std::string_view field = line.substr(0, line.find(' '));
  line.remove_prefix(std::min(field.size() + 1, line.size()));
  return field;
}

void take_number(std::string_view& line, std::int64_t& into) {
  const std::string_view field = take_field(line);
  std::from_chars(field.data(), field.data() + field.size(), into);
}

}  // namespace

std::optional<std::string> QueueNews::see(const model::Turn& turn) {
  for (const model::Event& event : turn.events) {
    const auto* const batch = std::get_if<model::BatchAdded>(&event.what);
    if (batch == nullptr) continue;
    for (const model::Shape& shape : batch->plan->shapes) {
      const model::Request& request = shape.terms.request;
      requests_.push_back({.memory = request.memory, .cpus = request.cpus});
    }
  }
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
      if (waits_for_room(cause)) {
        RoomNeed need = requests_.at(shape);
        need.cause = cause;
        without_room_.emplace(shape, need);
      }
      if (cause == model::Cause::Held || cause == model::Cause::NotYet) later_.insert(shape);
    }
  }
  // Before anything has started, a lack of known obstacles means nothing.
  if (without_room_.empty() && later_.empty() && !started_) return std::nullopt;
  std::string now = word();
  if (last_word_ == now) return std::nullopt;
  last_word_ = std::move(now);
  return last_word_;
}

std::string QueueNews::word() const {
  if (without_room_.empty()) return std::string(kFoundRoom);
  RoomNeed need;
  for (const RoomNeed& each : without_room_ | std::views::values) {
    need = joined(need, each);
  }
  return fmt::format("{} {} {}\n", model::to_text(need.cause), need.memory.count, need.cpus.milli);
}

std::optional<RoomNeed> need_in(std::string_view words) {
  if (words.ends_with(kFoundRoom)) return std::nullopt;
  if (words.ends_with('\n')) words.remove_suffix(1);
  std::string_view line = words.substr(words.rfind('\n') + 1);
  RoomNeed need{.cause = model::cause_from(take_field(line))};
  take_number(line, need.memory.count);
  take_number(line, need.cpus.milli);
  return need;
}

}  // namespace trainyard::queue
