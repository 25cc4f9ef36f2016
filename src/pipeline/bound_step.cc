#include "pipeline/bound_step.h"

#include <algorithm>
#include <ranges>

namespace trainyard::pipeline {

bool BoundStep::waits() const {
  return (node != nullptr && node->waits()) || !nested.empty() ||
         std::ranges::any_of(parts, [](const auto& part) { return part->waits(); });
}

void BoundStep::drop() noexcept {
  if (node) node->drop();
  for (const auto& part : std::views::reverse(parts)) part->drop();
  while (!nested.empty()) {
    NestedCall& call = *nested.back();
    nested.pop_back();
    call.step->drop();
    call.taken.store(false);
  }
}

}  // namespace trainyard::pipeline
