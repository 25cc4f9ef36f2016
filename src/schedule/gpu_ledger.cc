#include "schedule/gpu_ledger.h"

#include <utility>

#include "base/check.h"

namespace trainyard::schedule {
namespace {

/// The memory of an ended task counts as free when the memory in use by others has grown by no more
/// than this.
constexpr Bytes kSlack = mib(64);

/// A program whose GPU is gone may hang in the driver for a while before it fails.
constexpr Duration kLostMax{60'000};

}  // namespace

GpuLedger::GpuLedger(const model::Policy& policy, const model::Capacity& capacity)
    : linger_max_(policy.gpu_linger_max),
      avoids_others_(policy.gpu_avoids_others),
      room_(capacity.gpus.size()) {
  for (const model::Gpu& gpu : capacity.gpus) {
    cards_.push_back({.total = gpu.memory,
                      .kept_free = memory_kept_free(policy, gpu),
                      .presence = model::GpuPresence(policy.gpu_steady_after)});
  }
  update_all();
}

void GpuLedger::see(Instant at, const model::GpusSampled& reading) {
  check(reading.gpus.size() == cards_.size(), "a reading of all GPUs");
  for (auto& [task, holding] : holdings_) measure(task, holding, reading, at);
  last_resorts_.clear();
  for (std::uint32_t index = 0; index < cards_.size(); ++index) {
    const model::GpuReading& seen = reading.gpus[index];
    Card& card = cards_[index];
    card.used = seen.used;
    card.of_strangers = seen.of_strangers;
    card.known = seen.processes_known;
    card.other_user = seen.other_user;
    card.presence.see(seen.present, at);
    if (card.presence.is_last_resort()) last_resorts_.push_back({index});
    // If the driver does not say which process has what, all that is reserved is ours.
    const Bytes ours = card.known ? measured_on({index}) : promised_on({index});
    const Bytes not_ours = std::max(Bytes{}, card.used - ours);
    // Memory that an ended task still has is in use by no task, so it looks like that of others. It
    // is gone when others have no more than they had before.
    const bool freed = !card.known || not_ours <= card.others + kSlack;
    std::erase_if(lingering_, [&](const Lingering& it) {
      return it.gpu.value == index && (freed || it.until <= at || !seen.present);
    });
    const bool waited_for =
        std::ranges::any_of(lingering_, [&](const Lingering& it) { return it.gpu.value == index; });
    // The memory of others is not seen clearly while that of an ended task is about to go.
    card.others = waited_for ? std::min(card.others, not_ours) : not_ours;
  }
  update_all();
}

void GpuLedger::measure(model::TaskIndex task, Holding& holding, const model::GpusSampled& reading,
                        Instant at) {
  const auto first = std::ranges::lower_bound(
      reading.uses, task, {}, [](const model::GpuUse& use) { return use.key.task; });
  bool steady = true;
  for (std::size_t i = 0; i < holding.gpus.size(); ++i) {
    const model::GpuReading& card = reading.gpus[holding.gpus[i].value];
    holding.of_strangers[i] = std::min(holding.of_strangers[i], card.of_strangers);
    if (!card.present) {
      holding.lost = holding.gpus[i];
      holding.lost_at = at;
    }
    const Bytes before = std::exchange(holding.measured[i], {});
    for (auto use = first; use != reading.uses.end() && use->key.task == task; ++use) {
      if (use->gpu == holding.gpus[i]) holding.measured[i] += use->memory;
    }
    const Bytes now = holding.measured[i];
    holding.peak = std::max(holding.peak, now);
    const bool took_it = 2 * now.count >= holding.each.count && 20 * now.count <= 21 * before.count;
    steady = steady && (took_it || !card.processes_known);
  }
  holding.settled = holding.settled || steady;
}

void GpuLedger::learn(model::GpuIndex gpu, Bytes total, Bytes kept_free) {
  cards_[gpu.value].total = total;
  cards_[gpu.value].kept_free = kept_free;
  update(gpu);
}

void GpuLedger::promise(model::TaskIndex task, const GpuSet& gpus, Bytes each,
                        const model::GpuSharing& sharing) {
  if (gpus.empty()) return;
  Holding holding{.gpus = gpus,
                  .each = each,
                  .sharing = sharing,
                  .measured = std::vector<Bytes>(gpus.size()),
                  .peak = {},
                  .of_strangers = {},
                  .lost = {},
                  .lost_at = {}};
  for (const model::GpuIndex gpu : gpus) {
    holding.of_strangers.push_back(cards_[gpu.value].of_strangers);
  }
  const bool fresh = holdings_.try_emplace(task, std::move(holding)).second;
  check(fresh, "a task is promised GPUs once at a time");
  for (const model::GpuIndex gpu : gpus) update(gpu);
}

void GpuLedger::change(model::TaskIndex task, Bytes each) {
  const auto found = holdings_.find(task);
  check(found != holdings_.end(), "only a promise that was made is changed");
  found->second.each = each;
  // The task allocates its memory again when it trains again.
  found->second.settled = false;
  for (const model::GpuIndex gpu : found->second.gpus) update(gpu);
}

void GpuLedger::release(model::TaskIndex task, Instant at) {
  const auto found = holdings_.find(task);
  if (found == holdings_.end()) return;
  const std::vector<Share> shares = shares_of(task);
  const GpuSet gpus = found->second.gpus;
  holdings_.erase(found);
  for (const Share& share : shares) {
    // The memory of a dedicated GPU has no reservation and perhaps no sample.
    const Bytes memory = share.whole ? cards_[share.gpu.value].total : share.memory;
    lingering_.push_back(
        {.gpu = share.gpu, .memory = memory, .seen = share.memory, .until = at + linger_max_});
    update(share.gpu);
  }
}

void GpuLedger::take_back(model::TaskIndex task) {
  const auto found = holdings_.find(task);
  if (found == holdings_.end()) return;
  const GpuSet gpus = found->second.gpus;
  holdings_.erase(found);
  for (const model::GpuIndex gpu : gpus) update(gpu);
}

void GpuLedger::set_neighbours(std::span<const CardNeighbours> neighbours) {
  check(neighbours.size() == cards_.size(), "neighbours of all GPUs");
  for (std::uint32_t index = 0; index < cards_.size(); ++index) {
    if (cards_[index].neighbours == neighbours[index]) continue;
    cards_[index].neighbours = neighbours[index];
    update({index});
  }
}

void GpuLedger::set_drained(const GpuSet& gpus) {
  for (std::uint32_t index = 0; index < cards_.size(); ++index) {
    cards_[index].drained = std::ranges::find(gpus, model::GpuIndex{index}) != gpus.end();
  }
  update_all();
}

void GpuLedger::let_go(Instant at) {
  const auto over = std::erase_if(lingering_, [at](const Lingering& it) { return it.until <= at; });
  if (over > 0) update_all();
}

std::vector<GpuRoom> GpuLedger::room_alone() const {
  std::vector<GpuRoom> alone(cards_.size());
  for (std::uint32_t index = 0; index < cards_.size(); ++index) {
    const Card& card = cards_[index];
    // The memory that others have in use includes a part of what neighbours hold: the larger of the
    // two sums counts.
    const Bytes not_ours = std::max(card.others + card.neighbours.unused, card.neighbours.memory);
    alone[index] = {.present = room_[index].present,
                    .free = card.total - not_ours - card.kept_free,
                    .avoided = room_[index].avoided};
  }
  return alone;
}

std::optional<Instant> GpuLedger::first_linger_end() const {
  if (lingering_.empty()) return std::nullopt;
  return std::ranges::min(lingering_, {}, &Lingering::until).until;
}

std::vector<GpuLedger::Share> GpuLedger::shares_of(model::TaskIndex task) const {
  std::vector<Share> shares;
  const auto found = holdings_.find(task);
  if (found == holdings_.end()) return shares;
  const Holding& holding = found->second;
  for (std::size_t i = 0; i < holding.gpus.size(); ++i) {
    shares.push_back({.gpu = holding.gpus[i],
                      .memory = std::max(holding.each, holding.measured[i]),
                      .whole = holding.each == Bytes{},
                      .sharing = holding.sharing});
  }
  return shares;
}

bool GpuLedger::has_settled(model::TaskIndex task) const {
  const auto found = holdings_.find(task);
  return found == holdings_.end() || found->second.settled;
}

void GpuLedger::settle(model::TaskIndex task) {
  const auto found = holdings_.find(task);
  if (found != holdings_.end()) found->second.settled = true;
}

Bytes GpuLedger::peak_of(model::TaskIndex task) const {
  const auto found = holdings_.find(task);
  return found == holdings_.end() ? Bytes{} : found->second.peak;
}

std::optional<model::GpuIndex> GpuLedger::lost_gpu_of(model::TaskIndex task, Instant at) const {
  const auto found = holdings_.find(task);
  if (found == holdings_.end() || !found->second.lost) return std::nullopt;
  return at - found->second.lost_at <= kLostMax ? found->second.lost : std::nullopt;
}

std::optional<GpuLedger::Crowding> GpuLedger::crowding_of(model::TaskIndex task) const {
  const auto found = holdings_.find(task);
  if (found == holdings_.end()) return std::nullopt;
  const Holding& holding = found->second;
  for (std::size_t i = 0; i < holding.gpus.size(); ++i) {
    const model::GpuIndex gpu = holding.gpus[i];
    const Card& card = cards_[gpu.value];
    if (!card.known) continue;
    Crowding crowding{
        .gpu = gpu,
        .by_tasks = {},
        .by_strangers = std::max(Bytes{}, card.of_strangers - holding.of_strangers[i])};
    for (const auto& [other, its] : holdings_) {
      if (other == task) continue;
      for (std::size_t place = 0; place < its.gpus.size(); ++place) {
        if (its.gpus[place] == gpu) crowding.by_tasks += its.excess(place);
      }
    }
    if (crowding.by_tasks > kSlack || crowding.by_strangers > kSlack) return crowding;
  }
  return std::nullopt;
}

Bytes GpuLedger::excess_on(model::TaskIndex task, model::GpuIndex gpu) const {
  const auto found = holdings_.find(task);
  if (found == holdings_.end()) return {};
  const Holding& holding = found->second;
  for (std::size_t i = 0; i < holding.gpus.size(); ++i) {
    if (holding.gpus[i] == gpu) return holding.excess(i) > kSlack ? holding.excess(i) : Bytes{};
  }
  return {};
}

bool GpuLedger::is_overfull(model::GpuIndex gpu, std::optional<model::TaskIndex> without) const {
  const Card& card = cards_[gpu.value];
  const bool settles =
      std::ranges::any_of(lingering_, [gpu](const Lingering& it) { return it.gpu == gpu; });
  if (!card.known || card.presence.gone_since() || settles) return false;
  Bytes used = card.used;
  Bytes outstanding;
  for (const auto& [task, holding] : holdings_) {
    for (std::size_t i = 0; i < holding.gpus.size(); ++i) {
      if (holding.gpus[i] != gpu) continue;
      if (task == without) {
        used = used - holding.measured[i];
      } else {
        outstanding += std::max(Bytes{}, holding.each - holding.measured[i]);
      }
    }
  }
  return outstanding > Bytes{} && used + outstanding > card.total;
}

Bytes GpuLedger::promised_on(model::GpuIndex gpu) const {
  Bytes sum;
  for (const auto& [task, holding] : holdings_) {
    const bool on_it = std::ranges::find(holding.gpus, gpu) != holding.gpus.end();
    // A task that holds a whole GPU has reserved all of its memory.
    if (on_it) sum += holding.each == Bytes{} ? cards_[gpu.value].total : holding.each;
  }
  return sum;
}

Bytes GpuLedger::measured_on(model::GpuIndex gpu) const {
  Bytes sum;
  for (const auto& [task, holding] : holdings_) {
    for (std::size_t i = 0; i < holding.gpus.size(); ++i) {
      if (holding.gpus[i] == gpu) sum += holding.measured[i];
    }
  }
  return sum;
}

void GpuLedger::update_all() {
  for (std::uint32_t index = 0; index < cards_.size(); ++index) update({index});
}

void GpuLedger::update(model::GpuIndex gpu) {
  const Card& card = cards_[gpu.value];
  GpuRoom now{.present = !card.presence.is_avoided() || card.presence.is_last_resort(),
              .of_others = card.others,
              .avoided = avoided_for(gpu).has_value() || card.drained};
  Bytes held;
  Bytes promised;
  Bytes outstanding;  // Promised, and not taken at the last reading.
  for (const auto& [task, holding] : holdings_) {
    for (std::size_t i = 0; i < holding.gpus.size(); ++i) {
      if (holding.gpus[i] != gpu) continue;
      ++now.holders;
      now.ours = true;
      now.whole = now.whole || holding.each == Bytes{};
      now.sharers.add(holding.sharing);
      held += std::max(holding.each, holding.measured[i]);
      promised += holding.each;
      outstanding += std::max(Bytes{}, holding.each - holding.measured[i]);
    }
  }
  const CardNeighbours& neighbours = card.neighbours;
  now.holders += neighbours.tasks;
  now.whole = now.whole || neighbours.whole;
  now.ours = now.ours || neighbours.ours;
  held += neighbours.memory;
  outstanding += neighbours.unused;
  // If the driver does not say which process has what, memory in use is taken to be ours, or a
  // neighbour's, first.
  if (!card.known) outstanding = std::max(Bytes{}, promised + neighbours.memory - card.used);
  // The first of the tasks reports the memory for all of them.
  constexpr int kTasksMax = 1'000;
  for (int i = 0; i < std::min(neighbours.tasks, kTasksMax); ++i) {
    now.sharers.add(i == 0 ? neighbours.sharing : model::GpuSharing{});
  }
  for (const Lingering& gone : lingering_) {
    if (gone.gpu != gpu) continue;
    ++now.holders;
    held += gone.memory;
  }
  now.free = std::min(card.total - held, card.total - card.used - outstanding) - card.kept_free;
  room_[gpu.value] = now;
}

}  // namespace trainyard::schedule
