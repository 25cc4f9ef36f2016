// How long the yard itself takes over a great many tasks, without any process: the real scheduler
// and the real loop on a machine where tasks end when their made-up time is over. Rows of the
// journal and reasons are produced as in a real run; with a path they are written to a journal too.
//
// usage: scheduler_core TASKS SHAPES [JOURNAL]
// Prints one JSON object: tasks, seconds, rows, row_bytes, reasons, turns, simulated_seconds.
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <expected>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <queue>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include "base/bytes.h"
#include "base/check.h"
#include "base/result.h"
#include "base/time.h"
#include "journal/event_text.h"
#include "journal/journal.h"
#include "journal/recorder.h"
#include "model/command.h"
#include "model/event.h"
#include "model/ids.h"
#include "model/plan.h"
#include "model/resources.h"
#include "model/turn.h"
#include "run/drive.h"
#include "run/machine.h"
#include "schedule/scheduler.h"

namespace trainyard {
namespace {

constexpr Duration kSampleEvery{1000};
constexpr Capacity kMachine{.memory = gb(256), .cpus = cpus(64)};

/// The same numbers on every machine and with every compiler.
class Numbers {
 public:
  std::int64_t below(std::int64_t limit) {
    state_ = state_ * 6364136223846793005U + 1442695040888963407U;
    return static_cast<std::int64_t>((state_ >> 33U) % static_cast<std::uint64_t>(limit));
  }

 private:
  std::uint64_t state_ = 1;
};

/// Tasks of all shapes mixed, so that the queue is never of one kind.
Plan make_plan(std::size_t tasks, std::size_t shapes) {
  Plan plan;
  plan.groups.push_back({.name = "all"});
  Numbers numbers;
  for (std::size_t i = 0; i < shapes; ++i) {
    const Request request{.memory = mb(500 + numbers.below(7500)),
                          .cpus = Cpus{500 * (1 + numbers.below(4))}};
    plan.shapes.push_back({.group = {0}, .request = request, .time_limit = Duration(3'600'000)});
  }
  plan.tasks.resize(tasks);
  for (std::size_t i = 0; i < tasks; ++i) {
    plan.tasks[i].shape = {static_cast<std::uint32_t>(i % shapes)};
  }
  return plan;
}

/// Starts at once what it is told to, and ends it half a second to one and a half later.
class SmoothMachine final : public Machine {
 public:
  [[nodiscard]] Capacity capacity() const override { return kMachine; }

  Event look() override { return {.at = now_, .what = read()}; }

  void carry_out(const Command& command) override {
    const auto* const start = std::get_if<StartAttempt>(&command);
    check(start != nullptr, "nothing is stopped where nothing goes wrong");
    inbox_.push_back({.at = now_, .what = AttemptStarted{.key = start->key, .pid = ++last_pid_}});
    ends_.push({.at = now_ + Duration(500 + numbers_.below(1000)), .key = start->key});
    running_.emplace(start->key.task, *start);
    memory_free_ -= start->promise.memory;
  }

  std::vector<Event> wait(std::optional<Instant> until) override {
    if (!inbox_.empty()) return std::exchange(inbox_, {});
    Instant next = next_sample_;
    if (until && *until < next) next = *until;
    if (!ends_.empty() && ends_.top().at < next) next = ends_.top().at;
    now_ = next;
    while (!ends_.empty() && ends_.top().at <= now_) end_first();
    if (now_ == next_sample_) {
      inbox_.push_back({.at = now_, .what = read()});
      next_sample_ = now_ + kSampleEvery;
    }
    if (inbox_.empty()) inbox_.push_back({.at = now_, .what = TimePassed{}});
    return std::exchange(inbox_, {});
  }

  [[nodiscard]] Instant now() const { return now_; }

 private:
  struct Ending {
    Instant at;
    AttemptKey key;
    friend auto operator<=>(const Ending&, const Ending&) = default;
  };

  void end_first() {
    const AttemptKey key = ends_.top().key;
    ends_.pop();
    const auto it = running_.find(key.task);
    memory_free_ += it->second.promise.memory;
    const Usage usage{.memory_peak = it->second.promise.memory, .cpu_time = Duration(1000)};
    running_.erase(it);
    inbox_.push_back({.at = now_,
                      .what = AttemptEnded{.key = key,
                                           .end = ExitedWith{0},
                                           .usage = usage,
                                           .result = R"({"accuracy": 0.9751})"}});
  }

