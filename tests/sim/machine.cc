#include "sim/machine.h"

#include <algorithm>
#include <cstddef>
#include <variant>

#include "base/match.h"

namespace trainyard::sim {
namespace {

constexpr Duration kSampleEvery{1000};
constexpr int kSigterm = 15;
/// No run of a made-up plan is this long: 200 tasks, each a minute, four times, one by one.
constexpr Instant kTooLate{Duration{50'000'000}};
constexpr std::uint64_t kTurnsMax = 100'000;

}  // namespace

MadeUpMachine::MadeUpMachine(std::uint64_t seed, const Workload& workload, World world, Part part)
    : workload_(workload),
      world_(world),
      part_(std::move(part)),
      seed_(seed),
      random_(~(seed ^ (part_.number << 40U))),
      cards_(workload.capacity.gpus.size()) {
  for (const Trouble& trouble : workload.troubles) plan(trouble);
  if (part_.joins) at(now() + kSampleEvery, [this] { sample(); });
  if (part_.agent) return;
  if (part_.joins) {
    tell(model::MachineJoined{.machine = {}, .name = "made-up", .capacity = workload.capacity});
    look_first();
  }
  add_batch();
  for (std::size_t i = 1; i < workload.additions.size(); ++i) {
    at(workload.additions[i].at, [this] { add_batch(); });
  }
}

void MadeUpMachine::tell(model::What what) {
  if (part_.agent) return part_.agent(std::move(what));
  hear_of(std::move(what));
}

void MadeUpMachine::carry_out(const model::Command& command) {
  world_.watcher.carried_out(command);
  ask(command);
}

void MadeUpMachine::ask(const model::Command& command) {
  if (keeper_is_replaced_) return held_.push_back(command);
  do_what_was_asked(command);
}

void MadeUpMachine::do_what_was_asked(const model::Command& command) {
  match(
      command, [this](const model::StartAttempt& it) { start(it); },
      [this](const model::GrantDevice& it) { grant(it); },
      [this](const model::StopAttempt& it) { stop(it); },
      [this](const model::SignalAttempt& it) { signal(it); }, [](const model::Answer&) {});
}

std::vector<model::Event> MadeUpMachine::wait(std::optional<Instant> until) {
  world_.watcher.waits(until);
  if (++turns_ > kTurnsMax || now() > kTooLate) world_.watcher.complain("the run does not end");
  // A run that has been found wrong is led out of the loop: its journal fails, and this ends it.
  if (world_.watcher.complaint()) return {{.at = now(), .what = model::InterruptAsked{}}};
  while (inbox_.empty()) {
    if (until && *until <= world_.agenda.next()) {
      world_.agenda.pass_to(*until);
      tell(model::TimePassed{});
    } else {
      world_.agenda.do_next();
    }
  }
  // Events of the same moment come together, in part.
  while (world_.agenda.next() <= now() && !random_.one_in(5)) world_.agenda.do_next();
  return std::exchange(inbox_, {});
}

void MadeUpMachine::start(const model::StartAttempt& command) {
  if (keeper_gone_) {
    tell(model::AttemptEnded{.key = command.key,
                             .end = model::NotStarted{.why = "the keeper is gone"}});
    return;
  }
  const model::TaskIndex task = command.key.task;
  const model::Shape& shape = shape_of(task);
  const std::uint64_t own_seed = (seed_ << 20U) ^ (std::uint64_t{task.value} << 1U) ^ 1U;
  const std::uint64_t luck = own_seed ^ (std::uint64_t{command.key.attempt} << 52U);
  Process process{.key = command.key,
                  .behaviour = make_behaviour(Random(own_seed), Random(luck), workload_.odds, shape,
                                              command.promise.memory, workload_.longest),
                  .promise = command.promise.memory,
                  .disk = command.promise.disk,
                  .number = world_.agenda.number()};
  if (command.memory_max > Bytes{} && process.behaviour.memory_most > command.memory_max) {
    process.behaviour.memory_most = command.memory_max;
    process.behaviour.tells_memory = false;
    process.behaviour.end =
        model::KilledBy{.signal = kSigkill, .out_of_memory = true, .over_limit = true};
  }
  give_gpus(process, command.site.gpus);
  process.gpu_memory_max = command.gpu_memory_max;
  const std::uint64_t number = process.number;
  const Instant alive = now() + process.behaviour.start_takes;
  const auto [it, fresh] = processes_.insert_or_assign(task, std::move(process));
  if (!fresh) world_.watcher.complain("a task is started while its attempt before still runs");
  at(alive, [this, task, number] { come_alive(task, number); });
}

void MadeUpMachine::come_alive(model::TaskIndex task, std::uint64_t number) {
  const auto found = processes_.find(task);
  if (found == processes_.end() || found->second.number != number) return;
  Process& process = found->second;
  const Behaviour& behaviour = process.behaviour;
  if (refuses_to_start(task)) {
    world_.counts.count(Fault::StartRefused);
    process.behaviour.tells_memory = false;
    die(task, number, model::NotStarted{.why = "no space left on device", .of_machine = true});
    return;
  }
  if (!behaviour.exists) {
    world_.counts.count(Fault::CannotStart);
    die(task, number, behaviour.end);
    return;
  }
  process.since = now();
  if (behaviour.says_started) {
    const bool capped = behaviour.obeys_cap && process.gpu_memory_max > Bytes{};
    const model::AttemptStarted news{.key = process.key,
                                     .pid = static_cast<std::int64_t>(number),
                                     .capped_by = capped ? "torch" : "",
                                     .began = now()};
    tell(news);
    if (behaviour.started_twice) {
      world_.counts.count(Fault::DuplicateNews);
      tell(news);
    }
  } else {
    world_.counts.count(Fault::NeverSaysStarted);
  }
  if (shape_of(task).terms.two_phase) {
    begin_loading(process);
  } else {
    end_at(now() + behaviour.runs, process, behaviour.end);
  }
}

bool MadeUpMachine::refuses_to_start(model::TaskIndex task) const {
  constexpr std::uint64_t kPlaces = 4;
  return refused_.contains(0) || refused_.contains(1 + (task.value % kPlaces));
}

void MadeUpMachine::end_at(Instant when, const Process& process, model::End end) {
  at(when, [this, task = process.key.task, number = process.number, end = std::move(end)] {
    die(task, number, end);
  });
}

/// Some save what they have and leave, some know nothing of it and die, some go on.
void MadeUpMachine::signal(const model::SignalAttempt& command) {
  const auto found = processes_.find(command.key.task);
  if (found == processes_.end() || found->second.key != command.key) return;
  if (random_.one_in(2)) return;
  world_.counts.count(Fault::EndsOnSignal);
  const model::End end = random_.one_in(2)
                             ? model::End(model::ExitedWith{static_cast<int>(random_.below(2))})
                             : model::End(model::KilledBy{.signal = command.signal});
  end_at(now() + random_.between(Duration{0}, Duration{3000}), found->second, end);
}

void MadeUpMachine::stop(const model::StopAttempt& command) {
  const auto found = processes_.find(command.key.task);
  if (found == processes_.end() || found->second.key != command.key) return;
  Process& process = found->second;
  if (command.kill) {
    process.killed = true;
    end_at(now() + Duration{static_cast<std::int64_t>(random_.below(3))}, process,
           model::KilledBy{.signal = kSigkill});
    return;
  }
  if (!process.behaviour.term_takes) {
    world_.counts.count(Fault::IgnoresTerm);
    return;
  }
  // Some make something of it: they save what they have and leave with a code of their own.
  model::End end = model::KilledBy{.signal = kSigterm};
  if (random_.one_in(3)) end = model::ExitedWith{static_cast<int>(random_.below(2))};
  end_at(now() + *process.behaviour.term_takes, process, std::move(end));
}

void MadeUpMachine::die(model::TaskIndex task, std::uint64_t number, const model::End& end) {
  const auto found = processes_.find(task);
  if (found == processes_.end() || found->second.number != number) return;
  Process& process = found->second;
  if (process.since) {
    process.peak = std::max(process.peak, process.behaviour.memory_after(now() - *process.since));
  }
  if (process.waits && process.behaviour.mishap == Mishap::DiesWaiting) {
    world_.counts.count(Fault::DiesWaiting);
  }
  match(
      end,
      [&](const model::ExitedWith& it) {
        if (it.code != 0) world_.counts.count(Fault::ExitCode);
      },
      [&](const model::KilledBy& it) {
        world_.counts.count(it.over_limit      ? Fault::OverLimit
                            : it.out_of_memory ? Fault::OutOfMemory
                                               : Fault::Signal);
      },
      [](const model::NotStarted&) {},
      [&](const model::Vanished&) { world_.counts.count(Fault::Vanishes); });
  tell_end(process, end, process.behaviour.news_takes);
  leave_gpus(process);
  leave_on_disk(process);
  processes_.erase(found);
}

void MadeUpMachine::tell_end(const Process& process, const model::End& end, Duration after) {
  model::AttemptEnded news{.key = process.key,
                           .end = end,
                           .usage = {.memory_peak = process.peak,
                                     .gpu_memory_peak = process.gpu_peak,
                                     .gpu_capped = was_at_its_cap(process),
                                     .cpu_time = Duration{10}},
                           .result = {},
                           .warning = {},
                           .ended = now()};
  if (process.behaviour.tells_memory && end != model::End(model::ExitedWith{0})) {
    world_.counts.count(Fault::MemoryTold);
    news.out_of_memory = "RuntimeError: CUDA out of memory";
    // Some use a GPU that they were not assigned.
    news.of_gpu = process.gpus.empty() && process.key.task.value % 3 == 0;
    if (news.of_gpu) world_.counts.count(Fault::GpuNotGiven);
  }
  if (process.out_of_gpu) {
    news.out_of_memory = "RuntimeError: CUDA out of memory";
    news.of_gpu = true;
  }
  unheard_.insert(process.key);
  const bool twice = process.behaviour.ended_twice;
  const std::optional<Duration> again = process.behaviour.told_again;
  auto tell_it = [this, news, twice, again] {
    // The news died with the keeper; its attempts were reported then.
    if (unheard_.erase(news.key) == 0) return;
    tell(news);
    if (twice) {
      world_.counts.count(Fault::DuplicateNews);
      tell(news);
    }
    if (!again) return;
    at(now() + *again, [this, news] {
      world_.counts.count(Fault::OldNews);
      tell(model::AttemptStarted{.key = news.key, .pid = 1, .capped_by = "torch"});
      tell(news);
    });
  };
  if (after > Duration{0}) {
    at(now() + after, std::move(tell_it));
  } else {
    tell_it();
  }
}

model::Sampled MadeUpMachine::read() {
  kill_for_memory();
  if (!unheard_.empty()) world_.counts.count(Fault::EndHeardLate);
  model::Sampled reading{
      .memory_available = std::max(Bytes{}, workload_.capacity.memory - memory_taken()),
      .cpu_used_by_others = cpu_of_others_,
      .tasks = {},
      .disk = model::DiskRoom{.free = disk_free(), .total = kDiskOfAll}};
  for (auto& [task, process] : processes_) {
    if (!process.since) continue;
    const Behaviour& behaviour = process.behaviour;
    const Bytes memory = behaviour.memory_after(now() - *process.since);
    process.peak = std::max(process.peak, memory);
    if (behaviour.says_started) reading.tasks.push_back({.key = process.key, .memory = memory});
    if (process.late_seen || memory < behaviour.memory_most) continue;
    process.late_seen = true;
    if (behaviour.curve == Curve::Late) world_.counts.count(Fault::LateAllocation);
    if (behaviour.curve == Curve::Spike) world_.counts.count(Fault::Spike);
    const model::Request& asked = shape_of(task).terms.request;
    if (memory > asked.memory) world_.counts.count(Fault::OverPromise);
  }
  return reading;
}

void MadeUpMachine::sample() {
  if (samples_delayed_ == 0) {
    tell(read());
    if (!cards_.empty()) tell(read_gpus());
  }
  for (const auto& [task, process] : processes_) {
    // Also for a plain command: unrequested progress must not matter.
    if (random_.one_in(2))
      tell(model::Progressed{.key = process.key, .fraction = 0.5, .values = {}});
  }
  at(now() + kSampleEvery, [this] { sample(); });
}

Bytes MadeUpMachine::memory_taken() {
  Bytes taken = memory_of_others_;
  for (const auto& [task, process] : processes_) {
    if (process.since) taken += process.behaviour.memory_after(now() - *process.since);
  }
  return taken;
}

void MadeUpMachine::kill_for_memory() {
  while (memory_taken() > workload_.capacity.memory) {
    const auto size = [this](const auto& entry) {
      const Process& process = entry.second;
      return process.since ? process.behaviour.memory_after(now() - *process.since) : Bytes{};
    };
    const auto largest = std::ranges::max_element(processes_, {}, size);
    if (largest == processes_.end() || size(*largest) == Bytes{}) return;
    world_.counts.count(Fault::MemoryExhausted);
    die(largest->first, largest->second.number,
        model::KilledBy{.signal = kSigkill, .out_of_memory = true});
  }
}

/// Begins, and ends when it has lasted.
void MadeUpMachine::for_a_while(const Trouble& trouble, Step begin, Step end) {
  at(trouble.at,
     [this, lasts = trouble.lasts, begin = std::move(begin), end = std::move(end)]() mutable {
       begin();
       at(now() + lasts, std::move(end));
     });
}

void MadeUpMachine::plan(const Trouble& trouble) {
  using enum Trouble::Kind;
  switch (trouble.kind) {
    case LoseMemory:
      return for_a_while(
          trouble,
          [this, trouble] {
            world_.counts.count(Fault::MemoryLost);
            memory_of_others_ += trouble.memory;
          },
          [this, trouble] { memory_of_others_ -= trouble.memory; });
    case SqueezeMemory:
      return at(trouble.at, [this, trouble] { squeeze_memory(trouble.lasts); });
    case UseCpu:
      return for_a_while(
          trouble,
          [this, trouble] {
            if (trouble.cpu_share >= workload_.policy.cpu_utilization_max) {
              world_.counts.count(Fault::OthersUseCpu);
            }
            cpu_of_others_ = trouble.cpu_share;
          },
          [this] { cpu_of_others_ = 0; });
    case DelaySamples:
      return count_for_a_while(trouble, Fault::SampleLate, samples_delayed_);
    case FillDisk:
      return count_for_a_while(trouble, Fault::DiskFull, disk_full_);
    case JumpClock:
      return at(trouble.at, [this, trouble] {
        world_.counts.count(Fault::ClockJump);
        world_.agenda.pass_to(now() + trouble.lasts);
      });
    case LoseGpu:
      return at(trouble.at, [this, trouble] { lose_gpu(trouble); });
    case LoseGpuMemory:
      return lose_gpu_memory(trouble);
    case NameNobody:
      return count_for_a_while(trouble, Fault::GpuUnnamed, gpus_unnamed_);
    case KillMany:
      return at(trouble.at, [this] { kill_many(); });
    case KillKeeper:
      return at(trouble.at, [this, trouble] { lose_keeper(trouble.lasts); });
    case KillGuard:
      return at(trouble.at, [this] { lose_guard(); });
    case SilenceKeeper:
      return for_a_while(
          trouble,
          [this] {
            world_.counts.count(Fault::KeeperSilent);
            if (!keeper_is_replaced_) tell(model::KeeperSilent{.silent = true});
          },
          [this] {
            if (!keeper_is_replaced_) tell(model::KeeperSilent{.silent = false});
          });
    case StopYard:
      return at(trouble.at, [this, trouble] { stop_yard(trouble.lasts); });
    case Interrupt:
      return at(trouble.at, [this] { tell(model::InterruptAsked{}); });
    case AskToKill:
      return at(trouble.at, [this, trouble] { ask_to_kill(trouble); });
    case RefuseStarts:
      return for_a_while(
          trouble, [this, which = trouble.which] { refused_.insert(which); },
          [this, which = trouble.which] { refused_.erase(refused_.find(which)); });
  }
}

void MadeUpMachine::count_for_a_while(const Trouble& trouble, Fault fault, int& how_many) {
  for_a_while(
      trouble,
      [this, fault, &how_many] {
        world_.counts.count(fault);
        ++how_many;
      },
      [&how_many] { --how_many; });
}

void MadeUpMachine::squeeze_memory(Duration lasts) {
  world_.counts.count(Fault::MemoryLost);
  // The oldest has more than it requested, as it may: that harms no other until memory is short.
  for (auto& [task, process] : processes_) {
    Behaviour& behaviour = process.behaviour;
    if (!process.since || shape_of(task).terms.memory_hard) continue;
    behaviour.curve = Curve::Flat;
    behaviour.memory_most = std::max(behaviour.memory_most, {process.promise.count / 4 * 5});
    break;
  }
  take_free_memory(lasts);
}

/// Others take it, and what becomes free meanwhile: those that run stay in want.
void MadeUpMachine::take_free_memory(Duration lasts) {
  const Bytes left{workload_.policy.memory_remain.count / 4 * 3};
  const Bytes amount = std::max(Bytes{}, workload_.capacity.memory - memory_taken() - left);
  memory_of_others_ += amount;
  at(now() + lasts, [this, amount] { memory_of_others_ -= amount; });
  constexpr Duration kAgain{700};
  const Duration rest = lasts - kAgain;
  if (rest > Duration{0}) at(now() + kAgain, [this, rest] { take_free_memory(rest); });
}

void MadeUpMachine::kill_many() {
  constexpr std::size_t kMany = 100;
  if (processes_.size() >= kMany) world_.counts.count(Fault::ManyDeaths);
  while (!processes_.empty()) {
    Process& first = processes_.begin()->second;
    first.behaviour.news_takes = Duration{0};
    die(first.key.task, first.number, model::KilledBy{.signal = kSigkill});
  }
}

}  // namespace trainyard::sim
