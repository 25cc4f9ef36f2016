// Whether what a yard is about to start is still free, once it has said so to its neighbours: two
// yards decide beside each other, by what each knew of the other before.
//
// A yard writes what it claims, and reads what the others have written then. Of two that write at
// once at least one reads the other's, so that nobody holds what another one holds: whoever reads
// of somebody in its way does not go on. Of two that only claim, the younger lets go and the older
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
  Keep,       ///< It is ours.
  LookAgain,  ///< Only younger ones claim it as well, and are about to let go.
  Withdraw,   ///< It is not free any more, or an older one claims it.
};

struct ClaimView {
  std::string ticket;
  model::HeldPromise claim;
  /// What there is left when all that is claimed has been started, by what was known then.
  model::Headroom left;
  /// The neighbours that were known then, and those that there are now.
  std::span<const model::Neighbour> then;
  std::span<const model::Neighbour> now;
};

/// Only what is claimed matters: whoever takes another GPU is in nobody's way.
ClaimVerdict judge_claim(const ClaimView& view);

}  // namespace trainyard::schedule