  [[nodiscard]] Sampled read() const {
    Sampled reading{.memory_available = memory_free_};
    reading.tasks.reserve(running_.size());
    for (const auto& [task, start] : running_) {
      reading.tasks.push_back({.key = start.key, .memory = start.promise.memory});
    }
    return reading;
  }

  Instant now_;
  Instant next_sample_{kSampleEvery};
  Numbers numbers_;
  Bytes memory_free_ = kMachine.memory;
  std::int64_t last_pid_ = 0;
  std::map<TaskIndex, StartAttempt> running_;
  std::priority_queue<Ending, std::vector<Ending>, std::greater<>> ends_;
  std::vector<Event> inbox_;
};

/// Makes every row that a journal would keep, counts it, and hands the turn on to `journal` if
/// there is one.
class RowCounter final : public Recorder {
 public:
  explicit RowCounter(Journal* journal) : journal_(journal) { numbers_.groups = {0}; }

  Result<void> commit(const Turn& turn) override {
    ++turns;
    for (std::size_t i = 0; i < turn.events.size(); ++i) count(turn.events[i], turn.decisions[i]);
    return journal_ != nullptr ? journal_->commit(turn) : Result<void>();
  }

  std::int64_t turns = 0;
  std::int64_t rows = 0;
  std::int64_t row_bytes = 0;
  std::int64_t reasons = 0;

 private:
  void count(const Event& event, const Decision& decision) {
    EventRows rows_of_event(event, decision, numbers_);
    while (rows_of_event.next(row_)) {
      ++rows;
      row_bytes += static_cast<std::int64_t>(row_.data.size());
    }
    for (const Change& change : decision.changes) {
      reasons += std::holds_alternative<ReasonChanged>(change) ? 1 : 0;
    }
  }

  Journal* journal_;
  RowNumbers numbers_;
  EventRow row_;
};

Result<std::unique_ptr<Journal>> make_journal(const std::string& path, const Plan& plan) {
  PlanNames names{.job_name = "bench",
                  .task_id = [](TaskIndex task) { return fmt::format("i={}", task.value); },
                  .matrix_values =
                      [](TaskIndex task) {
                        return std::vector<std::pair<std::string, std::string>>{
                            {"i", std::to_string(task.value)}};
                      },
                  .fingerprint = [](TaskIndex task) { return std::uint64_t{task.value}; }};
  return Journal::create(path, plan, names, Execution{.command_line = "scheduler_core"});
}

Result<void> measure(std::size_t tasks, std::size_t shapes, const char* journal_path) {
  const auto began = std::chrono::steady_clock::now();
  Plan plan = make_plan(tasks, shapes);
  std::unique_ptr<Journal> journal;
  if (journal_path != nullptr) {
    auto made = make_journal(journal_path, plan);
    if (!made) return std::unexpected(made.error());
    journal = std::move(*made);
  }
  Scheduler scheduler(std::move(plan), Limits{}, kMachine);
  SmoothMachine machine;
  RowCounter counter(journal.get());
  std::vector<Observer> observers;
  if (auto driven = drive(scheduler, machine, counter, observers); !driven) return driven;
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
  fmt::print(R"({{"tasks": {}, "seconds": {:.4f}, "rows": {}, "row_bytes": {}, "reasons": {}, )"
             R"("turns": {}, "simulated_seconds": {}}})"
             "\n",
             tasks, took.count(), counter.rows, counter.row_bytes, counter.reasons, counter.turns,
             machine.now().since_start.count() / 1000);
  return {};
}

}  // namespace
}  // namespace trainyard

int main(int argc, char** argv) {
  if (argc != 3 && argc != 4) {
    std::fputs("usage: scheduler_core TASKS SHAPES [JOURNAL]\n", stderr);
    return 2;
  }
  const auto tasks = static_cast<std::size_t>(std::strtoull(argv[1], nullptr, 10));
  const auto shapes = static_cast<std::size_t>(std::strtoull(argv[2], nullptr, 10));
  if (tasks == 0 || shapes == 0 || shapes > tasks) {
    std::fputs("scheduler_core: at least one task for each shape\n", stderr);
    return 2;
  }
  const auto measured = trainyard::measure(tasks, shapes, argc == 4 ? argv[3] : nullptr);
  if (measured) return 0;
  fmt::print(stderr, "scheduler_core: {}\n", measured.error().message);
  return 1;
}
