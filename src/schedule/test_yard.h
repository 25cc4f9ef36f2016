// A scheduler on an idle machine, and short ways to tell it things and to say what came out. For
// the tests of schedule/ only.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
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
#include "model/status.h"
#include "model/waiting.h"
#include "schedule/scheduler.h"

namespace trainyard::schedule_test {

/// A machine with two GPUs that are alike.
inline const Capacity kTwoGpus{.memory = gb(10),
                               .cpus = cpus(8),
                               .gpus = {{.number = 0, .pci = "a", .memory = gb(8)},
                                        {.number = 1, .pci = "b", .memory = gb(8)}}};

/// Why tasks wait is told with the numbers that the decision tells beside it.
inline std::string told(const Change& change, const Headroom& room = {}) {
  return match(
      change,
      [](const TaskChanged& it) {
        std::string text =
            fmt::format("{}#{} {}", it.key.task.value, it.key.attempt, to_text(it.status));
        if (it.verdict != Verdict::None) text += fmt::format(" {}", to_text(it.verdict));
        if (it.failure != Failure::None) text += fmt::format(" {}", to_text(it.failure));
        if (!it.message.empty()) text += fmt::format(": {}", it.message);
        return text;
      },
      [](const GroupChanged& it) {
        constexpr std::array<const char*, 6> kNames{"blocked", "running", "finished",
                                                    "failed",  "skipped", "stopped"};
        std::string text = fmt::format("group {} {}", it.group.value,
                                       kNames.at(static_cast<std::size_t>(it.phase)));
        return it.message.empty() ? text : text + ": " + it.message;
      },
      [&room](const ReasonChanged& it) {
        return fmt::format("shape {}: {}", it.shape.value, reason_text(it.reason, room));
      },
      [](const HeadroomSeen&) { return std::string("room"); });
}

/// ", 3 GB on 0,1", ", 1 whole"; nothing for a task without GPUs.
inline std::string told(const Request& promise, const std::vector<GpuIndex>& gpus) {
  std::string text;
  for (const GpuIndex gpu : gpus) text += fmt::format("{}{}", text.empty() ? "" : ",", gpu.value);
  if (text.empty()) return text;
  if (promise.gpu_memory == Bytes{}) return fmt::format(", {} whole", text);
  return fmt::format(", {} on {}", to_text(promise.gpu_memory), text);
}

inline std::string told(const Command& command) {
  return match(
      command,
      [](const StartAttempt& it) {
        return fmt::format("start {}#{} with {}{}", it.key.task.value, it.key.attempt,
                           to_text(it.promise.memory), told(it.promise, it.gpus));
      },
      [](const GrantDevice& it) {
        return fmt::format("train {}#{} with {}{}", it.key.task.value, it.key.attempt,
                           to_text(it.promise.memory), told(it.promise, it.gpus));
      },
      [](const SignalAttempt& it) {
        return fmt::format("signal {} {}#{}", it.signal, it.key.task.value, it.key.attempt);
      },
      [](const StopAttempt& it) {
        return fmt::format("{} {}#{}", it.kill ? "kill" : "stop", it.key.task.value,
                           it.key.attempt);
      },
      [](const AnswerKill& it) {
        return fmt::format("answer {} {}", it.request, it.done ? "done" : "not running");
      });
}

inline std::vector<std::string> changes(const Decision& decision) {
  std::vector<std::string> texts;
  texts.reserve(decision.changes.size());
  Headroom room;
  for (const Change& change : decision.changes) {
    if (const auto* const seen = std::get_if<HeadroomSeen>(&change)) room = seen->headroom;
  }
  for (const Change& change : decision.changes) {
    if (!std::holds_alternative<HeadroomSeen>(change)) texts.push_back(told(change, room));
  }
  return texts;
}

inline std::vector<std::string> commands(const Decision& decision) {
  std::vector<std::string> texts;
  texts.reserve(decision.commands.size());
  for (const Command& command : decision.commands) texts.push_back(told(command));
  return texts;
}

constexpr Bytes kMachineMemory = gb(10);
inline const Capacity kMachine{.memory = kMachineMemory, .cpus = cpus(4)};
inline const Limits kNoLimits{.memory_remain = Bytes{0}, .train_retries = 3};
constexpr Instant kStart{};
inline Instant at(int seconds) { return {Duration{seconds * 1000}}; }

/// A plan of one group, unless another is opened.
class PlanBuilder {
 public:
  PlanBuilder& group(PlannedGroup group) {
    plan_.groups.push_back(std::move(group));
    return *this;
  }
  PlanBuilder& tasks(int count, Bytes memory, Cpus cpus = {}, Duration time_limit = {}) {
    if (plan_.groups.empty()) plan_.groups.push_back({.name = "g"});
    const auto index = static_cast<std::uint32_t>(plan_.groups.size() - 1);
    plan_.shapes.push_back(
        {.group = {index}, .request = {.memory = memory, .cpus = cpus}, .time_limit = time_limit});
    for (int i = 0; i < count; ++i) {
      plan_.tasks.push_back({.shape = {static_cast<std::uint32_t>(plan_.shapes.size() - 1)}});
    }
    return *this;
  }
  /// The tasks added last want GPUs.
  PlanBuilder& on_gpus(int gpus, Bytes each = {}, std::optional<GpuIndex> which = {}) {
    Request& request = plan_.shapes.back().request;
    request.gpus = gpus;
    request.gpu_memory = each;
    request.gpu = which;
    return *this;
  }
  /// The tasks added last have so many processes each.
  PlanBuilder& ranks(int count) {
    plan_.shapes.back().ranks = count;
    return *this;
  }
  /// The tasks added last are ended when they take more than they ask for.
  PlanBuilder& memory_hard() {
    plan_.shapes.back().memory_hard = true;
    return *this;
  }
  /// They get this signal so long before any TERM.
  PlanBuilder& signal(int number, Duration before) {
    plan_.shapes.back().early_signal = {.number = number, .before = before};
    return *this;
  }
  /// They are not interrupted for others.
  PlanBuilder& keeps_running() {
    plan_.shapes.back().preemptible = false;
    return *this;
  }
  /// What the tasks added last need is to be learned.
  PlanBuilder& learns_memory() {
    plan_.shapes.back().learns_memory = true;
    return *this;
  }
  PlanBuilder& learns_gpu_memory() {
    plan_.shapes.back().learns_gpu_memory = true;
    return *this;
  }
  /// The tasks added last load first.
  PlanBuilder& two_phase() {
    plan_.shapes.back().two_phase = true;
    return *this;
  }
  [[nodiscard]] Plan build() const { return plan_; }

