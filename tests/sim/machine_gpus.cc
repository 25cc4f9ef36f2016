// The part of the made-up machine that plays the GPUs: what tasks take of their memory, what the
// driver shows of it, and what happens when there is no more.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/time.h"
#include "model/event.h"
#include "model/ids.h"
#include "model/plan.h"
#include "sim/behaviour.h"
#include "sim/faults.h"
#include "sim/machine.h"
#include "sim/workload.h"

namespace trainyard::sim {
void MadeUpMachine::give_gpus(Process& process, const std::vector<model::GpuIndex>& gpus) {
  if (gpus.empty()) return;
  process.gpus = gpus;
  process.gpus_since = now();
}

/// On each of its GPUs.
Bytes MadeUpMachine::gpu_use(const Process& process) const {
  const Behaviour& behaviour = process.behaviour;
  if (process.gpus.empty() || !process.since) return {};
  const std::int64_t whole = std::max<std::int64_t>(1, behaviour.runs.count());
  const Instant from = std::max(process.gpus_since, *process.since);
  const std::int64_t done = (now() - from).count() * 1000 / whole;
  if (done < behaviour.gpu_after_share) return {};
  const bool makes_do = behaviour.makes_do && process.gpu_memory_max > Bytes{};
  return makes_do ? std::min(behaviour.gpu_need, process.gpu_memory_max) : behaviour.gpu_need;
}

Bytes MadeUpMachine::used_on(model::GpuIndex gpu) const {
  Bytes used = cards_[gpu.value].of_others;
  for (const auto& [task, process] : processes_) {
    if (std::ranges::find(process.gpus, gpu) != process.gpus.end()) used += gpu_use(process);
  }
  for (const Leftover& left : leftovers_) {
    if (left.gpu == gpu && left.until > now()) used += left.memory;
  }
  return used;
}

/// They run out of it though there is more.
void MadeUpMachine::end_those_at_their_caps() {
  std::vector<model::TaskIndex> over;
  for (const auto& [task, process] : processes_) {
    const Bytes most = process.gpu_memory_max;
    const bool capped = process.behaviour.obeys_cap && most > Bytes{} && !process.waits;
    if (capped && gpu_use(process) > most) over.push_back(task);
  }
  for (const model::TaskIndex task : over) {
    world_.counts.count(Fault::AtItsCap);
    Process& process = processes_.at(task);
    process.gpu_peak = std::max(process.gpu_peak, process.gpu_memory_max);
    run_out_of_gpu(task);
  }
}

bool MadeUpMachine::was_at_its_cap(const Process& process) {
  return process.behaviour.obeys_cap && process.gpu_memory_max > Bytes{} &&
         process.gpu_peak.count * 10 >= process.gpu_memory_max.count * 9;
}

/// On a GPU that has no more it is the one that has most that asks for more, or just anybody.
void MadeUpMachine::fill_gpus() {
  end_those_at_their_caps();
  for (std::uint32_t index = 0; index < cards_.size(); ++index) {
    while (used_on({index}) > workload_.gpus[index].memory) {
      std::optional<model::TaskIndex> largest;
      std::vector<model::TaskIndex> there;
      for (const auto& [task, process] : processes_) {
        const auto& gpus = process.gpus;
        if (std::ranges::find(gpus, model::GpuIndex{index}) == gpus.end()) continue;
        if (gpu_use(process) == Bytes{}) continue;
        there.push_back(task);
        if (!largest || gpu_use(process) > gpu_use(processes_.at(*largest))) largest = task;
      }
      if (!largest) break;
      run_out_of_gpu(random_.one_in(2) ? there[random_.below(there.size())] : *largest);
    }
  }
}

void MadeUpMachine::run_out_of_gpu(model::TaskIndex task) {
  world_.counts.count(Fault::GpuOutOfMemory);
  Process& process = processes_.at(task);
  if (process.killed) return die(task, process.number, model::KilledBy{.signal = kSigkill});
  const model::Shape& shape = shape_of(task);
  if (!shape.terms.two_phase || process.waits) {
    process.out_of_gpu = !shape.terms.two_phase;
    return die(task, process.number, model::ExitedWith{1});
  }
  // Its earlier plans are void.
  process.number = world_.agenda.number();
  // It gives back what it has until it trains again.
  process.gpus_since = now() + Duration{1'000'000'000};
  tell(model::StageReported{.key = process.key,
                            .said = model::Said::OutOfMemory,
                            .message = "CUDA out of memory",
                            .of_gpu = true});
  if (shape.terms.ranks > 0) return start_over(process);
  process.waits = true;
}

void MadeUpMachine::leave_gpus(const Process& process) {
  const Bytes had = gpu_use(process);
  if (process.gpus.empty()) return;
  look_at_gpus_after(Duration{static_cast<std::int64_t>(20 + random_.below(300))});
  const Duration lingers = process.behaviour.gpu_lingers;
  if (had == Bytes{} || lingers == Duration{0}) return;
  world_.counts.count(lingers > workload_.policy.gpu_linger_max ? Fault::GpuMemoryStays
                                                                : Fault::GpuMemoryLingers);
  for (const model::GpuIndex gpu : process.gpus) {
    leftovers_.push_back({.gpu = gpu, .memory = had, .until = now() + lingers});
  }
  look_at_gpus_after(lingers);
}

void MadeUpMachine::look_at_gpus_after(Duration after) {
  at(now() + after, [this] {
    if (samples_delayed_ == 0) tell(read_gpus());
  });
}

model::GpusSampled MadeUpMachine::read_gpus() {
  // The process that requests too much notices it, now or just after the look.
  if (random_.one_in(2)) {
    fill_gpus();
  } else {
    at(now() + Duration{1}, [this] { fill_gpus(); });
  }
  std::erase_if(leftovers_, [this](const Leftover& it) { return it.until <= now(); });
  model::GpusSampled reading;
  for (std::uint32_t index = 0; index < cards_.size(); ++index) {
    const bool late = now() < workload_.answer_at[index].value_or(now());
    const bool there = cards_[index].gone == 0 && !late;
    if (there && workload_.gpus[index].late && !std::exchange(cards_[index].found, true)) {
      world_.counts.count(Fault::GpuLate);
      reading.found.push_back({.gpu = {index}, .what = workload_.gpus[index]});
    }
    // Others may have more than there is for a moment, as far as this goes; the driver has not.
    const Bytes used = std::min(used_on({index}), workload_.gpus[index].memory);
    reading.gpus.push_back(
        {.present = there,
         .used = there ? used : Bytes{},
         .of_strangers = there && gpus_unnamed_ == 0 ? cards_[index].of_others : Bytes{},
         .processes_known = gpus_unnamed_ == 0});
    if (cards_[index].other_users > 0 && gpus_unnamed_ == 0) {
      reading.gpus.back().other_user = 1000U + index;
    }
  }
  for (auto& [task, process] : processes_) {
    const Bytes use = gpu_use(process);
    process.gpu_peak = std::max(process.gpu_peak, use);
    if (use == Bytes{} || gpus_unnamed_ > 0 || !process.behaviour.says_started) continue;
    for (const model::GpuIndex gpu : process.gpus) {
      if (cards_[gpu.value].gone > 0) continue;
      reading.uses.push_back({.key = process.key, .gpu = gpu, .memory = use});
    }
  }
  return reading;
}

void MadeUpMachine::lose_gpu_memory(const Trouble& trouble) {
  const std::size_t which = trouble.which % cards_.size();
  const Bytes all = workload_.gpus[which].memory;
  const bool computes = trouble.memory.count % 2 == 0;
  const Bytes lost{all.count / 100 * (1 + (trouble.memory.count % 60))};
  for_a_while(
      trouble,
      [this, which, lost, computes] {
        world_.counts.count(Fault::GpuLost);
        cards_[which].of_others += lost;
        if (computes) world_.counts.count(Fault::GpuOfOthers);
        if (computes) ++cards_[which].other_users;
      },
      [this, which, lost, computes] {
        cards_[which].of_others -= lost;
        if (computes) --cards_[which].other_users;
      });
}

void MadeUpMachine::lose_gpu(const Trouble& trouble) {
  world_.counts.count(Fault::GpuGone);
  const auto on = [this](std::size_t which) {
    const model::GpuIndex gpu{static_cast<std::uint32_t>(which)};
    std::vector<model::TaskIndex> there;
    for (const auto& [task, process] : processes_) {
      const bool has = std::ranges::find(process.gpus, gpu) != process.gpus.end();
      if (has && process.since) there.push_back(task);
    }
    return there;
  };
  // A GPU in use, if there is one; its task may have lost another one before.
  const auto worth = [&](std::size_t card) {
    const std::vector<model::TaskIndex> there = on(card);
    const bool again = std::ranges::any_of(
        there, [this](model::TaskIndex task) { return processes_.at(task).key.attempt > 1; });
    return there.empty() ? 0 : again ? 2 : 1;
  };
  std::size_t which = trouble.which % cards_.size();
  for (std::size_t step = 1; step < cards_.size(); ++step) {
    const std::size_t other = (trouble.which + step) % cards_.size();
    if (worth(other) > worth(which)) which = other;
  }
  ++cards_[which].gone;
  // The processes there fail, or hang until their end.
  const std::vector<model::TaskIndex> there = on(which);
  // A look at once shows that it is gone before their ends are reported.
  if (samples_delayed_ == 0) tell(read_gpus());
  for (const model::TaskIndex task : there) {
    const auto found = processes_.find(task);
    if (found == processes_.end() || random_.one_in(4)) continue;
    die(task, found->second.number, model::ExitedWith{1});
  }
  // Some are gone for good.
  if (trouble.memory.count % 2 == 0) return;
  at(now() + trouble.lasts, [this, which] { --cards_[which].gone; });
}

}  // namespace trainyard::sim
