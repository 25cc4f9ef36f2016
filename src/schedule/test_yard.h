// A scheduler on an idle machine, and short ways to send it events and to describe its decisions.
// For the tests of schedule/ only.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include "base/bytes.h"
#include "base/match.h"
#include "base/time.h"
#include "model/command.h"
#include "model/event.h"
#include "model/ids.h"
#include "model/plan.h"
#include "model/resources.h"
#include "model/sharing_text.h"
#include "model/site_wish.h"
#include "model/status.h"
#include "model/terms.h"
#include "model/waiting.h"
#include "schedule/scheduler.h"

namespace trainyard::schedule {

/// A machine with two GPUs that are alike.
inline const model::Capacity kTwoGpus{.memory = gb(10),
                                      .cpus = model::cpus(8),
                                      .gpus = {{.number = 0, .pci = "a", .memory = gb(8)},
                                               {.number = 1, .pci = "b", .memory = gb(8)}}};

/// The text of why tasks wait uses the numbers of the decision's headroom.
inline std::string told(const model::Change& change, const model::Headroom& room = {}) {
  return match(
      change,
      [](const model::TaskChanged& it) {
        std::string text =
            fmt::format("{}#{} {}", it.key.task.value, it.key.attempt, to_text(it.status));
        if (it.verdict != model::Verdict::None)
          text += fmt::format(" {}", model::to_text(it.verdict));
        if (it.failure != model::Failure::None)
          text += fmt::format(" {}", model::to_text(it.failure));
        if (!it.message.empty()) text += fmt::format(": {}", it.message);
        return text;
      },
      [](const model::GroupChanged& it) {
        constexpr std::array<const char*, 6> kNames{"blocked", "running", "finished",
                                                    "failed",  "skipped", "stopped"};
        std::string text = fmt::format("group {} {}", it.group.value,
                                       kNames.at(static_cast<std::size_t>(it.phase)));
        return it.message.empty() ? text : text + ": " + it.message;
      },
      [&room](const model::ReasonChanged& it) {
        return fmt::format("shape {}: {}", it.shape.value, model::reason_text(it.reason, room));
      },
      [](const model::HeadroomSeen&) { return std::string("room"); },
      [](const model::SharingMeasured& it) {
        return fmt::format("shape {}: {}", it.shape.value, model::sharing_text(it));
      },
      [](const model::Reached& it) {
        std::string text = fmt::format("{} has reached {}", it.task.value, to_text(it.memory));
        if (it.gpu_memory > Bytes{}) text += fmt::format(", {} on GPUs", to_text(it.gpu_memory));
        if (it.largest) text += ", alone";
        return fmt::format("{}; tries {}/{}/{}/{}", text, it.tries.load, it.tries.train,
                           it.tries.preempted, it.tries.crowded);
      },
      [](const model::SaidOfTask& it) {
        return fmt::format("{} {}{}", it.task.value, it.on_hold ? "on hold" : "not on hold",
                           it.priority ? fmt::format(", priority {}", *it.priority) : "");
      },
      [](const model::Learned& it) {
        return fmt::format("shape {} learns of {}: {}, {} on GPUs", it.shape.value, it.tasks,
                           to_text(it.memory), to_text(it.gpu_memory));
      });
}

/// ", 3 GB on 0,1", ", 1 whole"; nothing for a task without GPUs. With the machine, if it is not
/// the first one: ", 3 GB on 0 of 1", " on 1".
inline std::string told(const model::Request& promise, const model::Site& site) {
  std::string text;
  for (const model::GpuIndex gpu : site.gpus)
    text += fmt::format("{}{}", text.empty() ? "" : ",", gpu.value);
  const bool first = site.machine == model::MachineIndex{};
  if (text.empty()) return first ? text : fmt::format(" on {}", site.machine.value);
  if (!first) text += fmt::format(" of {}", site.machine.value);
  if (promise.gpu_memory == Bytes{}) return fmt::format(", {} whole", text);
  return fmt::format(", {} on {}", to_text(promise.gpu_memory), text);
}

inline std::string told(const model::Command& command) {
  return match(
      command,
      [](const model::StartAttempt& it) {
        return fmt::format("start {}#{} with {}{}", it.key.task.value, it.key.attempt,
                           to_text(it.promise.memory), told(it.promise, it.site));
      },
      [](const model::GrantDevice& it) {
        return fmt::format("train {}#{} with {}{}", it.key.task.value, it.key.attempt,
                           to_text(it.promise.memory), told(it.promise, it.site));
      },
      [](const model::SignalAttempt& it) {
        return fmt::format("signal {} {}#{}", it.signal, it.key.task.value, it.key.attempt);
      },
      [](const model::StopAttempt& it) {
        return fmt::format("{} {}#{}", it.kill ? "kill" : "stop", it.key.task.value,
                           it.key.attempt);
      },
      [](const model::Answer& it) {
        return fmt::format("answer {} {}", it.request, it.done ? "done" : "not running");
      });
}

/// Changes that are written for a resumed run alone are in reached().
inline std::vector<std::string> changes(const model::Decision& decision) {
  std::vector<std::string> texts;
  texts.reserve(decision.changes.size());
  model::Headroom room;
  for (const model::Change& change : decision.changes) {
    if (const auto* const seen = std::get_if<model::HeadroomSeen>(&change)) room = seen->headroom;
  }
  for (const model::Change& change : decision.changes) {
    const bool shown = !std::holds_alternative<model::HeadroomSeen>(change) &&
                       !std::holds_alternative<model::Reached>(change);
    if (shown) texts.push_back(told(change, room));
  }
  return texts;
}

inline std::vector<std::string> reached(const model::Decision& decision) {
  std::vector<std::string> texts;
  for (const model::Change& change : decision.changes) {
    if (std::holds_alternative<model::Reached>(change)) texts.push_back(told(change));
  }
  return texts;
}

/// The tasks that ended while they waited because another task of their group failed.
inline std::vector<std::uint32_t> ended_with_group(const model::Decision& decision) {
  std::vector<std::uint32_t> tasks;
  for (const model::Change& change : decision.changes) {
    const auto* const task = std::get_if<model::TaskChanged>(&change);
    if (task != nullptr && task->with_group) tasks.push_back(task->key.task.value);
  }
  return tasks;
}

inline std::vector<std::string> commands(const model::Decision& decision) {
  std::vector<std::string> texts;
  texts.reserve(decision.commands.size());
  for (const model::Command& command : decision.commands) texts.push_back(told(command));
  return texts;
}

constexpr Bytes kMachineMemory = gb(10);
inline const model::Capacity kMachine{.memory = kMachineMemory, .cpus = model::cpus(4)};
inline const model::Policy kAnythingGoes{.memory_remain = Bytes{0}, .train_retries = 3};
constexpr Instant kStart{};
inline Instant at(int seconds) { return {Duration{seconds * 1000}}; }

/// A plan of one group, unless another is opened.
class PlanBuilder {
 public:
  PlanBuilder& group(model::PlannedGroup group) {
    plan_.groups.push_back(std::move(group));
    return *this;
  }
  PlanBuilder& tasks(int count, Bytes memory, model::Cpus cpus = {}, Duration time_limit = {}) {
    if (plan_.groups.empty()) plan_.groups.push_back({.name = "g"});
    const auto index = static_cast<std::uint32_t>(plan_.groups.size() - 1);
    plan_.shapes.push_back(
        {.group = {index},
         .terms = {.request = {.memory = memory, .cpus = cpus}, .time_limit = time_limit}});
    for (int i = 0; i < count; ++i) {
      plan_.tasks.push_back({.shape = {static_cast<std::uint32_t>(plan_.shapes.size() - 1)}});
    }
    return *this;
  }
  /// The tasks added last want GPUs.
  PlanBuilder& on_gpus(int gpus, Bytes each = {}, std::optional<model::GpuIndex> which = {}) {
    model::Request& request = plan_.shapes.back().terms.request;
    request.gpus = gpus;
    request.gpu_memory = each;
    request.gpu = which;
    return *this;
  }
  /// The terms about other tasks on their GPUs.
  PlanBuilder& sharing(const model::GpuSharing& sharing) {
    plan_.shapes.back().terms.request.sharing = sharing;
    return *this;
  }
  /// Their use of GPU memory is limited like this.
  PlanBuilder& gpu_memory_limit(model::GpuMemoryLimit limit) {
    plan_.shapes.back().terms.gpu_memory_limit = limit;
    return *this;
  }
  /// The tasks added last have this number of processes each.
  PlanBuilder& ranks(int count) {
    plan_.shapes.back().terms.ranks = count;
    return *this;
  }
  /// The tasks added last are ended when they take more than their request.
  PlanBuilder& memory_hard() {
    plan_.shapes.back().terms.memory_hard = true;
    return *this;
  }
  /// They get this signal so long before any TERM.
  PlanBuilder& signal(int number, Duration before) {
    plan_.shapes.back().terms.early_signal = {.number = number, .before = before};
    return *this;
  }
  /// They resume from what they save.
  PlanBuilder& checkpoints() {
    plan_.shapes.back().terms.checkpoints = true;
    return *this;
  }
  /// They are retried like this.
  PlanBuilder& retries(const model::Retries& retries) {
    plan_.shapes.back().terms.retries = retries;
    return *this;
  }
  /// The larger goes first.
  PlanBuilder& priority(int priority) {
    plan_.shapes.back().terms.priority = priority;
    return *this;
  }
  /// They request this much of the disk.
  PlanBuilder& disk(Bytes bytes) {
    plan_.shapes.back().terms.request.disk = bytes;
    return *this;
  }
  /// They may run nowhere else.
  PlanBuilder& where(model::SiteWish wish) {
    plan_.shapes.back().terms.request.where = std::move(wish);
    return *this;
  }
  /// They are not interrupted for others.
  PlanBuilder& keeps_running() {
    plan_.shapes.back().terms.preemptible = false;
    return *this;
  }
  /// The needs of the tasks added last are to be learned.
  PlanBuilder& learns_memory() {
    plan_.shapes.back().terms.learns_memory = true;
    return *this;
  }
  PlanBuilder& learns_gpu_memory() {
    plan_.shapes.back().terms.learns_gpu_memory = true;
    return *this;
  }
  /// Learning begins at their requests: they get no less.
  PlanBuilder& at_least() {
    model::Terms& terms = plan_.shapes.back().terms;
    terms.memory_least = terms.request.memory;
    terms.gpu_memory_least = terms.request.gpu_memory;
    return *this;
  }
  /// The tasks added last load first.
  PlanBuilder& two_phase() {
    plan_.shapes.back().terms.two_phase = true;
    return *this;
  }
  [[nodiscard]] model::Plan build() const { return plan_; }

