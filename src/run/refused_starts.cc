#include "run/refused_starts.h"

#include <algorithm>
#include <variant>
#include <vector>

#include "model/status.h"

namespace trainyard::run {

void forget_starts(model::Decision& decision, std::span<const model::AttemptKey> refused) {
  const auto is_refused = [refused](model::AttemptKey key) {
    return std::ranges::find(refused, key) != refused.end();
  };
  std::erase_if(decision.commands, [&](const model::Command& command) {
    const auto* const start = std::get_if<model::StartAttempt>(&command);
    const auto* const grant = std::get_if<model::GrantDevice>(&command);
    return (start != nullptr && is_refused(start->key)) ||
           (grant != nullptr && is_refused(grant->key));
  });
  std::erase_if(decision.changes, [&](const model::Change& change) {
    const auto* const task = std::get_if<model::TaskChanged>(&change);
    if (task == nullptr || !is_refused(task->key)) return false;
    return task->status == Status::Available || task->status == Status::Training;
  });
}

}  // namespace trainyard::run
