// The readings of yards of the machine in sim/shared_world.h, and the rules that are checked there.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include <fmt/format.h>

#include "base/bytes.h"
#include "base/time.h"
#include "model/event.h"
#include "model/ids.h"
#include "model/resources.h"
#include "sim/shared_world.h"

namespace trainyard::sim {

model::Sampled SharedWorld::read_host(const PlayedYard& yard) const {
  model::Sampled sampled{.memory_available = kHostMemory};
  for (const RunningProcess& process : processes_) {
    const bool has = process.takes_at <= now_;
    if (has) sampled.memory_available -= process.promise.memory;
    if (process.life != yard.life) continue;
    sampled.tasks.push_back({.key = process.key, .memory = has ? process.promise.memory : Bytes{}});
  }
  std::ranges::sort(sampled.tasks, {}, [](const model::TaskSample& it) { return it.key; });
  return sampled;
}

model::GpusSampled SharedWorld::read_cards(const PlayedYard& yard) const {
  model::GpusSampled sampled;
  sampled.gpus.resize(yard.cards.size());
  for (const RunningProcess& process : processes_) {
    if (process.takes_at > now_) continue;
    const bool whole = model::wants_whole_gpus(process.promise);
    const Bytes memory = whole ? kCardMemory - gb(1) : process.promise.gpu_memory;
    for (const std::size_t card : process.cards) {
      const auto found = std::ranges::find(yard.cards, card);
      if (found == yard.cards.end()) continue;
      const auto index = static_cast<std::uint32_t>(found - yard.cards.begin());
      sampled.gpus[index].used += memory;
      if (process.life == yard.life) {
        sampled.uses.push_back({.key = process.key, .gpu = {index}, .memory = memory});
      } else {
        sampled.gpus[index].of_strangers += memory;
      }
    }
  }
  std::ranges::sort(sampled.uses);
  return sampled;
}

/// By what lives, whosever it is and whatever anybody has written.
void SharedWorld::check_promises() {
  Bytes memory;
  model::Cpus cpus;
  struct OfCard {
    Bytes memory;
    int tasks = 0;
    int whole = 0;
    int most = 0;
  };
  std::array<OfCard, kUuids.size()> cards;
  for (const RunningProcess& process : processes_) {
    memory += process.promise.memory;
    cpus = cpus + process.promise.cpus;
    for (const std::size_t card : process.cards) {
      OfCard& sum = cards.at(card);
      sum.memory += process.promise.gpu_memory;
      ++sum.tasks;
      sum.whole += model::wants_whole_gpus(process.promise) ? 1 : 0;
      const int most = process.promise.sharing.max_per_gpu;
      if (most > 0) sum.most = sum.most == 0 ? most : std::min(sum.most, most);
    }
  }
  if (memory > kHostMemory)
    complain(fmt::format("{} of {} is promised", to_text(memory), to_text(kHostMemory)));
  if (cpus > kHostCpus) complain(fmt::format("{} thousandths of 8 CPUs are promised", cpus.milli));
  for (std::size_t i = 0; i < cards.size(); ++i) {
    const OfCard& card = cards.at(i);
    if (card.memory > kCardMemory)
      complain(fmt::format("{} of card {} is promised", to_text(card.memory), i));
    if (card.whole > 0 && card.tasks > 1)
      complain(fmt::format("card {} is somebody's own and has {} tasks", i, card.tasks));
    if (card.most > 0 && card.tasks > card.most)
      complain(fmt::format("card {} has {} tasks of at most {}", i, card.tasks, card.most));
  }
}

void SharedWorld::check_waits() {
  for (const auto& yard : yards_) {
    if (yard == nullptr || yard->stopped || yard->dead) continue;
    const std::optional<Instant> wants_since = yard->wants_since_;
    if (!wants_since) continue;
    const bool has_something = std::ranges::any_of(
        processes_, [&](const RunningProcess& it) { return it.life == yard->life; });
    if (has_something) continue;
    const Duration waits = now_ - *wants_since;
    outcome_.longest_wait = std::max(outcome_.longest_wait, waits);
    if (waits > kWaitMax) complain(fmt::format("yard {} waits for ever", yard->index_));
  }
}

}  // namespace trainyard::sim
