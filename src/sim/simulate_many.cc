#include "sim/simulate_many.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
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
#include "base/result.h"
#include "base/time.h"
#include "journal/event_text.h"
#include "journal/recorder.h"
#include "model/command.h"
#include "model/event.h"
#include "model/ids.h"
#include "model/plan.h"
#include "model/resources.h"
#include "model/status.h"
#include "model/turn.h"
#include "run/drive.h"
#include "run/machine.h"
#include "schedule/scheduler.h"
#include "sim/random.h"

namespace trainyard::sim {
namespace {

constexpr Duration kPlayedSampleEvery{1000};
const model::Capacity kMachine{.memory = gb(256), .cpus = model::cpus(64)};

/// Starts at once what it is told to, and ends it half a second to one and a half later.
class SmoothMachine final : public run::Machine {
 public:
  explicit SmoothMachine(const model::Plan& plan) {
    inbox_.push_back({.at = now_, .what = read()});
    inbox_.push_back(
        {.at = now_, .what = model::BatchAdded{.plan = std::make_shared<model::Plan>(plan)}});
  }

  void carry_out(const model::Command& command) override {
    const auto* const start = std::get_if<model::StartAttempt>(&command);
    check(start != nullptr, "nothing is stopped where nothing goes wrong");
    inbox_.push_back(
        {.at = now_, .what = model::AttemptStarted{.key = start->key, .pid = ++last_pid_}});
    const Instant end = now_ + random_.between(Duration{500}, Duration{1500});
    agenda_.push({.at = end, .key = start->key});
    running_.emplace(start->key.task, *start);
    memory_free_ -= start->promise.memory;
  }

  std::vector<model::Event> wait(std::optional<Instant> until) override {
    if (!inbox_.empty()) return std::exchange(inbox_, {});
    now_ = next_sample_;
    if (until) now_ = std::min(now_, *until);
    if (!agenda_.empty()) now_ = std::min(now_, agenda_.top().at);
    while (!agenda_.empty() && agenda_.top().at <= now_) end_first();
    if (now_ == next_sample_) {
      inbox_.push_back({.at = now_, .what = read()});
      next_sample_ = now_ + kPlayedSampleEvery;
    }
    if (inbox_.empty()) inbox_.push_back({.at = now_, .what = model::TimePassed{}});
    return std::exchange(inbox_, {});
  }

  [[nodiscard]] Instant now() const { return now_; }

 private:
  struct End {
    Instant at;
    model::AttemptKey key;
    friend auto operator<=>(const End&, const End&) = default;
  };

  void end_first() {
    const model::AttemptKey key = agenda_.top().key;
    agenda_.pop();
    const auto it = running_.find(key.task);
    const Bytes memory = it->second.promise.memory;
    running_.erase(it);
    memory_free_ += memory;
    inbox_.push_back(
        {.at = now_,
         .what = model::AttemptEnded{.key = key,
                                     .end = model::ExitedWith{0},
                                     .usage = {.memory_peak = memory, .cpu_time = Duration{1000}},
                                     .result = R"({"accuracy": 0.9751})",
                                     .warning = {}}});
  }

  [[nodiscard]] model::Sampled read() const {
    model::Sampled reading{.memory_available = memory_free_, .cpu_used_by_others = 0, .tasks = {}};
    reading.tasks.reserve(running_.size());
    for (const auto& [task, start] : running_) {
      reading.tasks.push_back({.key = start.key, .memory = start.promise.memory});
    }
    return reading;
  }

  Instant now_;
  Instant next_sample_{kPlayedSampleEvery};
  Random random_{1};
  Bytes memory_free_ = kMachine.memory;
  std::int64_t last_pid_ = 0;
  std::map<model::TaskIndex, model::StartAttempt> running_;
  std::priority_queue<End, std::vector<End>, std::greater<>> agenda_;
  std::vector<model::Event> inbox_;
};

/// Makes every row that the journal makes of a turn, and counts it.
class RowCounter final : public journal::Recorder {
 public:
  explicit RowCounter(journal::Recorder* also) : also_(also) { numbers_.groups = {0}; }

  Result<void> commit(const model::Turn& turn) override {
    ++counts_.turns;
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
  Random random(1);
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

Result<ManyCounts> simulate_many(const model::Plan& plan, journal::Recorder* also) {
  schedule::Scheduler scheduler(model::Policy{}, kMachine);
  SmoothMachine machine(plan);
  RowCounter counter(also);
  std::vector<run::Observer> observers;
  Result<void> driven = run::drive(scheduler, machine, counter, observers);
  if (!driven) return std::unexpected(std::move(driven.error()));
  ManyCounts counts = counter.counts();
  counts.ended = machine.now();
  return counts;
}

}  // namespace trainyard::sim
