#include "run/shared_ledger.h"

#include <algorithm>
#include <cstddef>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "base/bytes.h"
#include "model/waiting.h"
#include "schedule/claim.h"

namespace trainyard::run {
namespace {

/// Removes the amounts of a reservation whose change is not worth a new decision.
void keep_what_matters(model::HeldPromise& held) {
  held.unused = {};
  for (model::CardPromise& card : held.cards) card.unused = {};
}

std::vector<model::Neighbour> what_matters(std::vector<model::Neighbour> neighbours) {
  for (model::Neighbour& it : neighbours) {
    it.waits = {};
    keep_what_matters(it.its.held);
    keep_what_matters(it.its.claimed);
  }
  return neighbours;
}

/// Reduces what a run has reserved to what the machine has, and returns in words what was more. A
/// run that may have more of the machine than this one is not counted here, and may say so.
std::string reduce(model::HeldPromise& held, const model::Promises& its,
                   const model::Capacity& machine) {
  std::string beyond;
  if (its.memory_total <= machine.memory && held.memory > machine.memory) {
    beyond = fmt::format("{} of memory, this machine has {}", to_text(held.memory),
                         to_text(machine.memory));
    held.memory = machine.memory;
  }
  if (its.cpus_total <= machine.cpus && held.cpus > machine.cpus) {
    beyond = fmt::format("{} CPUs, this machine has {}", model::as_number(held.cpus),
                         model::as_number(machine.cpus));
    held.cpus = machine.cpus;
  }
  for (model::CardPromise& card : held.cards) {
    const auto gpu = std::ranges::find(machine.gpus, card.uuid, &model::Gpu::uuid);
    const bool is_known = gpu != machine.gpus.end() && gpu->memory > Bytes{};
    if (!is_known || card.memory <= gpu->memory) continue;
    beyond = fmt::format("{} of GPU {}, which has {}", to_text(card.memory), gpu->label(),
                         to_text(gpu->memory));
    card.memory = gpu->memory;
    card.unused = std::min(card.unused, card.memory);
  }
  held.unused = std::min(held.unused, held.memory);
  return beyond;
}

}  // namespace

SharedLedger::SharedLedger(Board board, const model::Capacity& capacity, const Options& options)
    : board_(std::move(board)),
      capacity_(capacity),
      own_(capacity, options.gpu_steady_after),
      base_{.ticket = options.ticket,
            .run = options.run,
            .name = options.name,
            .memory_total = capacity.memory,
            .cpus_total = capacity.cpus,
            .held = {},
            .claimed = {},
            .want = {}} {
  publish(promises({}));
}

model::Promises SharedLedger::promises(Instant at) const {
  model::Promises now = base_;
  now.held = own_.held(at);
  // A task that has taken more than was reserved for it counts with that, and another that has not
  // yet taken its own counts with its reservation: together that may be more than there is.
  static_cast<void>(reduce(now.held, now, capacity_));
  now.want = own_.want();
  now.drop_outs = own_.drop_outs();
  return now;
}

void SharedLedger::publish(const model::Promises& promises) {
  if (written_ == promises) return;
  board_.write(promises);
  written_ = promises;
}

/// A user can write any number into their file.
void SharedLedger::keep_within_machine(model::Neighbour& neighbour) {
  model::Promises& its = neighbour.its;
  std::string beyond = reduce(its.held, its, capacity_);
  const std::string claimed = reduce(its.claimed, its, capacity_);
  if (beyond.empty()) beyond = claimed;
  constexpr std::size_t kNotesMax = 64;
  if (beyond.empty() || doubted_.size() >= kNotesMax || !doubted_.insert(neighbour.user).second) {
    return;
  }
  board_.note(fmt::format(
      "a reservation of user {} is too large and was cut: {}",
      neighbour.user_name.empty() ? std::to_string(neighbour.user) : neighbour.user_name, beyond));
}

std::vector<model::Neighbour> SharedLedger::read() {
  constexpr std::int64_t kMilliseconds = 1'000;
  const std::int64_t now = board_.unix_s();
  const std::optional<model::Want> ours = own_.want();
  std::vector<model::Neighbour> neighbours = board_.read();
  for (model::Neighbour& it : neighbours) {
    keep_within_machine(it);
    // Each run counts the drop-outs itself.
    it.its.drop_outs.clear();
    if (!it.its.want) continue;
    const std::int64_t since = it.its.want->since_unix_s;
    it.waits = Duration(kMilliseconds * std::max<std::int64_t>(now - since, 0));
    it.goes_first =
        !ours || std::tie(since, it.its.ticket) < std::tie(ours->since_unix_s, base_.ticket);
  }
  return neighbours;
}

std::optional<model::ClaimRefused> SharedLedger::claim(const Claim& claim) {
  const std::int64_t unix_s = board_.unix_s();
  model::HeldPromise fresh = own_.claim_of(claim.decided);
  if (fresh == model::HeldPromise{}) {
    own_.hold(claim.decided, claim.at, unix_s);
    return std::nullopt;
  }
  model::Promises wanted = promises(claim.at);
  wanted.claimed = fresh;
  publish(wanted);
  const model::Headroom left = claim.left();
  std::vector<model::Neighbour> now;
  for (int looks = 0; looks < kLooksMax; ++looks) {
    if (looks > 0) board_.pause();
    now = read();
    const schedule::ClaimVerdict verdict = schedule::judge_claim({.ticket = base_.ticket,
                                                                  .claim = fresh,
                                                                  .left = left,
                                                                  .then = left.neighbours,
                                                                  .now = now});
    if (verdict == schedule::ClaimVerdict::Keep) {
      own_.hold(claim.decided, claim.at, unix_s);
      publish(promises(claim.at));
      return std::nullopt;
    }
    if (verdict == schedule::ClaimVerdict::Withdraw) break;
  }
  publish(promises(claim.at));
  told_ = now;
  return model::ClaimRefused{.attempts = OwnPromises::attempts_of(claim.decided),
                             .neighbours = std::move(now),
                             .no_more = claim.round >= Machine::kClaimRoundsMax};
}

void SharedLedger::see(const model::Turn& turn) {
  const std::int64_t unix_s = board_.unix_s();
  for (std::size_t i = 0; i < turn.events.size(); ++i) {
    own_.see(turn.events[i], turn.decisions[i], unix_s);
    at_ = turn.events[i].at;
  }
  publish(promises(at_));
}

std::optional<model::NeighboursSeen> SharedLedger::look(Look look) {
  std::vector<model::Neighbour> now = read();
  const bool is_new = look.thorough ? now != told_ : what_matters(now) != what_matters(told_);
  if (!is_new) return std::nullopt;
  told_ = now;
  return model::NeighboursSeen{.neighbours = std::move(now)};
}

}  // namespace trainyard::run
