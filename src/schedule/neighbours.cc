#include "schedule/neighbours.h"

#include <algorithm>
#include <cmath>
#include <iterator>

namespace trainyard::schedule {
namespace {

double part_of(std::int64_t some, std::int64_t all) {
  return all <= 0 ? 0 : static_cast<double>(some) / static_cast<double>(all);
}

/// Rounded so that both sides compute the same value.
std::int64_t thousandths(double value) { return std::llround(1000 * value); }

bool holds_of(const model::Promises& its, bool on_gpus) {
  const model::HeldPromise held = model::sum_of(its.held, its.claimed);
  return on_gpus ? !held.cards.empty() : held.tasks > 0;
}

bool wants_of(const model::Promises& its, bool on_gpus) {
  return its.want && (its.want->gpus > 0) == on_gpus;
}

}  // namespace

NeighbourBook::NeighbourBook(const model::Capacity& capacity)
    : capacity_(capacity), cards_(capacity.gpus.size()) {}

void NeighbourBook::learn(model::GpuIndex gpu, const model::Gpu& what) {
  capacity_.gpus[gpu.value] = what;
  add_up();
}

void NeighbourBook::see(std::vector<model::Neighbour> neighbours) {
  all_ = std::move(neighbours);
  const auto is_here = [this](const std::string& ticket) {
    return std::ranges::any_of(all_, [&](const auto& it) { return it.its.ticket == ticket; });
  };
  std::erase_if(at_reading_, [&](const auto& it) { return !is_here(it.first); });
  for (auto it = turns_.begin(); it != turns_.end();) {
    const auto [user, on_gpus] = it->first;
    it = has_started(user, on_gpus, it->second) ? turns_.erase(it) : std::next(it);
  }
  add_up();
}

/// Whether a run that had the turn has reserved more since: it waits for something else now. A run
/// that has gone is forgotten, and the turn is not, as the user could make a new file.
bool NeighbourBook::has_started(std::uint32_t user, bool on_gpus, Turn& turn) const {
  const auto had = std::exchange(turn.runs, {});
  bool has_more = false;
  for (const model::Neighbour& it : all_) {
    const auto before = it.user == user ? had.find(it.its.ticket) : had.end();
    if (before == had.end()) continue;
    const std::int64_t has = thousandths(holding_of(it.its, on_gpus));
    has_more = has_more || has > before->second;
    turn.runs.emplace(it.its.ticket, has);
  }
  return has_more;
}

void NeighbourBook::host_was_read() {
  for (const model::Neighbour& it : all_) at_reading_[it.its.ticket].unused = it.its.held.unused;
  add_up();
}

void NeighbourBook::gpus_were_read() {
  for (const model::Neighbour& it : all_) {
    std::vector<Bytes>& of_cards = at_reading_[it.its.ticket].of_cards;
    of_cards.assign(cards_.size(), {});
    for (std::size_t i = 0; i < cards_.size(); ++i) {
      const auto* const card = model::find_card(it.its.held, capacity_.gpus[i].uuid);
      if (card != nullptr) of_cards[i] = card->unused;
    }
  }
  add_up();
}

/// False for a run that may use more than we may: we do not know where its reservations are.
bool NeighbourBook::counts_memory(const model::Promises& its) const {
  return its.memory_total <= capacity_.memory;
}
bool NeighbourBook::counts_cpus(const model::Promises& its) const {
  return its.cpus_total <= capacity_.cpus;
}

void NeighbourBook::add_up() {
  host_ = {};
  std::ranges::fill(cards_, CardNeighbours{});
  for (const model::Neighbour& it : all_) {
    const model::HeldPromise held = model::sum_of(it.its.held, it.its.claimed);
    const auto seen = at_reading_.find(it.its.ticket);
    const bool known = seen != at_reading_.end();
    if (counts_memory(it.its)) {
      const Bytes before = known ? seen->second.unused : Bytes{};
      host_.memory += held.memory;
      host_.unused += std::min(held.memory, std::max(held.unused, before));
    }
    if (counts_cpus(it.its)) host_.cpus = host_.cpus + held.cpus;
    for (std::size_t i = 0; i < cards_.size(); ++i) {
      const std::string& uuid = capacity_.gpus[i].uuid;
      const auto* const card = uuid.empty() ? nullptr : model::find_card(held, uuid);
      if (card == nullptr) continue;
      const bool seen_so = known && i < seen->second.of_cards.size();
      const Bytes before = seen_so ? seen->second.of_cards[i] : Bytes{};
      CardNeighbours& sum = cards_[i];
      sum.memory += card->memory;
      sum.unused += std::min(card->memory, std::max(card->unused, before));
      sum.tasks += card->tasks;
      sum.whole = sum.whole || card->whole;
      sum.ours = sum.ours || it.is_ours;
      sum.sharing.utilization += card->sharing.utilization;
      const int most = card->sharing.max_per_gpu;
      const bool fewer = sum.sharing.max_per_gpu == 0 || most < sum.sharing.max_per_gpu;
      if (most > 0 && fewer) sum.sharing.max_per_gpu = most;
    }
  }
  // Several files may say together what no machine has.
  host_.memory = std::min(host_.memory, capacity_.memory);
  host_.unused = std::min(host_.unused, host_.memory);
  host_.cpus = std::min(host_.cpus, capacity_.cpus);
  for (std::size_t i = 0; i < cards_.size(); ++i) {
    const Bytes memory = capacity_.gpus[i].memory;
    if (memory > Bytes{}) cards_[i].memory = std::min(cards_[i].memory, memory);
    cards_[i].unused = std::min(cards_[i].unused, cards_[i].memory);
  }
}

std::set<std::uint32_t> NeighbourBook::users_on_gpus() const {
  std::set<std::uint32_t> users;
  for (const model::Neighbour& it : all_) {
    const bool is_there = holds_of(it.its, /*on_gpus=*/true) || wants_of(it.its, /*on_gpus=*/true);
    if (!it.is_ours && is_there) users.insert(it.user);
  }
  return users;
}

bool NeighbourBook::wait_for_whole_gpu() const {
  return std::ranges::any_of(all_, [](const model::Neighbour& it) {
    return wants_of(it.its, /*on_gpus=*/true) && it.its.want->gpu_memory == Bytes{};
  });
}

double NeighbourBook::size_of(const model::Request& request, const GpuSet& gpus) const {
  if (request.gpus == 0) {
    return std::max(part_of(request.cpus.milli, capacity_.cpus.milli),
                    part_of(request.memory.count, capacity_.memory.count));
  }
  if (model::wants_whole_gpus(request)) return request.gpus;
  double size = 0;
  for (const model::GpuIndex gpu : gpus) {
    size += part_of(request.gpu_memory.count, capacity_.gpus[gpu.value].memory.count);
  }
  return size;
}

double NeighbourBook::holding_of(const model::Promises& its, bool on_gpus) const {
  const model::HeldPromise held = model::sum_of(its.held, its.claimed);
  if (!on_gpus) {
    return std::max(part_of(held.cpus.milli, capacity_.cpus.milli),
                    part_of(held.memory.count, capacity_.memory.count));
  }
  double size = 0;
  for (const model::Gpu& gpu : capacity_.gpus) {
    const auto* const card = model::find_card(held, gpu.uuid);
    if (card == nullptr) continue;
    size += card->whole ? 1 : std::min(1.0, part_of(card->memory.count, gpu.memory.count));
  }
  return size;
}

/// The reservations of the runs of a user; for our own user, without this run.
double NeighbourBook::holding_of_user(std::uint32_t user, bool on_gpus) const {
  double size = 0;
  for (const model::Neighbour& it : all_) {
    if (it.user == user) size += holding_of(it.its, on_gpus);
  }
  return size;
}

double NeighbourBook::our_share(bool on_gpus) const {
  // The users of runs that hold or want some of it; we ourselves are about to.
  std::set<std::uint32_t> others;
  int runs_of_ours = 1;
  for (const model::Neighbour& it : all_) {
    if (!holds_of(it.its, on_gpus) && !wants_of(it.its, on_gpus)) continue;
    if (it.is_ours) ++runs_of_ours;
    if (!it.is_ours) others.insert(it.user);
  }
  const double all = on_gpus ? static_cast<double>(capacity_.gpus.size()) : 1.0;
  return all / static_cast<double>(others.size() + 1) / runs_of_ours;
}

/// Whether one of the GPUs that would be taken is large enough for it. On the host any part counts:
/// smaller tasks would otherwise take what must add up until it is enough for a large one.
bool NeighbourBook::could_use(const model::Want& want, const Starter& starter) const {
  if (want.gpus == 0) return true;
  return std::ranges::any_of(starter.gpus, [&](model::GpuIndex gpu) {
    return want.gpu_memory <= capacity_.gpus[gpu.value].memory;
  });
}

/// False if the user has no turn now.
bool NeighbourBook::use_turn(const model::Neighbour& run, bool on_gpus, Instant at) {
  // A user who has not been in the way for that long starts over.
  std::erase_if(turns_, [at](const auto& it) { return at - it.second.last >= it.second.lost; });
  Turn& turn = turns_.try_emplace({run.user, on_gpus}, Turn{.first = at, .last = at}).first->second;
  turn.runs.try_emplace(run.its.ticket, thousandths(holding_of(run.its, on_gpus)));
  turn.last = at;
  if (at - turn.first >= kPatience + turn.lost) {
    turn.first = at;
    turn.lost = std::min(turn.lost * 2, kTurnLostMax);
  }
  return at - turn.first < kPatience;
}

bool NeighbourBook::gives_way(const Starter& starter, Instant at) {
  if (all_.empty()) return false;
  const bool on_gpus = starter.request.gpus > 0;
  const bool too_much = thousandths(starter.has + size_of(starter.request, starter.gpus)) >
                        thousandths(our_share(on_gpus));
  double our_user_has = starter.has;
  for (const model::Neighbour& it : all_) {
    if (it.is_ours) our_user_has += holding_of(it.its, on_gpus);
  }
  for (const model::Neighbour& it : all_) {
    if (!wants_of(it.its, on_gpus) || it.waits < kFreshWait) continue;
    // By the same rule that run waits for us, whatever it has. If both waited, neither would start.
    if (it.we_wait >= kLongWait && !it.goes_first) continue;
    const auto& want = it.its.want;
    if (!want || !could_use(*want, starter)) continue;
    const bool waits_long = it.waits >= kLongWait && it.goes_first;
    // Run by run within our user, and else user by user: another file is not another share.
    const std::int64_t theirs =
        thousandths(it.is_ours ? holding_of(it.its, on_gpus) : holding_of_user(it.user, on_gpus));
    const std::int64_t ours = thousandths(it.is_ours ? starter.has : our_user_has);
    const bool before_us = theirs < ours || (theirs == ours && it.goes_first);
    if (!waits_long && !(too_much && before_us)) continue;
    if (use_turn(it, on_gpus, at)) return true;
  }
  return false;
}

}  // namespace trainyard::schedule
