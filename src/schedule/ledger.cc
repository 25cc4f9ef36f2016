#include "schedule/ledger.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "base/check.h"

namespace trainyard::schedule {

void FreeRoom::set(model::MachineIndex machine, const Room& room) {
  // Negative room is not enough for anything, and must not be taken for that of an unknown machine.
  put(machine.value,
      {.cpus = std::max(room.cpus, kNone.cpus), .memory = std::max(room.memory, kNone.memory)});
}

void FreeRoom::forget(model::MachineIndex machine) { put(machine.value, kNone); }

void FreeRoom::grow(std::size_t machines) {
  const std::size_t leaves = std::bit_ceil(machines);
  std::vector<Room> nodes(2 * leaves, kNone);
  std::copy_n(nodes_.begin() + static_cast<std::ptrdiff_t>(leaves_), leaves_,
              nodes.begin() + static_cast<std::ptrdiff_t>(leaves));
  nodes_ = std::move(nodes);
  leaves_ = leaves;
  for (std::size_t node = leaves - 1; node > 0; --node) take_from_children(node);
}

void FreeRoom::take_from_children(std::size_t node) {
  const Room& left = nodes_[2 * node];
  const Room& right = nodes_[2 * node + 1];
  nodes_[node] = {.cpus = std::max(left.cpus, right.cpus),
                  .memory = std::max(left.memory, right.memory)};
}

void FreeRoom::put(std::size_t place, const Room& room) {
  if (place >= leaves_) grow(place + 1);
  std::size_t node = leaves_ + place;
  nodes_[node] = room;
  for (node /= 2; node > 0; node /= 2) take_from_children(node);
}

/// Up from where it begins as long as there is nothing, and then down to the first.
std::optional<model::MachineIndex> FreeRoom::first(model::MachineIndex from,
                                                   const Room& enough) const {
  if (from.value >= leaves_) return std::nullopt;
  std::size_t node = leaves_ + from.value;
  while (true) {
    if (has(node, enough)) {
      if (node >= leaves_) {
        return model::MachineIndex{static_cast<std::uint32_t>(node - leaves_)};
      }
      node *= 2;
      continue;
    }
    // The next one to the right, on the lowest level on which there is one.
    while (node % 2 == 1) node /= 2;
    if (node == 0) return std::nullopt;
    ++node;
  }
}

Bytes memory_kept_free(const model::Policy& policy, const model::Capacity& capacity) {
  const double unused = 1 - std::clamp(policy.memory_utilization_max, 0.0, 1.0);
  const Bytes by_utilization{
      static_cast<std::int64_t>(static_cast<double>(capacity.memory.count) * unused)};
  return std::max(policy.memory_remain, by_utilization);
}

Ledger::Ledger(const model::Policy& policy, const model::Capacity& capacity)
    : capacity_(capacity),
      kept_free_(schedule::memory_kept_free(policy, capacity)),
      available_(capacity.memory) {}

void Ledger::see(const model::Sampled& reading) {
  available_ = reading.memory_available;
  cpu_used_by_others_ = reading.cpu_used_by_others;
  disk_ = reading.disk;
  disk_of_ended_ = {};
  disk_promised_ = {};
  // A task that the reading does not mention had no memory then: it is just being started, or it is
  // gone and its end is not reported yet. Both lists are in order of task.
  auto sample = reading.tasks.begin();
  for (auto& [task, holding] : holdings_) {
    while (sample != reading.tasks.end() && sample->key.task < task) ++sample;
    const bool seen = sample != reading.tasks.end() && sample->key.task == task;
    take_out(holding);
    holding.measured = seen ? sample->memory : Bytes{};
    put_in(holding);
    disk_promised_ += disk_of(holding.promise);
  }
  show();
}

void Ledger::set_neighbours(const HostNeighbours& neighbours) {
  neighbours_ = neighbours;
  show();
}

void Ledger::show_in(FreeRoom& all, model::MachineIndex machine) {
  all_ = &all;
  machine_ = machine;
  show();
}

void Ledger::show() {
  if (all_ != nullptr) all_->set(machine_, {.cpus = cpus_free(), .memory = memory_free()});
}

void Ledger::promise(model::TaskIndex task, const model::Request& request) {
  const auto [it, fresh] = holdings_.try_emplace(task, Holding{.promise = request, .measured = {}});
  check(fresh, "a task is promised something once at a time");
  put_in(it->second);
  cpus_promised_ = cpus_promised_ + request.cpus;
  disk_promised_ += disk_of(request);
  show();
}

void Ledger::change(model::TaskIndex task, const model::Request& by) {
  const auto found = holdings_.find(task);
  check(found != holdings_.end(), "only a promise that was made is changed");
  Holding& holding = found->second;
  take_out(holding);
  holding.promise.memory += by.memory;
  holding.promise.cpus = holding.promise.cpus + by.cpus;
  put_in(holding);
  cpus_promised_ = cpus_promised_ + by.cpus;
  show();
}

void Ledger::release(model::TaskIndex task) {
  const auto found = holdings_.find(task);
  check(found != holdings_.end(), "only what was promised is released");
  disk_of_ended_ += disk_of(found->second.promise);
  take_back(task);
}

void Ledger::take_back(model::TaskIndex task) {
  const auto found = holdings_.find(task);
  check(found != holdings_.end(), "only what was promised is taken back");
  take_out(found->second);
  cpus_promised_ = cpus_promised_ - found->second.promise.cpus;
  disk_promised_ -= disk_of(found->second.promise);
  // The last reading counted what it had then as taken; it is gone now.
  available_ += found->second.measured;
  holdings_.erase(found);
  show();
}

Bytes Ledger::memory_free() const {
  return std::min(capacity_.memory - held_ - neighbours_.memory,
                  available_ - outstanding_ - neighbours_.unused) -
         kept_free_;
}

Bytes Ledger::memory_free_alone() const {
  return std::min(capacity_.memory - neighbours_.memory,
                  available_ + measured_ - neighbours_.unused) -
         kept_free_;
}

Bytes Ledger::memory_of_others() const {
  const Bytes of_neighbours = neighbours_.memory - neighbours_.unused;
  return std::max(Bytes{}, capacity_.memory - available_ - measured_ - of_neighbours);
}

Bytes Ledger::memory_held_by(model::TaskIndex task) const {
  const auto found = holdings_.find(task);
  check(found != holdings_.end(), "only a running task holds something");
  return std::max(found->second.promise.memory, found->second.measured);
}

Bytes Ledger::memory_measured_of(model::TaskIndex task) const {
  const auto found = holdings_.find(task);
  check(found != holdings_.end(), "only a running task has something");
  return found->second.measured;
}

int Ledger::tasks_with_cpus() const {
  return static_cast<int>(std::ranges::count_if(
      holdings_, [](const auto& it) { return it.second.promise.cpus > model::Cpus{}; }));
}

int Ledger::tasks_with_disk() const {
  return static_cast<int>(std::ranges::count_if(
      holdings_, [](const auto& it) { return it.second.promise.disk > Bytes{}; }));
}

Bytes Ledger::disk_of(const model::Request& request) const {
  return disk_ ? std::min(request.disk, disk_->total) : Bytes{};
}

std::optional<Bytes> Ledger::disk_free() const {
  if (!disk_) return std::nullopt;
  return disk_->free - disk_promised_ - disk_of_ended_;
}

void Ledger::take_out(const Holding& holding) {
  held_ -= std::max(holding.promise.memory, holding.measured);
  outstanding_ -= std::max(Bytes{}, holding.promise.memory - holding.measured);
  measured_ -= holding.measured;
}

void Ledger::put_in(const Holding& holding) {
  held_ += std::max(holding.promise.memory, holding.measured);
  outstanding_ += std::max(Bytes{}, holding.promise.memory - holding.measured);
  measured_ += holding.measured;
}

}  // namespace trainyard::schedule
