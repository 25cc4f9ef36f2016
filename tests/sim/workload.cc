#include "sim/workload.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "base/check.h"
#include "model/ids.h"
#include "model/terms.h"
#include "schedule/scheduler.h"
#include "sim/random.h"
#include "sim/workload_batches.h"
#include "sim/workload_needs.h"

namespace trainyard::sim {
namespace {

/// The kind of run that a seed makes. Most are ordinary; the others are there for one fault each.
enum class Flavour : std::uint8_t { Ordinary, Crowd, ManyShapes, BigAmongSmall };

Flavour flavour_of(Random& random) {
  const std::uint64_t dice = random.below(100);
  if (dice < 8) return Flavour::Crowd;
  if (dice < 10) return Flavour::ManyShapes;
  if (dice < 20) return Flavour::BigAmongSmall;
  return Flavour::Ordinary;
}

model::Capacity make_capacity(Random& random, Flavour flavour) {
  model::Capacity made{.memory = gib(random.between(4, 64)),
                       .cpus = model::cpus(random.between(1, 12))};
  if (flavour != Flavour::Crowd && random.one_in(6)) {
    made.processes_max = static_cast<int>(random.between(1, 12));
    made.processes_max_reason = "64 open files";
  }
  return made;
}

/// Most machines have GPUs, some of them of different sizes.
void add_gpus(model::Capacity& made, Random& random) {
  if (random.one_in(6)) return;
  const std::int64_t count = random.between(1, 4);
  const Bytes memory = gib(random.between(6, 48));
  const bool alike = random.one_in(2);
  for (int number = 0; number < count; ++number) {
    made.gpus.push_back({.number = number,
                         .uuid = fmt::format("GPU-{}", number),
                         .name = "made up",
                         .pci = fmt::format("{:02}", random.between(0, 99)),
                         .memory = alike ? memory : gib(random.between(6, 48)),
                         .speed = random.between(1, 3),
                         .slice = random.one_in(12) ? std::optional(0) : std::nullopt});
  }
}

/// Some do not answer when the run begins, and a few never do.
void make_some_late(Workload& made, Random& random) {
  std::vector<model::Gpu>& gpus = made.capacity.gpus;
  made.gpus = gpus;
  made.answer_at.resize(gpus.size());
  if (gpus.size() < 2 || random.one_in(2)) return;
  for (std::size_t late = gpus.size() - 1; late > 0; --late) {
    gpus[late] = {.number = gpus[late].number, .late = true};
    made.gpus[late].late = true;
    made.answer_at[late] = random.one_in(8)
                               ? Instant{Duration::max()}
                               : Instant{random.between(Duration{0}, Duration{30'000})};
    if (!random.one_in(3)) return;
  }
}

void make_gpu_limits(model::Policy& made, Random& random) {
  // Most runs have the one that is the default.
  made.gpu_strategy = random.one_in(2) ? model::GpuStrategy::IdleFirst
                                       : static_cast<model::GpuStrategy>(random.below(6));
  made.gpu_reverse = random.one_in(4);
  if (random.one_in(3)) {
    made.gpu_memory_utilization_max = static_cast<double>(random.between(50, 99)) / 100;
  }
  if (random.one_in(2)) made.gpu_memory_remain = mib(random.between(0, 1024));
  made.gpu_memory_least = gib(random.between(0, 3));
  made.gpu_linger_max = random.between(Duration{1'000}, Duration{10'000});
  made.gpu_gone_max = random.between(Duration{1'000}, Duration{60'000});
  made.gpu_steady_after = random.between(Duration{0}, Duration{10'000});
  made.gpu_avoids_others = !random.one_in(4);
  if (random.one_in(3)) made.gpu_settle_max = random.between(Duration{500}, Duration{30'000});
  if (random.one_in(3)) made.gpu_utilization_max = static_cast<double>(random.between(5, 10)) / 10;
}

model::Policy make_limits(Random& random, Flavour flavour, const model::Capacity& capacity) {
  model::Policy made;
  made.cpu_utilization_max = static_cast<double>(random.between(3, 10)) / 10;
  if (random.one_in(3)) {
    made.memory_utilization_max = static_cast<double>(random.between(50, 99)) / 100;
  }
  if (!random.one_in(4)) made.memory_remain = {capacity.memory.count / random.between(8, 40)};
  if (flavour != Flavour::Crowd && random.one_in(4)) {
    made.processes_max = static_cast<int>(random.between(1, 10));
  }
  made.train_retries = static_cast<int>(random.between(0, 4));
  made.load_retries = static_cast<int>(random.between(0, 4));
  if (random.one_in(3)) made.waiting_max = static_cast<int>(random.between(1, 4));
  made.stop_grace = random.between(Duration{200}, Duration{10'000});
  made.passes_max = static_cast<int>(random.one_in(4) ? random.between(9, 40)  //
                                                      : random.between(1, 8));
  made.passed_time_max = random.between(Duration{1'000}, Duration{60'000});
  made.watches_memory = !random.one_in(4);
  made.kernel_keeps_limits = random.one_in(2);
  made.auto_adjust = random.one_in(2);
  made.try_first_time = random.between(Duration{50}, Duration{4'000});
  make_gpu_limits(made, random);
  return made;
}

/// Chains, diamonds, the default (each needs the one before), none, and anything without a cycle.
std::vector<model::GroupIndex> make_needs(Random& random, std::uint64_t pattern,
                                          std::uint32_t index) {
  if (index == 0) return {};
  switch (pattern) {
    case 0:
      return {model::GroupIndex{index - 1}};
    case 1:  // A diamond, and another below it: 0; 1 and 2; 3; 4 and 5; ...
      if (index % 3 == 0) return {model::GroupIndex{index - 1}, model::GroupIndex{index - 2}};
      return {model::GroupIndex{(index - 1) / 3 * 3}};
    case 2:
      return {};
    default: {
      std::vector<model::GroupIndex> needs;
      for (std::uint32_t other = 0; other < index; ++other) {
        if (random.one_in(3)) needs.push_back({other});
      }
      return needs;
    }
  }
}

std::vector<model::PlannedGroup> make_groups(Random& random, Flavour flavour) {
  const auto count = static_cast<std::uint32_t>(random.between(3, 6));
  const std::uint64_t pattern = random.below(4);
  std::vector<model::PlannedGroup> groups(count);
  for (std::uint32_t index = 0; index < count; ++index) {
    groups[index].name = fmt::format("g{}", index);
    groups[index].needs = make_needs(random, pattern, index);
    if (random.one_in(3)) groups[index].parallel_max = static_cast<int>(random.between(1, 5));
    groups[index].fail_fast = random.one_in(4);
    groups[index].try_first = random.one_in(5);
  }
  if (flavour != Flavour::Ordinary) {
    groups[0].parallel_max = 0;
    groups[0].fail_fast = false;
    groups[0].try_first = false;
  }
  // Groups may also need those that stand further down in the job file.
  if (flavour == Flavour::Ordinary && random.one_in(4)) {
    for (model::PlannedGroup& group : groups) {
      for (model::GroupIndex& needed : group.needs) needed.value = count - 1 - needed.value;
    }
    std::ranges::reverse(groups);
  }
  return groups;
}

model::Request make_request(Random& random, Bytes most, const model::Capacity& capacity) {
  model::Request made;
  const std::uint64_t dice = random.below(20);
  if (dice == 0) {
    made.memory = {};
  } else if (dice == 1) {
    made.memory = most;
  } else if (dice < 12) {
    made.memory = {most.count / random.between(8, 60)};
  } else {
    made.memory = {most.count / 100 * random.between(10, 95)};
  }
  const std::uint64_t cpu_dice = random.below(8);
  if (cpu_dice == 0) {
    made.cpus = {0};
  } else if (cpu_dice == 1) {
    made.cpus = {500};
  } else if (cpu_dice == 2) {
    made.cpus = {random.between(1, capacity.cpus.milli)};
  } else {
    made.cpus = model::cpus(1);
  }
  return made;
}

/// Adds the GPU requests of a part of the tasks; none that never fits.
void add_gpu_wishes(model::Request& made, Random& random, const model::Policy& policy,
                    const model::Capacity& capacity) {
  if (capacity.gpus.empty() || random.one_in(4)) return;
  model::Request wish = made;
  const auto count = static_cast<std::int64_t>(capacity.gpus.size());
  wish.gpus = random.one_in(4) ? static_cast<int>(random.between(1, count)) : 1;
  if (!random.one_in(4)) wish.gpu_memory = mib(random.between(256, 16'384));
  // Several to a card, whatever the CPUs and the memory allow.
  if (!random.one_in(10)) {
    wish.gpus = 1;
    wish.memory = Bytes{wish.memory.count / random.between(4, 10)};
    wish.gpu_memory = Bytes{capacity.gpus.front().memory.count / random.between(4, 12)};
    wish.cpus = {0};
  }
  if (random.one_in(6)) wish.sharing.utilization = static_cast<int>(random.between(1, 6)) * 100;
  if (random.one_in(10)) wish.sharing.max_per_gpu = static_cast<int>(random.between(1, 5));
  if (wish.gpus == 1 && random.one_in(6)) {
    wish.gpu = model::GpuIndex{static_cast<std::uint32_t>(random.between(0, count - 1))};
  }
  // It may become a task of two phases, which never gets a GPU that comes later.
  model::Request seen = wish;
  seen.listed_only = wish.gpus > 0;
  if (!schedule::never_fits(seen, policy, capacity)) made = wish;
}

/// Makes shapes as they are needed, in the order in which the first task of each comes.
class ShapeMaker {
 public:
  ShapeMaker(model::Plan& plan, const model::Policy& policy, const model::Capacity& capacity)
      : plan_(plan), policy_(policy), capacity_(capacity) {}

  model::ShapeIndex make(model::GroupIndex group, const model::Request& request,
                         Duration time_limit, bool two_phase = false) {
    check(!schedule::never_fits(request, policy_, capacity_),
          "a made-up shape fits into the made-up machine");
    plan_.shapes.push_back(
        {.group = group,
         .terms = {.request = request, .time_limit = time_limit, .two_phase = two_phase}});
    return {static_cast<std::uint32_t>(plan_.shapes.size() - 1)};
  }

 private:
  model::Plan& plan_;
  const model::Policy& policy_;
  const model::Capacity& capacity_;
};

Bytes most_of(const model::Policy& policy, const model::Capacity& capacity) {
  const auto unused = static_cast<std::int64_t>(static_cast<double>(capacity.memory.count) *
                                                (1 - policy.memory_utilization_max));
  return capacity.memory - std::max(policy.memory_remain, Bytes{unused});
}

/// Adds the terms of a part of the tasks beside its request.
void add_manners(model::Shape& made, Random& random) {
  if (random.one_in(6)) made.terms.priority = static_cast<int>(random.between(-2, 2));
  made.terms.memory_hard = random.one_in(5);
  made.terms.preemptible = !random.one_in(6);
  if (random.one_in(5)) {
    made.terms.gpu_memory_limit =
        random.one_in(5) ? model::GpuMemoryLimit::Hard : model::GpuMemoryLimit::None;
  }
  made.terms.learns_memory = !made.terms.memory_hard && random.one_in(3);
  if (made.terms.learns_memory && random.one_in(3)) {
    made.terms.memory_least = made.terms.request.memory;
  }
  const bool whole = made.terms.request.gpu_memory == Bytes{};
  made.terms.learns_gpu_memory = made.terms.request.gpus > 0 && random.one_in(whole ? 2 : 5);
  if (made.terms.learns_gpu_memory) made.terms.gpu_memory_least = made.terms.request.gpu_memory;
  if (random.one_in(3)) made.terms.retries.failures = static_cast<int>(random.between(1, 3));
  if (random.one_in(4)) made.terms.retries.out_of_memory = static_cast<int>(random.between(0, 3));
  made.terms.retries.after_time_limit = random.one_in(3);
  if (random.one_in(3)) {
    made.terms.retries.delay = random.between(Duration{100}, Duration{5'000});
  }
  if (!random.one_in(4)) return;
  const Duration most =
      made.terms.time_limit > Duration{0} ? made.terms.time_limit : Duration{5'000};
  made.terms.early_signal = {.number = random.one_in(2) ? 10 : 12,
                             .before = random.between(Duration{10}, most - Duration{10})};
}

void add_tasks(model::Plan& plan, model::ShapeIndex shape, std::uint32_t count) {
  for (std::uint32_t i = 0; i < count; ++i) plan.tasks.push_back({.shape = shape});
}

/// Tasks of one group: a few shapes, in turns.
void fill_group(Workload& made, Random& random, ShapeMaker& shapes, model::GroupIndex group) {
  const Bytes most = most_of(made.policy, made.capacity);
  const std::int64_t count = random.between(8, 16);
  const auto kinds = static_cast<std::uint64_t>(random.between(1, 6));
  std::map<std::uint64_t, model::ShapeIndex> known;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::uint64_t kind = random.below(kinds);
    auto found = known.find(kind);
    if (found == known.end()) {
      const bool limited = random.one_in(4);
      const Duration limit = limited ? random.between(Duration{300}, made.longest) : Duration{0};
      model::Request request = make_request(random, most, made.capacity);
      add_gpu_wishes(request, random, made.policy, made.capacity);
      if (request.gpus == 0 && random.one_in(4)) {
        request.disk = Bytes{kDiskOfAll.count / 100 * random.between(1, 100)};
      }
      const bool two_phase = random.one_in(3);
      found = known.emplace(kind, shapes.make(group, request, limit, two_phase)).first;
      add_manners(made.plan.shapes.back(), random);
      if (two_phase && random.one_in(4)) made.plan.shapes.back().terms.ranks = 2;
    }
    add_tasks(made.plan, found->second, 1);
  }
}

void fill_special_group(Workload& made, Random& random, ShapeMaker& shapes, Flavour flavour) {
  const Bytes most = most_of(made.policy, made.capacity);
  if (flavour == Flavour::Crowd) {
    const auto count = static_cast<std::uint32_t>(random.between(145, 165));
    add_tasks(made.plan, shapes.make({0}, {.memory = {most.count / 400}}, {}), count);
  } else if (flavour == Flavour::ManyShapes) {
    for (std::int64_t i = 0, count = random.between(140, 170); i < count; ++i) {
      const Bytes memory{(most.count / 4) + (i * 4096)};
      add_tasks(made.plan, shapes.make({0}, {.memory = memory, .cpus = {100}}, {}), 1);
    }
  } else {
    const Bytes big{most.count / 100 * random.between(70, 100)};
    const Bytes small{most.count / 100 * random.between(5, 25)};
    const model::Cpus few{made.capacity.cpus.milli / 16};
    const model::ShapeIndex first = shapes.make({0}, {.memory = small, .cpus = few}, {});
    add_tasks(made.plan, first, 3);
    add_tasks(made.plan, shapes.make({0}, {.memory = big, .cpus = few}, {}), 2);
    add_tasks(made.plan, first, 25);
  }
}

std::vector<Trouble> make_troubles(Random& random, const Workload& made, Flavour flavour) {
  using enum Trouble::Kind;
  std::vector<Trouble> troubles;
  const auto when = [&] { return Instant{random.between(Duration{0}, Duration{20'000})}; };
  const auto lasts = [&](std::int64_t most) {
    return random.between(Duration{1}, Duration{most * 1000});
  };
  const auto some = [&](Trouble::Kind kind, std::uint64_t one_in, std::int64_t most_seconds) {
    if (!random.one_in(one_in)) return;
    troubles.push_back({.kind = kind,
                        .at = when(),
                        .lasts = lasts(most_seconds),
                        .memory = {made.capacity.memory.count / 100 * random.between(5, 100)},
                        .cpu_share = static_cast<double>(random.between(30, 100)) / 100,
                        .which = random.below(8)});
  };
  for (int i = 0; i < 2; ++i) {
    some(LoseMemory, 5, 30);
    some(SqueezeMemory, 2, 30);
    some(UseCpu, 4, 20);
    some(DelaySamples, 5, 15);
    some(JumpClock, 6, 120);
    some(FillDisk, 6, 30);
    if (made.capacity.gpus.empty()) continue;
    some(LoseGpu, 3, 100);
    some(LoseGpuMemory, 3, 30);
    some(NameNobody, 10, 30);
  }
  // On some machines the GPUs drop out now and then.
  if (!made.capacity.gpus.empty() && random.one_in(12)) {
    for (int i = 0; i < 6; ++i) some(LoseGpu, 1, 2);
  }
  for (int i = 0; i < 4; ++i) some(AskToKill, 3, 1);
  for (int i = 0; i < 3; ++i) some(KillKeeper, 9, 2);
  some(KillGuard, 10, 1);
  for (int i = 0; i < 2; ++i) some(StopYard, 4, 30);
  some(Interrupt, 6, 1);
  if (random.one_in(4)) {
    const Instant at = when();
    troubles.push_back({.kind = Interrupt, .at = at});
    const Duration pause = random.between(Duration{0}, Duration{300});
    troubles.push_back({.kind = Interrupt, .at = at + pause});
    if (random.one_in(4)) troubles.push_back({.kind = Interrupt, .at = at + pause + pause});
  }
  if (random.one_in(12)) {
    troubles.push_back({.kind = FillDisk, .at = when(), .lasts = made.patience + lasts(60)});
  }
  some(SilenceKeeper, 8, 10);
  if (random.one_in(40)) {
    // Often enough that no task is believed to be innocent of it.
    Instant at = when();
    for (int i = 0; i < 20; ++i) {
      at = at + random.between(Duration{0}, Duration{1'000});
      troubles.push_back({.kind = KillKeeper, .at = at, .lasts = Duration{1}});
    }
  }
  if (flavour == Flavour::Crowd) {
    std::erase_if(troubles, [](const Trouble& it) { return it.at < Instant{Duration{4'000}}; });
    troubles.push_back({.kind = KillMany, .at = {random.between(Duration{300}, Duration{900})}});
  }
  return troubles;
}

void make_some_start_later(model::Plan& plan, std::uint64_t seed) {
  // Dice of its own: what else happens stays what it was without it.
  Random random(seed ^ 0x57A27ULL);
  if (!random.one_in(3)) return;
  for (model::Shape& shape : plan.shapes) {
    if (!random.one_in(4)) continue;
    shape.terms.start_after = random.between(Duration{1}, Duration{30'000});
  }
}

void make_some_starts_fail(Workload& made, std::uint64_t seed) {
  // Dice of its own, as above.
  Random random(seed ^ 0x4EF05EULL);
  if (!random.one_in(4)) return;
  if (!random.one_in(5)) {
    made.policy.machine_patience = random.between(Duration{1'000}, Duration{10'000});
  }
  for (std::int64_t i = 0, count = random.between(1, 3); i < count; ++i) {
    made.troubles.push_back({.kind = Trouble::Kind::RefuseStarts,
                             .at = {random.between(Duration{4'000}, Duration{20'000})},
                             .lasts = random.between(Duration{1}, Duration{180'000}),
                             .which = random.one_in(3) ? 1 + random.below(4) : 0});
  }
}

}  // namespace

Workload make_workload(std::uint64_t seed) {
  Random random(seed);
  const Flavour flavour = flavour_of(random);
  Workload made;
  made.capacity = make_capacity(random, flavour);
  if (flavour == Flavour::Ordinary) add_gpus(made.capacity, random);
  make_some_late(made, random);
  made.policy = make_limits(random, flavour, made.capacity);
  made.longest =
      random.between(Duration{4'000}, Duration{flavour == Flavour::Crowd ? 40'000 : 16'000});
  if (flavour == Flavour::Crowd) made.longest += Duration{20'000};
  made.patience = random.between(Duration{2'000}, Duration{60'000});
  const std::uint64_t mood = random.below(3);
  made.odds = mood == 0   ? Odds{.failure = 2, .hunger = 30, .manners = 30}
              : mood == 1 ? Odds{.failure = 12, .hunger = 120, .manners = 60}
                          : Odds{.failure = 60, .hunger = 250, .manners = 120};
  made.plan.groups = make_groups(random, flavour);
  ShapeMaker shapes(made.plan, made.policy, made.capacity);
  for (std::uint32_t group = 0; group < made.plan.groups.size(); ++group) {
    const bool special = group == 0 && flavour != Flavour::Ordinary;
    if (special) {
      fill_special_group(made, random, shapes, flavour);
    } else {
      fill_group(made, random, shapes, {group});
    }
  }
  const auto last = static_cast<std::uint32_t>(made.plan.groups.size() - 1);
  while (made.plan.tasks.size() < 30) add_tasks(made.plan, shapes.make({last}, {}, {}), 2);
  make_some_start_later(made.plan, seed);
  make_some_need_tasks(made.plan, seed);
  if (flavour == Flavour::Ordinary && random.one_in(8)) give_a_past(made.plan, random);
  made.troubles = make_troubles(random, made, flavour);
  make_some_starts_fail(made, seed);
  made.additions = cut_into_additions(made.plan, random);
  return made;
}

}  // namespace trainyard::sim