 private:
  Plan plan_;
};

/// A scheduler that has begun on an idle machine, and short ways to tell it things.
class Yard {
 public:
  explicit Yard(const PlanBuilder& plan, const Limits& limits = kNoLimits,
                const Capacity& machine = kMachine)
      : scheduler_(plan.build(), limits, machine) {
    first = scheduler_.begin(kStart, {.memory_available = machine.memory});
  }

  Decision on(Instant when, What what) {
    return scheduler_.on({.at = when, .what = std::move(what)});
  }
  Decision started(std::uint32_t task, Instant when = kStart, std::uint32_t attempt = 1) {
    return on(when, AttemptStarted{.key = {.task = {task}, .attempt = attempt}, .pid = 100});
  }
  Decision says(std::uint32_t task, Instant when, Said said, std::string message = {},
                std::uint32_t attempt = 1) {
    return on(when, StageReported{.key = {.task = {task}, .attempt = attempt},
                                  .said = said,
                                  .message = std::move(message)});
  }
  /// Starts, and loads at once.
  Decision loaded(std::uint32_t task, Instant when, std::uint32_t attempt = 1) {
    static_cast<void>(started(task, when, attempt));
    static_cast<void>(says(task, when, Said::Loading, {}, attempt));
    return says(task, when, Said::Loaded, {}, attempt);
  }
  Decision ended(std::uint32_t task, Instant when, End end = ExitedWith{0}, Bytes peak = {},
                 std::uint32_t attempt = 1) {
    return on(when, AttemptEnded{.key = {.task = {task}, .attempt = attempt},
                                 .end = std::move(end),
                                 .usage = {.memory_peak = peak}});
  }
  /// Starts and ends at once.
  Decision ran(std::uint32_t task, Instant when, End end = ExitedWith{0}) {
    static_cast<void>(started(task, when));
    return ended(task, when, std::move(end));
  }
  /// Every process that a decision asked for comes to be at once. Returns the decision.
  Decision go(Decision decision, Instant when) {
    for (const Command& command : decision.commands) {
      if (const auto* start = std::get_if<StartAttempt>(&command)) {
        static_cast<void>(on(when, AttemptStarted{.key = start->key, .pid = 100}));
      }
    }
    return decision;
  }
  [[nodiscard]] bool over() const { return scheduler_.ended(); }
  [[nodiscard]] std::optional<Instant> wakeup() const { return scheduler_.wakeup(); }

  Decision first;

 private:
  Scheduler scheduler_;
};

}  // namespace trainyard::schedule_test
