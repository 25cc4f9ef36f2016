#include "schedule/claim.h"

#include <algorithm>

#include "base/bytes.h"

namespace trainyard::schedule {
namespace {

using model::HeldPromise;
using model::Neighbour;

enum class Counted : std::uint8_t { HeldOnly, ClaimedToo };

HeldPromise all_of(std::span<const Neighbour> neighbours, Counted counted) {
  HeldPromise sum;
  for (const Neighbour& it : neighbours) {
    sum = model::sum_of(sum, it.its.held);
    if (counted == Counted::ClaimedToo) sum = model::sum_of(sum, it.its.claimed);
  }
  return sum;
}

/// True if other runs now hold so much more that the amount is not available any more.
template <class Amount>
bool is_taken(Amount then, Amount now, Amount left) {
  return now > then && now - then > left;
}

bool is_card_taken(const model::CardPromise& claim, const ClaimView& view, const HeldPromise& then,
                   const HeldPromise& now) {
  const model::CardPromise none;
  const auto on = [&](const HeldPromise& held) -> const model::CardPromise& {
    const model::CardPromise* const found = model::find_card(held, claim.uuid);
    return found == nullptr ? none : *found;
  };
  const model::CardPromise& before = on(then);
  const model::CardPromise& after = on(now);
  if (after.whole && !before.whole) return true;
  const auto left = std::ranges::find(view.left.gpus, claim.uuid, &model::Headroom::Card::uuid);
  const bool is_known = left != view.left.gpus.end();
  if (after.tasks > before.tasks) {
    // A GPU without other tasks may have been chosen for that, and another one be idle still.
    const bool was_idle = is_known && left->tasks == claim.tasks;
    const model::GpuSharing& ours = claim.sharing;
    const model::GpuSharing& theirs = after.sharing;
    const bool minds = ours.max_per_gpu > 0 || theirs.max_per_gpu > 0 ||
                       (ours.utilization > 0 && theirs.utilization > 0);
    if (claim.whole || minds || was_idle) return true;
  }
  if (claim.whole) return false;
  return is_known && is_taken(before.memory, after.memory, left->free);
}

bool is_in_our_way(const ClaimView& view, Counted counted) {
  const HeldPromise then = all_of(view.then, Counted::ClaimedToo);
  const HeldPromise now = all_of(view.now, counted);
  const HeldPromise& claim = view.claim;
  if (claim.memory > Bytes{} && is_taken(then.memory, now.memory, view.left.memory_free)) {
    return true;
  }
  if (claim.cpus > model::Cpus{} && is_taken(then.cpus, now.cpus, view.left.cpus_free)) return true;
  return std::ranges::any_of(claim.cards, [&](const model::CardPromise& card) {
    return is_card_taken(card, view, then, now);
  });
}

}  // namespace

ClaimVerdict judge_claim(const ClaimView& view) {
  if (!is_in_our_way(view, Counted::ClaimedToo)) return ClaimVerdict::Keep;
  if (is_in_our_way(view, Counted::HeldOnly)) return ClaimVerdict::Withdraw;
  const bool older = std::ranges::any_of(view.now, [&](const Neighbour& it) {
    return it.its.claimed != HeldPromise{} && it.its.ticket < view.ticket;
  });
  return older ? ClaimVerdict::Withdraw : ClaimVerdict::LookAgain;
}

}  // namespace trainyard::schedule
