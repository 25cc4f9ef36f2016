#include "wire/events.h"

#include <optional>
#include <utility>
#include <variant>

#include "base/time.h"
#include "wire/model_fields.h"
#include "wire/plan_check.h"
#include "wire/value_reader.h"
#include "wire/value_writer.h"

namespace trainyard::wire {
namespace {

/// Checks that there is a plan, and that it is valid: the types of the members do not say so.
void look_at_batch(const model::BatchAdded& batch, ValueReader& from) {
  if (batch.plan == nullptr) return from.fail("batch_added.plan: is missing");
  const std::optional<Error> fault = fault_of(*batch.plan);
  if (fault) from.fail("batch_added.plan." + fault->message);
}

}  // namespace

std::string to_text(const model::Event& event) {
  const auto& [at, what] = event;
  std::string text = "{";
  if (at != Instant{}) {
    append_name(text, "at");
    append_value(text, at);
  }
  append_alternative(text, what);
  text += '}';
  return text;
}

Result<model::Event> event_from_text(std::string_view text) {
  ValueReader from(text);
  model::Event event;
  auto& [at, what] = event;
  from.read_member(from.whole(), "at", at);
  from.read_alternative(from.whole(), what);
  if (const auto* const batch = std::get_if<model::BatchAdded>(&what)) {
    if (!from.failed()) look_at_batch(*batch, from);
  }
  return std::move(from).give(std::move(event), "event");
}

}  // namespace trainyard::wire
