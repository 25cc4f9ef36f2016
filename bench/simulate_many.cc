#include "bench/simulate_many.h"

#include <algorithm>
#include <expected>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <queue>
#include <utility>
#include <variant>
#include <vector>

#include "base/bytes.h"
#include "base/check.h"
#include "journal/event_text.h"
#include "model/command.h"
#include "model/event.h"
#include "model/ids.h"
#include "model/resources.h"
#include "model/status.h"
#include "model/turn.h"
#include "run/drive.h"
#include "run/machine.h"
#include "schedule/scheduler.h"
#include "sim/random.h"

namespace trainyard::bench {
namespace {

constexpr Duration kPlayedSampleEvery{1000};
const model::Capacity kMachine{.memory = gb(256), .cpus = model::cpus(64)};

/// They start at once what they are told to, and end it half a second to one and a half later.
class SmoothMachines final : public run::Machine {
 public:
  SmoothMachines(const model::Plan& plan, std::uint32_t machines) : machines_(machines) {
    for (std::uint32_t index = 0; index < machines; ++index) {
      tell(model::MachineJoined{.machine = {index}, .name = "made-up", .capacity = kMachine});
      tell(read({index}));
    }
    tell(model::BatchAdded{.plan = std::make_shared<model::Plan>(plan)});
  }

  void carry_out(const model::Command& command) override {
    const auto* const start = std::get_if<model::StartAttempt>(&command);
    check(start != nullptr, "nothing is stopped where nothing goes wrong");
    tell(model::AttemptStarted{.key = start->key, .pid = ++last_pid_});
    const Instant end = now_ + random_.between(Duration{500}, Duration{1500});
    agenda_.push({.at = end, .key = start->key, .machine = start->site.machine});
    Smooth& machine = machines_[start->site.machine.value];
    machine.running.emplace(start->key.task, *start);
    machine.memory_free -= start->promise.memory;
  }

  std::vector<model::Event> wait(std::optional<Instant> until) override {
    if (!inbox_.empty()) return std::exchange(inbox_, {});
    now_ = next_sample_;
    if (until) now_ = std::min(now_, *until);
    if (!agenda_.empty()) now_ = std::min(now_, agenda_.top().at);
    while (!agenda_.empty() && agenda_.top().at <= now_) end_first();
    if (now_ == next_sample_) {
      for (std::uint32_t index = 0; index < machines_.size(); ++index) tell(read({index}));
      next_sample_ = now_ + kPlayedSampleEvery;
    }
    if (inbox_.empty()) tell(model::TimePassed{});
    return std::exchange(inbox_, {});
  }

  [[nodiscard]] Instant now() const { return now_; }

 private:
  struct Smooth {
    Bytes memory_free = kMachine.memory;
    std::map<model::TaskIndex, model::StartAttempt> running;
  };
  struct End {
    Instant at;
    model::AttemptKey key;
    model::MachineIndex machine;
    friend auto operator<=>(const End&, const End&) = default;
  };

  void tell(model::What what) { inbox_.push_back({.at = now_, .what = std::move(what)}); }

  void end_first() {
    const End end = agenda_.top();
    agenda_.pop();
    Smooth& machine = machines_[end.machine.value];
    const auto it = machine.running.find(end.key.task);
    const Bytes memory = it->second.promise.memory;
    machine.running.erase(it);
    machine.memory_free += memory;
    tell(model::AttemptEnded{.key = end.key,
                             .end = model::ExitedWith{0},
                             .usage = {.memory_peak = memory, .cpu_time = Duration{1000}},
                             .result = R"({"accuracy": 0.9751})",
                             .warning = {}});
  }

  [[nodiscard]] model::Sampled read(model::MachineIndex index) const {
    const Smooth& machine = machines_[index.value];
    model::Sampled reading{.memory_available = machine.memory_free,
                           .cpu_used_by_others = 0,
                           .tasks = {},
                           .machine = index};
    reading.tasks.reserve(machine.running.size());
    for (const auto& [task, start] : machine.running) {
      reading.tasks.push_back({.key = start.key, .memory = start.promise.memory});
    }
    return reading;
  }

  Instant now_;
  Instant next_sample_{kPlayedSampleEvery};
  sim::Random random_{1};
  std::vector<Smooth> machines_;
  std::int64_t last_pid_ = 0;
  std::priority_queue<End, std::vector<End>, std::greater<>> agenda_;
  std::vector<model::Event> inbox_;
};

/// Makes every row that the journal makes of a turn, and counts it.
class RowCounter final : public journal::Recorder {
 public:
  explicit RowCounter(journal::Recorder* also) : also_(also) { numbers_.groups = {0}; }

  Result<void> commit(const model::Turn& turn) override {
    ++counts_.turns;
    counts_.events += turn.events.size();
    for (std::size_t i = 0; i < turn.events.size(); ++i) count(turn.events[i], turn.decisions[i]);
    return also_ != nullptr ? also_->commit(turn) : Result<void>();
  }

  [[nodiscard]] const ManyCounts& counts() const { return counts_; }

 private:
  void count(const model::Event& event, const model::Decision& decision) {
    journal::EventRows rows(event, decision, numbers_);
    while (rows.next(row_)) {
      ++counts_.rows;
      counts_.row_bytes += row_.data.size();
    }
    for (const model::Change& change : decision.changes) {
      if (std::holds_alternative<model::ReasonChanged>(change)) ++counts_.reasons;
      const auto* const task = std::get_if<model::TaskChanged>(&change);
      if (task != nullptr && task->verdict == model::Verdict::Finished) ++counts_.finished;
    }
  }

  journal::Recorder* also_;
  journal::RowNumbers numbers_;
  journal::EventRow row_;
  ManyCounts counts_;
};

}  // namespace

model::Plan make_many(std::size_t tasks, std::size_t shapes) {
  check(shapes > 0, "tasks have a shape");
  model::Plan plan;
  plan.groups.push_back({.name = "all"});
  sim::Random random(1);
  for (std::size_t i = 0; i < shapes; ++i) {
    const model::Request request{.memory = random.between(mb(500), mb(8000)),
                                 .cpus = {500 * random.between(1, 4)}};
    plan.shapes.push_back(
        {.group = {0}, .terms = {.request = request, .time_limit = Duration{3'600'000}}});
  }
  plan.tasks.resize(tasks);
  for (std::size_t i = 0; i < tasks; ++i) {
    plan.tasks[i].shape = {static_cast<std::uint32_t>(i % shapes)};
  }
  return plan;
}

Result<ManyCounts> simulate_many(const model::Plan& plan, std::uint32_t machines,
                                 journal::Recorder* also) {
  schedule::Scheduler scheduler(model::Policy{});
  SmoothMachines machine(plan, machines);
  RowCounter counter(also);
  std::vector<run::Observer> observers;
  Result<void> driven = run::drive(scheduler, machine, counter, observers);
  if (!driven) return std::unexpected(std::move(driven.error()));
  ManyCounts counts = counter.counts();
  counts.ended = machine.now();
  return counts;
}

}  // namespace trainyard::bench
