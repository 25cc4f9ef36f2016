#include "schedule/machine_book.h"

#include <algorithm>
#include <cstdint>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "model/promises.h"

namespace trainyard::schedule {

MachineTime::MachineTime(Instant joined, std::optional<Instant> until, Duration grace)
    : joined_(joined) {
  if (until) last_term_ = std::max(joined, Instant{until->since_start - grace - kForNews});
}

bool MachineTime::is_enough_for(const Wish& wish, Instant now) const {
  const std::optional<Instant> end = end_of(wish.before);
  if (!end) return true;
  if (now >= *end) return false;
  if (wish.goes_on_where_it_was || !wish.takes) return true;
  return now + *wish.takes <= *end || joined_ + *wish.takes > *end;
}

std::optional<Instant> MachineTime::end_of(Duration before) const {
  if (!last_term_) return std::nullopt;
  const Duration whole = *last_term_ - joined_;
  return Instant{last_term_->since_start - std::min(before, whole / 2)};
}

void MachineTime::began(Duration before) {
  const std::optional<Instant> end = end_of(before);
  if (end) next_end_ = std::min(next_end_.value_or(*end), *end);
}

MachineBook::MachineBook(const model::MachineJoined& machine, const model::Policy& policy,
                         Instant at)
    : index(machine.machine),
      name(machine.name),
      capacity(machine.capacity),
      ledger(policy, capacity),
      gpus(policy, capacity),
      chooser(policy, capacity, machine.machine),
      neighbours(capacity),
      time(at, machine.until, policy.stop_grace),
      overfull(capacity.gpus.size()),
      gate_(capacity.gpus.size()) {}

std::string MachineBook::names_of(const GpuSet& gpus_there) const {
  std::vector<std::string> names;
  for (const model::GpuIndex gpu : gpus_there) names.push_back(capacity.gpus[gpu.value].label());
  return fmt::format("{} {}", names.size() == 1 ? "GPU" : "GPUs", fmt::join(names, ", "));
}

void MachineBook::see(const model::Sampled& reading) {
  was_read = true;
  ledger.see(reading);
  neighbours.host_was_read();
  ledger.set_neighbours(neighbours.on_host());
}

bool MachineBook::see(Instant at, const model::GpusSampled& reading, const model::Policy& policy) {
  for (const model::GpuFound& it : reading.found) {
    capacity.gpus[it.gpu.value] = it.what;
    gpus.learn(it.gpu, it.what.memory, memory_kept_free(policy, it.what));
    neighbours.learn(it.gpu, it.what);
  }
  if (!reading.found.empty()) chooser = GpuChooser(policy, capacity, index);
  gpus.see(at, reading);
  neighbours.gpus_were_read();
  gpus.set_neighbours(neighbours.on_cards());
  return !reading.found.empty();
}

void MachineBook::see(std::vector<model::Neighbour> its_neighbours) {
  neighbours.see(std::move(its_neighbours));
  ledger.set_neighbours(neighbours.on_host());
  gpus.set_neighbours(neighbours.on_cards());
}

void MachineBook::see(const model::LimitsChanged& limits) {
  gpus_max = limits.gpus_max;
  gpus_max_until = limits.until;
  gpus.set_drained(limits.drained);
}

model::Cause MachineBook::lack_of_gpus(Instant at, Duration linger_max) const {
  // Torch usually takes this long: that is not worth a note.
  constexpr Duration kUsual{1'000};
  const auto late = [&](const GpuLedger::Lingering& it) {
    return it.until + kUsual <= at + linger_max;
  };
  const bool some_gone =
      std::ranges::any_of(gpus.room(), [](const GpuRoom& it) { return !it.present; });
  if (some_gone || !gpus.last_resorts().empty()) {
    return model::Cause::GpusGone;
  }
  return std::ranges::any_of(gpus.lingering(), late) ? model::Cause::GpusLinger
                                                     : model::Cause::Gpus;
}

void MachineBook::begin_pass() {
  is_in_pass = false;
  loads_wait = false;
  gpu_loads_wait = false;
  disk_waits = false;
  gate_ = StartupGate(gpus.room().size());
  held_.clear();
}

void MachineBook::is_settling(const GpuSet& gpus_there, Bytes each, Instant until) {
  gate_.begins(gpus_there, each, until);
}

std::span<const GpuRoom> MachineBook::room_for_choice() const {
  return held_.empty() ? gpus.room() : std::span<const GpuRoom>(room_beside_held_);
}

std::size_t MachineBook::share_of_gpus() const {
  const std::size_t count = capacity.gpus.size();
  std::set<std::uint32_t> others = neighbours.users_on_gpus();
  for (std::uint32_t gpu = 0; gpu < count; ++gpu) {
    if (const auto user = gpus.other_user_of({gpu})) others.insert(*user);
  }
  return std::max<std::size_t>(1, count / (others.size() + 1));
}

std::size_t MachineBook::gpus_left_of_share() const {
  const auto in_use = std::ranges::count_if(gpus.room(), &GpuRoom::ours);
  // The usual case of a busy machine: other users make no difference.
  if (in_use == std::ssize(capacity.gpus)) return 0;
  const std::size_t share = share_of_gpus();
  return share - std::min(share, static_cast<std::size_t>(in_use));
}

model::Cause MachineBook::choose_gpus(const model::Request& request, std::size_t idle_max,
                                      Instant at, Duration linger_max, GpuSet& chosen) const {
  chosen.clear();
  if (request.gpus == 0) return model::Cause::None;
  std::optional<GpuSet> fitting = chooser.choose(gpus.room(), request, idle_max);
  if (!fitting) return lack_of_gpus(at, linger_max);
  if (gate_.opens_at()) {
    const std::span<const GpuRoom> room = room_for_choice();
    std::optional<GpuSet> open = chooser.choose(gate_.open(room, request), request, idle_max);
    if (!open) {
      // None at all where what is left is kept for others.
      if (auto held = chooser.choose(room, request, idle_max)) chosen = std::move(*held);
      return model::Cause::Settling;
    }
    fitting = std::move(open);
  }
  chosen = std::move(*fitting);
  return model::Cause::None;
}

std::optional<Instant> MachineBook::hold(const model::Request& request, const GpuSet& gpus_there) {
  const std::span<const GpuRoom> room = room_for_choice();
  std::vector<GpuRoom> beside(room.begin(), room.end());
  take(beside, request, gpus_there);
  room_beside_held_ = std::move(beside);
  held_.push_back({.request = request, .gpus = gpus_there});
  return gate_.opens_at();
}

void MachineBook::occupy(const model::Request& request, const GpuSet& gpus_there, Instant at,
                         Duration settle_max) {
  if (gpus_there.empty()) return;
  if (settle_max > Duration{0}) gate_.begins(gpus_there, request.gpu_memory, at + settle_max);
  if (held_.empty()) return;
  const std::span<const GpuRoom> room = gpus.room();
  room_beside_held_.assign(room.begin(), room.end());
  for (const Held& one : held_) take(room_beside_held_, one.request, one.gpus);
}

}  // namespace trainyard::schedule
