// Made-up values of everything in an event and in a command, for tests that write and read them:
// every member of every struct gets a value that it does not have by default, most of the time. A
// member that is added to a struct and not here does not compile.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include <rapidcheck/gen/Arbitrary.h>
#include <rapidcheck/gen/Numeric.h>
#include <rapidcheck/gen/Select.h>
#include <rapidcheck/gen/Text.h>

#include "base/bytes.h"
#include "base/time.h"
#include "model/command.h"
#include "model/event.h"
#include "model/plan.h"
#include "model/promises.h"
#include "model/resources.h"
#include "model/terms.h"

namespace trainyard::wire {

template <class... Values>
void make_up_all(Values&... values);

template <class Number>
  requires std::integral<Number>
void make_up(Number& value) {
  using Limits = std::numeric_limits<Number>;
  value = *rc::gen::oneOf(rc::gen::arbitrary<Number>(),
                          rc::gen::element(Limits::min(), Limits::max(), Number{1}));
}
inline void make_up(double& value) {
  using Limits = std::numeric_limits<double>;
  value = *rc::gen::oneOf(
      rc::gen::arbitrary<double>(),
      rc::gen::element(-0.0, 0.1, 1e15, 9007199254740994.0, 12345678901234567000.0, 1e22, 1e300,
                       Limits::denorm_min(), Limits::max(), Limits::infinity(), -Limits::infinity(),
                       Limits::quiet_NaN()));
}
inline void make_up(std::string& value) {
  value = *rc::gen::oneOf(
      rc::gen::arbitrary<std::string>(),
      rc::gen::element(std::string("two\nlines\t\"in\" \\ quotes"), std::string("\0\x7f", 2),
                       std::string("caf\xc3\xa9"), std::string("not UTF-8 \xff"),
                       std::string(R"({"a":[1,null]})")));
}
inline void make_up(Duration& value) { value = Duration(*rc::gen::arbitrary<Duration::rep>()); }
inline void make_up(Instant& value) { make_up(value.since_start); }
inline void make_up(Bytes& value) { make_up(value.count); }

template <class Enum>
Enum made_up_below(Enum last) {
  const int below = std::to_underlying(last) + 1;
  return static_cast<Enum>(*rc::gen::inRange(0, below));
}
inline void make_up(model::GpuMaker& it) { it = made_up_below(model::GpuMaker::Amd); }
inline void make_up(model::Said& it) { it = made_up_below(model::Said::Nonsense); }
inline void make_up(model::RunIf& it) { it = made_up_below(model::RunIf::Always); }
inline void make_up(model::GpuMemoryLimit& it) { it = made_up_below(model::GpuMemoryLimit::Hard); }
inline void make_up(model::Verdict& it) { it = made_up_below(model::Verdict::NotNeeded); }

template <class Value>
void make_up(std::optional<Value>& value) {
  if (*rc::gen::arbitrary<bool>()) {
    make_up_all(value.emplace());
  } else {
    value.reset();
  }
}
template <class Value>
void make_up(std::vector<Value>& values) {
  values.resize(*rc::gen::inRange<std::size_t>(0, 4));
  for (Value& value : values) make_up_all(value);
}
/// The one at `index`, or a random one where that is no alternative.
template <class... Alternatives>
void make_up(std::variant<Alternatives...>& value, std::size_t index = sizeof...(Alternatives)) {
  if (index >= sizeof...(Alternatives)) {
    index = *rc::gen::inRange<std::size_t>(0, sizeof...(Alternatives));
  }
  std::size_t next = 0;
  const auto make_if = [&]<class Alternative>(Alternative made) {
    if (next++ != index) return;
    make_up_all(made);
    value = std::move(made);
  };
  (make_if(Alternatives{}), ...);
}

inline void make_up(model::TaskIndex& it) {
  auto& [value] = it;
  make_up_all(value);
}
inline void make_up(model::GroupIndex& it) {
  auto& [value] = it;
  make_up_all(value);
}
inline void make_up(model::ShapeIndex& it) {
  auto& [value] = it;
  make_up_all(value);
}
inline void make_up(model::MachineIndex& it) {
  auto& [value] = it;
  make_up_all(value);
}
inline void make_up(model::GpuIndex& it) {
  auto& [value] = it;
  make_up_all(value);
}
inline void make_up(model::GpuPlace& it) {
  auto& [machine, gpu] = it;
  make_up_all(machine, gpu);
}
inline void make_up(model::AttemptKey& it) {
  auto& [task, attempt] = it;
  make_up_all(task, attempt);
}
inline void make_up(model::Cpus& it) {
  auto& [milli] = it;
  make_up_all(milli);
}
inline void make_up(model::GpuSharing& it) {
  auto& [utilization, max_per_gpu] = it;
  make_up_all(utilization, max_per_gpu);
}
inline void make_up(model::SiteWish& it) {
  auto& [machine, gpu] = it;
  make_up_all(machine, gpu);
}
inline void make_up(model::Request& it) {
  auto& [memory, cpus, gpus, gpu_memory, gpu, largest, listed_only, sharing, disk, where, avoids] =
      it;
  make_up_all(memory, cpus, gpus, gpu_memory, gpu, largest, listed_only, sharing, disk, where,
              avoids);
}
inline void make_up(model::Gpu& it) {
  auto& [number, uuid, name, pci, memory, speed, maker, slice, late, cuda_number] = it;
  make_up_all(number, uuid, name, pci, memory, speed, maker, slice, late, cuda_number);
}
inline void make_up(model::Capacity& it) {
  auto& [memory, cpus, processes_max, processes_max_reason, gpus, no_gpus_reason] = it;
  make_up_all(memory, cpus, processes_max, processes_max_reason, gpus, no_gpus_reason);
}
inline void make_up(model::Site& it) {
  auto& [machine, gpus] = it;
  make_up_all(machine, gpus);
}
inline void make_up(model::Usage& it) {
  auto& [memory_peak, memory_at_least, gpu_memory_peak, gpu_capped, cpu_time] = it;
  make_up_all(memory_peak, memory_at_least, gpu_memory_peak, gpu_capped, cpu_time);
}
inline void make_up(model::Code& it) {
  auto& [root, commit, changes] = it;
  make_up_all(root, commit, changes);
}
inline void make_up(model::EarlySignal& it) {
  auto& [number, before] = it;
  make_up_all(number, before);
}
inline void make_up(model::Retries& it) {
  auto& [failures, out_of_memory, after_time_limit, delay] = it;
  make_up_all(failures, out_of_memory, after_time_limit, delay);
}
inline void make_up(model::Terms& it) {
  auto& [request, time_limit, two_phase, ranks, workers, memory_hard, gpu_memory_limit, priority,
         run_if, start_after, preemptible, retries, early_signal, checkpoints, load_expected,
         train_expected, learns_memory, learns_gpu_memory, memory_least, gpu_memory_least] = it;
  make_up_all(request, time_limit, two_phase, ranks, workers, memory_hard, gpu_memory_limit,
              priority, run_if, start_after, preemptible, retries, early_signal, checkpoints,
              load_expected, train_expected, learns_memory, learns_gpu_memory, memory_least,
              gpu_memory_least);
}
inline void make_up(model::PlannedGroup& it) {
  auto& [name, called, directory, needs, needs_earlier, needs_by_task, parallel_max, fail_fast,
         try_first] = it;
  make_up_all(name, called, directory, needs, needs_earlier, needs_by_task, parallel_max, fail_fast,
              try_first);
}
inline void make_up(model::Shape& it) {
  auto& [group, terms] = it;
  make_up_all(group, terms);
}
inline void make_up(model::PlannedTask& it) {
  auto& [shape, first_attempt, before] = it;
  make_up_all(shape, first_attempt, before);
}
inline void make_up(model::TaskNeed& it) {
  auto& [task, needed] = it;
  make_up_all(task, needed);
}
inline void make_up(model::SaidOfTask& it) {
  auto& [task, on_hold, priority] = it;
  make_up_all(task, on_hold, priority);
}
inline void make_up(model::MemoryTries& it) {
  auto& [load, train, preempted, crowded] = it;
  make_up_all(load, train, preempted, crowded);
}
inline void make_up(model::Reached& it) {
  auto& [task, memory, gpu_memory, largest, tries] = it;
  make_up_all(task, memory, gpu_memory, largest, tries);
}
inline void make_up(model::TakenBefore& it) {
  auto& [task, memory, gpu_memory, gpu_memory_written] = it;
  make_up_all(task, memory, gpu_memory, gpu_memory_written);
}
inline void make_up(model::SharingMeasured& it) {
  auto& [shape, to_a_gpu, factor, tasks, to_a_gpu_max] = it;
  make_up_all(shape, to_a_gpu, factor, tasks, to_a_gpu_max);
}
inline void make_up(model::FailedBefore& it) {
  auto& [task, message] = it;
  make_up_all(task, message);
}
inline void make_up(model::Plan& it) {
  auto& [groups, shapes, tasks, task_needs, reached, taken, said, sharing, failed] = it;
  make_up_all(groups, shapes, tasks, task_needs, reached, taken, said, sharing, failed);
}
inline void make_up(model::CardPromise& it) {
  auto& [uuid, memory, unused, tasks, whole, sharing, since_unix_s] = it;
  make_up_all(uuid, memory, unused, tasks, whole, sharing, since_unix_s);
}
inline void make_up(model::HeldPromise& it) {
  auto& [memory, unused, cpus, tasks, since_unix_s, cards] = it;
  make_up_all(memory, unused, cpus, tasks, since_unix_s, cards);
}
inline void make_up(model::Want& it) {
  auto& [memory, cpus, gpus, gpu_memory, since_unix_s] = it;
  make_up_all(memory, cpus, gpus, gpu_memory, since_unix_s);
}
inline void make_up(model::DropOuts& it) {
  auto& [uuid, number, slice, times, avoided_until_unix_s] = it;
  make_up_all(uuid, number, slice, times, avoided_until_unix_s);
}
inline void make_up(model::Promises& it) {
  auto& [ticket, run, name, memory_total, cpus_total, held, claimed, want, drop_outs] = it;
  make_up_all(ticket, run, name, memory_total, cpus_total, held, claimed, want, drop_outs);
}
inline void make_up(model::Neighbour& it) {
  auto& [user, is_ours, user_name, midnight_unix_s, waits, goes_first, its] = it;
  make_up_all(user, is_ours, user_name, midnight_unix_s, waits, goes_first, its);
}

/// Makes a plan of one that names what is not there: its numbers become smaller, what has no place
/// to stand in goes, and what must be in order is put in order.
inline void mend(model::Plan& plan) {
  for (std::uint32_t i = 0; i < plan.groups.size(); ++i) {
    for (auto* const needs : {&plan.groups[i].needs, &plan.groups[i].needs_by_task}) {
      if (i == 0) needs->clear();
      for (model::GroupIndex& needed : *needs) needed.value %= i;
    }
  }
  const auto below = [](auto& index, std::size_t count) {
    index.value %= static_cast<std::uint32_t>(count);
  };
  if (plan.groups.empty()) plan.shapes.clear();
  for (model::Shape& shape : plan.shapes) below(shape.group, plan.groups.size());
  if (plan.shapes.empty()) plan.tasks.clear(), plan.sharing.clear();
  for (model::PlannedTask& task : plan.tasks) below(task.shape, plan.shapes.size());
  std::ranges::sort(plan.tasks, {}, [&](const model::PlannedTask& task) {
    return plan.shapes[task.shape.value].group;
  });
  for (model::SharingMeasured& measured : plan.sharing) below(measured.shape, plan.shapes.size());
  if (plan.tasks.empty()) {
    plan.task_needs.clear(), plan.reached.clear(), plan.taken.clear(), plan.said.clear();
    plan.failed.clear();
  }
  for (model::Reached& reached : plan.reached) below(reached.task, plan.tasks.size());
  for (model::TakenBefore& taken : plan.taken) below(taken.task, plan.tasks.size());
  for (model::SaidOfTask& said : plan.said) below(said.task, plan.tasks.size());
  for (model::FailedBefore& failed : plan.failed) below(failed.task, plan.tasks.size());
  for (model::TaskNeed& need : plan.task_needs) {
    below(need.task, plan.tasks.size());
    below(need.needed, plan.tasks.size());
  }
  std::erase_if(plan.task_needs, [&](const model::TaskNeed& need) {
    const auto& groups = plan.groups[plan.shape_of(need.task).group.value].needs_by_task;
    return std::ranges::find(groups, plan.shape_of(need.needed).group) == groups.end();
  });
  std::ranges::sort(plan.task_needs);
  const auto repeated = std::ranges::unique(plan.task_needs);
  plan.task_needs.erase(repeated.begin(), repeated.end());
}
inline void make_up(std::shared_ptr<const model::Plan>& it) {
  model::Plan plan;
  make_up_all(plan);
  mend(plan);
  it = std::make_shared<const model::Plan>(std::move(plan));
}
inline void make_up(model::ExitedWith& it) {
  auto& [code] = it;
  make_up_all(code);
}
inline void make_up(model::KilledBy& it) {
  auto& [signal, out_of_memory, over_limit] = it;
  make_up_all(signal, out_of_memory, over_limit);
}
inline void make_up(model::NotStarted& it) {
  auto& [why, of_machine] = it;
  make_up_all(why, of_machine);
}
inline void make_up(model::Vanished& it) {
  auto& [why] = it;
  make_up_all(why);
}
inline void make_up(model::RanksAtEnd& it) {
  auto& [failed, finished, largest, largest_memory] = it;
  make_up_all(failed, finished, largest, largest_memory);
}
inline void make_up(model::TaskSample& it) {
  auto& [key, memory] = it;
  make_up_all(key, memory);
}
inline void make_up(model::DiskRoom& it) {
  auto& [free, total] = it;
  make_up_all(free, total);
}
inline void make_up(model::GpuReading& it) {
  auto& [present, used, of_strangers, processes_known, utilization, other_user] = it;
  make_up_all(present, used, of_strangers, processes_known, utilization, other_user);
}
inline void make_up(model::GpuUse& it) {
  auto& [key, gpu, memory] = it;
  make_up_all(key, gpu, memory);
}
inline void make_up(model::GpuFound& it) {
  auto& [gpu, what] = it;
  make_up_all(gpu, what);
}
inline void make_up(model::MachineJoined& it) {
  auto& [machine, name, capacity, until] = it;
  make_up_all(machine, name, capacity, until);
}
inline void make_up(model::MachineGone& it) {
  auto& [machine, why] = it;
  make_up_all(machine, why);
}
inline void make_up(model::AttemptStarted& it) {
  auto& [key, pid, capped_by, began, code] = it;
  make_up_all(key, pid, capped_by, began, code);
}
inline void make_up(model::StageReported& it) {
  auto& [key, said, message, of_gpu, traceback, capped_by] = it;
  make_up_all(key, said, message, of_gpu, traceback, capped_by);
}
inline void make_up(model::Progressed& it) {
  auto& [key, fraction, values] = it;
  make_up_all(key, fraction, values);
}
inline void make_up(model::AttemptEnded& it) {
  auto& [key, end, usage, result, warning, out_of_memory, of_gpu, last_words, has_checkpoint, ranks,
         ended] = it;
  make_up_all(key, end, usage, result, warning, out_of_memory, of_gpu, last_words, has_checkpoint,
              ranks, ended);
}
inline void make_up(model::Sampled& it) {
  auto& [memory_available, cpu_used_by_others, tasks, disk, machine] = it;
  make_up_all(memory_available, cpu_used_by_others, tasks, disk, machine);
}
inline void make_up(model::GpusSampled& it) {
  auto& [gpus, uses, found, ends_follow, machine] = it;
  make_up_all(gpus, uses, found, ends_follow, machine);
}
inline void make_up(model::KeeperSilent& it) {
  auto& [silent, another, machine] = it;
  make_up_all(silent, another, machine);
}
inline void make_up(model::InterruptAsked& it) {
  auto& [why] = it;
  make_up_all(why);
}
inline void make_up(model::KillAsked& it) {
  auto& [task, request] = it;
  make_up_all(task, request);
}
inline void make_up(model::RetryAsked& it) {
  auto& [task, request, memory, gpu_memory, time_limit] = it;
  make_up_all(task, request, memory, gpu_memory, time_limit);
}
inline void make_up(model::HoldAsked& it) {
  auto& [task, request, hold] = it;
  make_up_all(task, request, hold);
}
inline void make_up(model::PriorityAsked& it) {
  auto& [task, request, priority] = it;
  make_up_all(task, request, priority);
}
inline void make_up(model::BatchAdded& it) {
  auto& [number, plan, is_promised, more_follow] = it;
  make_up_all(number, plan, is_promised, more_follow);
}
inline void make_up(model::NeighboursSeen& it) {
  auto& [neighbours, machine] = it;
  make_up_all(neighbours, machine);
}
inline void make_up(model::ClaimRefused& it) {
  auto& [attempts, neighbours, no_more, machine] = it;
  make_up_all(attempts, neighbours, no_more, machine);
}
inline void make_up(model::LimitsChanged& it) {
  auto& [gpus_max, until, drained, cleared, machine] = it;
  make_up_all(gpus_max, until, drained, cleared, machine);
}
inline void make_up(model::AttemptFound& it) {
  auto& [key, promise, site, gpu_memory_max, since, more_follow] = it;
  make_up_all(key, promise, site, gpu_memory_max, since, more_follow);
}
inline void make_up(model::CodeFound& it) {
  auto& [code, diff, attempts] = it;
  make_up_all(code, diff, attempts);
}
inline void make_up(model::TimePassed&) {}
inline void make_up(model::StartAttempt& it) {
  auto& [key, promise, site, memory_max, gpu_memory_max] = it;
  make_up_all(key, promise, site, memory_max, gpu_memory_max);
}
inline void make_up(model::GrantDevice& it) {
  auto& [key, promise, site, memory_max, gpu_memory_max] = it;
  make_up_all(key, promise, site, memory_max, gpu_memory_max);
}
inline void make_up(model::SignalAttempt& it) {
  auto& [key, signal] = it;
  make_up_all(key, signal);
}
inline void make_up(model::StopAttempt& it) {
  auto& [key, kill] = it;
  make_up_all(key, kill);
}
inline void make_up(model::Answer& it) {
  auto& [request, done] = it;
  make_up_all(request, done);
}

template <class... Values>
void make_up_all(Values&... values) {
  (make_up(values), ...);
}

}  // namespace trainyard::wire
