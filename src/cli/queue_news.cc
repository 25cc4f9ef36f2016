#include "cli/queue_news.h"

#include <variant>

#include "model/command.h"
#include "model/turn.h"
#include "model/waiting.h"
#include "sys/start_program.h"
#include "sys/terminal.h"

namespace trainyard::cli {
namespace {

/// What another run that ends could change.
bool is_for_room(model::Cause cause) {
  switch (cause) {
    case model::Cause::None:
    case model::Cause::Group:
    case model::Cause::TriedFirst:
    case model::Cause::Needs:
    case model::Cause::Held:
    case model::Cause::NotYet:
    case model::Cause::Parallel:
      return false;
    default:
      return true;
  }
}

}  // namespace

void QueueNews::see(const model::Turn& turn) {
  for (const model::Decision& decision : turn.decisions) {
    for (const model::Command& command : decision.commands) {
      started_ |= std::holds_alternative<model::StartAttempt>(command);
    }
    for (const model::Change& change : decision.changes) {
      const auto* const reason = std::get_if<model::ReasonChanged>(&change);
      if (reason == nullptr) continue;
      if (is_for_room(reason->reason.cause)) {
        looking_.insert(reason->shape.value);
      } else {
        looking_.erase(reason->shape.value);
      }
    }
  }
  const bool looks = !looking_.empty();
  // Before anything has started, that nothing is known to be in the way says nothing.
  if (!looks && !started_) return;
  if (told_ && looks == looks_) return;
  told_ = true;
  looks_ = looks;
  // A queue that is gone looks at what there is when it comes back.
  static_cast<void>(sys::write_text(sys::kWordPlace, looks ? kLooksForRoom : kFoundRoom));
}

}  // namespace trainyard::cli
