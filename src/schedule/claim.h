// Whether the resources for tasks that a yard is about to start are still free, once it has written
// its claim for its neighbours: two yards decide concurrently, each by what it knew of the other
// before.
//
// A yard writes its claim, and then reads the claims of the others. Of two that write at once at
// least one reads the other's claim, so that no two hold the same resource: a yard that reads of
// another in its way does not go on. Of two that only claim, the younger withdraws and the older
// looks again.
//
// Pure.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "model/promises.h"
#include "model/resources.h"
#include "model/waiting.h"

namespace trainyard::schedule {

enum class ClaimVerdict : std::uint8_t {
  Keep,       ///< The claim holds.
  LookAgain,  ///< Only younger yards claim it as well, and are about to withdraw.
  Withdraw,   ///< It is not free any more, or an older yard claims it.
};

struct ClaimView {
  std::string ticket;
  model::HeldPromise claim;
  /// The room that is left when the whole claim has been started, by what was known then.
  model::Headroom left;
  /// The neighbours that were known then, and the present ones.
  std::span<const model::Neighbour> then;
  std::span<const model::Neighbour> now;
};

/// Only the claimed resources matter: a yard that takes another GPU is in nobody's way.
ClaimVerdict judge_claim(const ClaimView& view);

}  // namespace trainyard::schedule