 private:
  model::Plan plan_;
};

/// A scheduler that has begun on an idle machine, and short ways to send it events.
class Yard {
 public:
  explicit Yard(const PlanBuilder& plan, const model::Policy& policy = kAnythingGoes,
                const model::Capacity& machine = kMachine)
      : Yard(plan.build(), policy, machine) {}
  explicit Yard(model::Plan plan, const model::Policy& policy = kAnythingGoes,
                const model::Capacity& machine = kMachine)
      : scheduler_(policy) {
    static_cast<void>(
        on(kStart, model::MachineJoined{.machine = {}, .name = "here", .capacity = machine}));
    static_cast<void>(on(kStart, model::Sampled{.memory_available = machine.memory}));
    first = add(std::move(plan));
  }

  model::Decision add(model::Plan plan, Instant when = kStart, bool more_follow = false) {
    return on(when, model::BatchAdded{.number = ++batches_,
                                      .plan = std::make_shared<model::Plan>(std::move(plan)),
                                      .more_follow = more_follow});
  }

  model::Decision on(Instant when, model::What what) {
    return scheduler_.on({.at = when, .what = std::move(what)});
  }
  model::Decision started(std::uint32_t task, Instant when = kStart, std::uint32_t attempt = 1) {
    return on(when, model::AttemptStarted{.key = {.task = {task}, .attempt = attempt}, .pid = 100});
  }
  model::Decision says(std::uint32_t task, Instant when, model::Said said, std::string message = {},
                       std::uint32_t attempt = 1) {
    return on(when, model::StageReported{.key = {.task = {task}, .attempt = attempt},
                                         .said = said,
                                         .message = std::move(message)});
  }
  /// Starts, and loads at once.
  model::Decision loaded(std::uint32_t task, Instant when, std::uint32_t attempt = 1) {
    static_cast<void>(started(task, when, attempt));
    static_cast<void>(says(task, when, model::Said::Loading, {}, attempt));
    return says(task, when, model::Said::Loaded, {}, attempt);
  }
  model::Decision ended(std::uint32_t task, Instant when, model::End end = model::ExitedWith{0},
                        Bytes peak = {}, std::uint32_t attempt = 1) {
    return on(when, model::AttemptEnded{.key = {.task = {task}, .attempt = attempt},
                                        .end = std::move(end),
                                        .usage = {.memory_peak = peak}});
  }
  /// Starts and ends at once.
  model::Decision ran(std::uint32_t task, Instant when, model::End end = model::ExitedWith{0}) {
    static_cast<void>(started(task, when));
    return ended(task, when, std::move(end));
  }
  /// Every process that a decision asked for starts at once. Returns the decision.
  model::Decision go(model::Decision decision, Instant when) {
    for (const model::Command& command : decision.commands) {
      if (const auto* start = std::get_if<model::StartAttempt>(&command)) {
        static_cast<void>(on(when, model::AttemptStarted{.key = start->key, .pid = 100}));
      }
    }
    return decision;
  }
  [[nodiscard]] const Scheduler& scheduler() const { return scheduler_; }
  [[nodiscard]] bool over() const { return scheduler_.idle(); }
  [[nodiscard]] std::optional<Instant> wakeup() const { return scheduler_.wakeup(); }

  model::Decision first;

 private:
  std::uint32_t batches_ = 0;
  Scheduler scheduler_;
};

}  // namespace trainyard::schedule
