#include "run/shared_ledger.h"

#include <algorithm>
#include <chrono>
#include <tuple>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "schedule/claim.h"

namespace trainyard::run {
namespace {

/// The content of either of the two commands that reserve something.
struct Promised {
  model::AttemptKey key;
  const model::Request* promise = nullptr;
  const std::vector<model::GpuIndex>* gpus = nullptr;
};

std::optional<Promised> promised_by(const model::Command& command) {
  if (const auto* const start = std::get_if<model::StartAttempt>(&command)) {
    return Promised{.key = start->key, .promise = &start->promise, .gpus = &start->site.gpus};
  }
  if (const auto* const grant = std::get_if<model::GrantDevice>(&command)) {
    return Promised{.key = grant->key, .promise = &grant->promise, .gpus = &grant->site.gpus};
  }
  return std::nullopt;
}

/// The machine of the yard joins first.
constexpr model::MachineIndex kHere{};

bool lacks_room(model::Cause cause) {
  switch (cause) {
    case model::Cause::Cpus:
    case model::Cause::Memory:
    case model::Cause::Gpus:
    case model::Cause::GpusLinger:
    case model::Cause::GivesWay:
      return true;
    default:
      return false;
  }
}

/// Removes the amounts of a reservation whose change is not worth a new decision.
void keep_what_matters(model::HeldPromise& held) {
  held.unused = {};
  for (model::CardPromise& card : held.cards) card.unused = {};
}

std::vector<model::Neighbour> what_matters(std::vector<model::Neighbour> neighbours) {
  for (model::Neighbour& it : neighbours) {
    it.waits = {};
    it.we_wait = {};
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

OwnPromises::OwnPromises(const model::Capacity& capacity, Duration gpu_steady_after)
    : gpus_(capacity.gpus),
      processes_known_(capacity.gpus.size(), true),
      presences_(capacity.gpus.size(), {.presence = model::GpuPresence(gpu_steady_after)}) {}

std::vector<model::AttemptKey> OwnPromises::attempts_of(const model::Decision& decided) {
  std::vector<model::AttemptKey> keys;
  for (const model::Command& command : decided.commands) {
    if (const std::optional<Promised> it = promised_by(command)) keys.push_back(it->key);
  }
  return keys;
}

/// Adds what the attempt holds of each GPU. A GPU without a known UUID is left out: its driver has
/// not answered yet, and no task is assigned to it.
void OwnPromises::add_cards(model::HeldPromise& to, const Attempt& attempt) const {
  for (std::size_t i = 0; i < attempt.gpus.size(); ++i) {
    const model::Gpu& gpu = gpus_[attempt.gpus[i].value];
    if (gpu.uuid.empty()) continue;
    const Bytes measured = i < attempt.measured_on.size() ? attempt.measured_on[i] : Bytes{};
    model::HeldPromise one;
    one.cards.push_back({.uuid = gpu.uuid,
                         .memory = std::max(attempt.each, measured),
                         .unused = std::max(Bytes{}, attempt.each - measured),
                         .tasks = 1,
                         .whole = attempt.each == Bytes{},
                         .sharing = attempt.sharing,
                         .since_unix_s = attempt.gpus_since_unix_s});
    to = model::sum_of(to, one);
  }
}

model::HeldPromise OwnPromises::claim_of(const model::Decision& decided) const {
  model::HeldPromise claim;
  for (const model::Command& command : decided.commands) {
    const std::optional<Promised> it = promised_by(command);
    if (!it) continue;
    const auto found = attempts_.find(it->key.task);
    const bool is_known = found != attempts_.end() && found->second.key == it->key;
    const Attempt before = is_known ? found->second : Attempt{};
    const Bytes more = std::max(Bytes{}, it->promise->memory - before.memory);
    claim = model::sum_of(claim, {.memory = more,
                                  .unused = more,
                                  .cpus = std::max(model::Cpus{}, it->promise->cpus - before.cpus),
                                  .tasks = is_known ? 0 : 1,
                                  .since_unix_s = 0});
    // A retry in the same process keeps its GPUs; it may have any that it gets in addition.
    const bool has_gpus = !before.gpus.empty() || it->gpus->empty();
    if (has_gpus) continue;
    add_cards(claim, {.key = it->key,
                      .gpus = *it->gpus,
                      .each = it->promise->gpu_memory,
                      .sharing = it->promise->sharing,
                      .measured_on = {}});
  }
  return claim;
}

void OwnPromises::hold(const model::Decision& decided, Instant at, std::int64_t unix_s) {
  for (const model::Command& command : decided.commands) {
    const std::optional<Promised> it = promised_by(command);
    if (!it) continue;
    Attempt& attempt = attempts_[it->key.task];
    if (attempt.key != it->key || attempt.since_unix_s == 0) {
      attempt = {.key = it->key, .since_unix_s = unix_s};
    }
    attempt.memory = it->promise->memory;
    attempt.cpus = it->promise->cpus;
    if (!it->gpus->empty()) {
      if (attempt.gpus != *it->gpus) {
        attempt.gpus_since_unix_s = unix_s;
        attempt.measured_on.assign(it->gpus->size(), {});
        attempt.has_taken = false;
      }
      attempt.gpus_at = at;
      attempt.gpus = *it->gpus;
      attempt.each = it->promise->gpu_memory;
      attempt.sharing = it->promise->sharing;
    }
    const Kind kind = it->gpus->empty() ? Kind::OfHost : Kind::OfGpus;
    if (since(kind) != 0) since(kind) = unix_s;
  }
}

void OwnPromises::see_gpus(Instant at, const model::GpusSampled& reading, std::int64_t unix_s) {
  for (const model::GpuFound& found : reading.found) gpus_.at(found.gpu.value) = found.what;
  for (std::size_t i = 0; i < processes_known_.size() && i < reading.gpus.size(); ++i) {
    processes_known_[i] = reading.gpus[i].processes_known;
    auto& [presence, avoided_until_unix_s] = presences_[i];
    presence.see(reading.gpus[i].present, at);
    if (!reading.gpus[i].present) avoided_until_unix_s = 0;
    // Computed once: the clocks do not tick together, and each change is written to a file.
    const std::optional<Instant> until = presence.avoided_until();
    if (!until || avoided_until_unix_s != 0) continue;
    avoided_until_unix_s = unix_s + std::chrono::ceil<std::chrono::seconds>(*until - at).count();
  }
  for (auto& [task, attempt] : attempts_) {
    std::ranges::fill(attempt.measured_on, Bytes{});
  }
  for (const model::GpuUse& use : reading.uses) {
    const auto found = attempts_.find(use.key.task);
    if (found == attempts_.end() || found->second.key != use.key) continue;
    Attempt& attempt = found->second;
    for (std::size_t i = 0; i < attempt.gpus.size(); ++i) {
      if (attempt.gpus[i] == use.gpu) attempt.measured_on[i] += use.memory;
    }
    attempt.has_taken = attempt.has_taken || use.memory > Bytes{};
  }
}

void OwnPromises::see_reason(const model::ReasonChanged& change, std::int64_t unix_s) {
  if (lacks_room(change.reason.cause)) {
    wants_[change.shape] = change.reason;
  } else {
    wants_.erase(change.shape);
  }
  for (const Kind kind : {Kind::OfHost, Kind::OfGpus}) {
    if (oldest_want(kind) == nullptr) {
      since(kind) = 0;
    } else if (since(kind) == 0) {
      since(kind) = unix_s;
    }
  }
}

void OwnPromises::see(const model::Event& event, const model::Decision& decided,
                      std::int64_t unix_s) {
  if (const auto* const ended = std::get_if<model::AttemptEnded>(&event.what)) {
    const auto found = attempts_.find(ended->key.task);
    if (found != attempts_.end() && found->second.key == ended->key) {
      // A run that has just got something waits from now on.
      std::int64_t& waits = since(found->second.gpus.empty() ? Kind::OfHost : Kind::OfGpus);
      if (waits != 0) waits = unix_s;
      attempts_.erase(found);
    }
  } else if (const auto* const sample = std::get_if<model::Sampled>(&event.what);
             sample != nullptr && sample->machine == kHere) {
    for (auto& [task, attempt] : attempts_) attempt.measured = {};
    for (const model::TaskSample& seen : sample->tasks) {
      const auto found = attempts_.find(seen.key.task);
      if (found != attempts_.end() && found->second.key == seen.key) {
        found->second.measured = seen.memory;
      }
    }
  } else if (const auto* const gpus = std::get_if<model::GpusSampled>(&event.what);
             gpus != nullptr && gpus->machine == kHere) {
    see_gpus(event.at, *gpus, unix_s);
  }
  for (const model::Change& change : decided.changes) {
    if (const auto* const reason = std::get_if<model::ReasonChanged>(&change)) {
      see_reason(*reason, unix_s);
    }
  }
}

bool OwnPromises::is_idle(const Attempt& attempt, Instant at) const {
  if (attempt.gpus.empty() || attempt.has_taken || at - attempt.gpus_at < kIdleMax) return false;
  return std::ranges::all_of(attempt.gpus,
                             [this](model::GpuIndex gpu) { return processes_known_[gpu.value]; });
}

model::HeldPromise OwnPromises::held(Instant at) const {
  model::HeldPromise held;
  for (const auto& [task, attempt] : attempts_) {
    held.memory += std::max(attempt.memory, attempt.measured);
    held.unused += std::max(Bytes{}, attempt.memory - attempt.measured);
    held.cpus = held.cpus + attempt.cpus;
    ++held.tasks;
    const bool first = held.since_unix_s == 0 || attempt.since_unix_s < held.since_unix_s;
    if (first) held.since_unix_s = attempt.since_unix_s;
    if (!is_idle(attempt, at)) add_cards(held, attempt);
  }
  return held;
}

std::vector<model::DropOuts> OwnPromises::drop_outs() const {
  std::vector<model::DropOuts> all;
  for (std::size_t i = 0; i < gpus_.size(); ++i) {
    const int times = presences_[i].presence.drop_outs();
    if (times == 0 || gpus_[i].uuid.empty()) continue;
    all.push_back({.uuid = gpus_[i].uuid,
                   .number = gpus_[i].number,
                   .slice = gpus_[i].slice,
                   .times = times,
                   .avoided_until_unix_s = presences_[i].avoided_until_unix_s});
  }
  return all;
}

const model::Reason* OwnPromises::oldest_want(Kind kind) const {
  const auto found = std::ranges::find_if(wants_, [kind](const auto& it) {
    return (it.second.needs.gpus > 0) == (kind == Kind::OfGpus);
  });
  return found == wants_.end() ? nullptr : &found->second;
}

std::optional<model::Want> OwnPromises::want() const {
  for (const Kind kind : {Kind::OfGpus, Kind::OfHost}) {
    const model::Reason* const reason = oldest_want(kind);
    if (reason == nullptr) continue;
    return model::Want{.memory = reason->needs.memory,
                       .cpus = reason->needs.cpus,
                       .gpus = reason->needs.gpus,
                       .gpu_memory = reason->needs.gpu_memory,
                       .since_unix_s = since_.at(static_cast<std::size_t>(kind))};
  }
  return std::nullopt;
}

SharedLedger::SharedLedger(Board board, const model::Capacity& capacity, const Options& options)
    : board_(std::move(board)),
      capacity_(capacity),
      own_(capacity, options.gpu_steady_after),
      base_{.ticket = options.ticket,
            .run = options.run,
            .numbering = options.numbering,
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
    if (ours && (ours->gpus > 0) == (it.its.want->gpus > 0)) {
      it.we_wait = Duration(kMilliseconds * std::max<std::int64_t>(now - ours->since_unix_s, 0));
    }
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
