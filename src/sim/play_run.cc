#include "sim/play_run.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <functional>
#include <map>
#include <optional>
#include <queue>
#include <utility>
#include <variant>
#include <vector>

#include "base/bytes.h"
#include "base/match.h"
#include "base/result.h"
#include "base/time.h"
#include "journal/recorder.h"
#include "model/command.h"
#include "model/event.h"
#include "model/ids.h"
#include "model/plan.h"
#include "model/resources.h"
#include "model/turn.h"
#include "model/waiting.h"
#include "run/drive.h"
#include "run/machine.h"
#include "schedule/scheduler.h"

namespace trainyard::sim {
namespace {

/// Nothing has happened for so long: nothing will.
constexpr Duration kStill{30LL * 86'400'000};

class PlayedMachine final : public Machine {
 public:
  PlayedMachine(const Plan& plan, const Capacity& capacity, const std::vector<Course>& courses,
                const PlayOptions& options, PlayedRun& run)
      : plan_(plan),
        capacity_(capacity),
        courses_(courses),
        sample_every_(options.sample_every),
        run_(run),
        used_(capacity.gpus.size()),
        memory_free_(capacity.memory) {
    run_.tasks.resize(plan.tasks.size());
    next_sample_ = Instant{sample_every_};
  }

  [[nodiscard]] Capacity capacity() const override { return capacity_; }

  FirstLook look() override {
    FirstLook first{.at = now_, .machine = read(), .gpus = {}};
    if (!used_.empty()) first.gpus = read_gpus();
    return first;
  }

  void carry_out(const Command& command) override {
    match(
        command, [this](const StartAttempt& it) { start(it); },
        [this](const GrantDevice& it) { train(it.key.task, it.gpus); }, [](const SignalAttempt&) {},
        [this](const StopAttempt& it) { end(it.key.task, KilledBy{.signal = 15}, false); },
        [](const AnswerKill&) {});
  }

  std::vector<Event> wait(std::optional<Instant> until) override {
    while (inbox_.empty()) {
      Instant next = next_sample_;
      if (!agenda_.empty()) next = std::min(next, agenda_.top().at);
      if (until) next = std::min(next, *until);
      now_ = std::max(now_, next);
      while (!agenda_.empty() && agenda_.top().at <= now_) do_next();
      if (now_ >= next_sample_) look_again();
      if (inbox_.empty() && until && *until <= now_) tell(TimePassed{});
    }
    // One thing at a time: what it leads to may change what comes next.
    Event first = std::move(inbox_.front());
    inbox_.erase(inbox_.begin());
    std::vector<Event> events;
    events.push_back(std::move(first));
    return events;
  }

  /// Somebody waited for what never came.
  [[nodiscard]] bool stood_still() const { return stood_still_; }

 private:
  enum class Step : std::uint8_t { Loaded, Allocates, Trained };
  struct Happening {
    Instant at;
    std::uint64_t number = 0;
    Step step = Step::Loaded;
    TaskIndex task;
    std::uint32_t attempt = 0;
    friend auto operator<=>(const Happening&, const Happening&) = default;
  };
  struct Process {
    AttemptKey key;
    std::vector<GpuIndex> gpus;
    Bytes on_gpus;  ///< That it has on each.
  };

  const Course& course_of(TaskIndex task) const { return courses_[task.value]; }
  const Shape& shape_of(TaskIndex task) const { return plan_.shape_of(task); }
  void tell(What what) {
    last_news_ = now_;
    inbox_.push_back({.at = now_, .what = std::move(what)});
  }
  void plan(Duration after, Step step, const Process& process) {
    agenda_.push({.at = now_ + after,
                  .number = next_number_++,
                  .step = step,
                  .task = process.key.task,
                  .attempt = process.key.attempt});
  }

  void start(const StartAttempt& command) {
    const TaskIndex task = command.key.task;
    Process& process = processes_[task] = {.key = command.key, .gpus = {}, .on_gpus = {}};
    memory_free_ -= course_of(task).memory;
    PlayedTask& played = run_.tasks[task.value];
    played.started = now_;
    ++played.attempts;
    tell(AttemptStarted{.key = command.key, .pid = static_cast<std::int64_t>(next_number_)});
    if (shape_of(task).two_phase) {
      tell(StageReported{.key = command.key, .said = Said::Loading});
      plan(course_of(task).load, Step::Loaded, process);
    } else {
      train(task, command.gpus);
    }
  }

  void train(TaskIndex task, const std::vector<GpuIndex>& gpus) {
    Process& process = processes_.at(task);
    const Course& course = course_of(task);
    process.gpus = gpus;
    run_.tasks[task.value].trains = now_;
    run_.tasks[task.value].gpus = gpus;
    if (!gpus.empty() && course.gpu_memory > Bytes{}) {
      plan(course.gpu_after, Step::Allocates, process);
    }
    const Duration load = shape_of(task).two_phase ? Duration{0} : course.load;
    plan(load + course.train, Step::Trained, process);
  }

  void do_next() {
    const Happening next = agenda_.top();
    agenda_.pop();
    const auto found = processes_.find(next.task);
    if (found == processes_.end() || found->second.key.attempt != next.attempt) return;
    switch (next.step) {
      case Step::Loaded:
        return tell(StageReported{.key = found->second.key, .said = Said::Loaded});
      case Step::Allocates:
        return allocate(found->second);
      case Step::Trained:
        if (shape_of(next.task).two_phase) {
          tell(StageReported{.key = found->second.key, .said = Said::Trained});
        }
        return end(next.task, ExitedWith{0}, false);
    }
  }

  void allocate(Process& process) {
    const Bytes wanted = course_of(process.key.task).gpu_memory;
    const bool fits = std::ranges::all_of(process.gpus, [&](GpuIndex gpu) {
      return used_[gpu.value] + wanted <= capacity_.gpus[gpu.value].memory;
    });
    if (!fits) {
      ++run_.out_of_memory;
      return end(process.key.task, ExitedWith{1}, true);
    }
    for (const GpuIndex gpu : process.gpus) used_[gpu.value] += wanted;
    process.on_gpus = wanted;
  }

  void end(TaskIndex task, End how, bool out_of_gpu) {
    auto node = processes_.extract(task);
    if (node.empty()) return;
    const Process& process = node.mapped();
    memory_free_ += course_of(task).memory;
    for (const GpuIndex gpu : process.gpus) used_[gpu.value] -= process.on_gpus;
    PlayedTask& played = run_.tasks[task.value];
    played.ended = now_;
    played.finished = how == End(ExitedWith{0});
    tell(AttemptEnded{.key = process.key,
                      .end = std::move(how),
                      .usage = {.memory_peak = course_of(task).memory,
                                .gpu_memory_peak = process.on_gpus,
                                .cpu_time = Duration{0}},
                      .out_of_memory = out_of_gpu ? "CUDA out of memory" : "",
                      .of_gpu = out_of_gpu});
    // The driver is quick here.
    if (!process.gpus.empty()) tell(read_gpus());
  }

  void look_again() {
    const Instant news = last_news_;
    next_sample_ = now_ + sample_every_;
    tell(read());
    if (!used_.empty()) tell(read_gpus());
    last_news_ = news;
    // Nothing runs, and nothing is going to: whoever waits waits in vain.
    if (agenda_.empty() && now_ - last_news_ > kStill) {
      stood_still_ = true;
      tell(InterruptAsked{});
    }
  }

  [[nodiscard]] Sampled read() const {
    Sampled reading{.memory_available = memory_free_, .cpu_used_by_others = 0, .tasks = {}};
    for (const auto& [task, process] : processes_) {
      reading.tasks.push_back({.key = process.key, .memory = course_of(task).memory});
    }
    return reading;
  }

  [[nodiscard]] GpusSampled read_gpus() const {
    GpusSampled reading;
    for (const Bytes used : used_) reading.gpus.push_back({.used = used});
    for (const auto& [task, process] : processes_) {
      if (process.on_gpus == Bytes{}) continue;
      for (const GpuIndex gpu : process.gpus) {
        reading.uses.push_back({.key = process.key, .gpu = gpu, .memory = process.on_gpus});
      }
    }
    return reading;
  }

  const Plan& plan_;
  const Capacity& capacity_;
  const std::vector<Course>& courses_;
  Duration sample_every_;
  PlayedRun& run_;
  Instant now_;
  Instant last_news_;
  Instant next_sample_;
  std::uint64_t next_number_ = 1;
  std::vector<Bytes> used_;  ///< Of each GPU.
  Bytes memory_free_;
  std::map<TaskIndex, Process> processes_;
  std::priority_queue<Happening, std::vector<Happening>, std::greater<>> agenda_;
  std::vector<Event> inbox_;
  bool stood_still_ = false;
};

/// Keeps why tasks waited, and nothing else.
class WaitsKeeper final : public Recorder {
 public:
  explicit WaitsKeeper(PlayedRun& run) : run_(run) {}

  Result<void> commit(const Turn& turn) override {
    for (std::size_t i = 0; i < turn.events.size(); ++i) {
      // Their numbers come behind them.
      for (const Change& change : turn.decisions[i].changes) {
        if (const auto* const seen = std::get_if<HeadroomSeen>(&change)) room_ = seen->headroom;
      }
      for (const Change& change : turn.decisions[i].changes) {
        const auto* const told = std::get_if<ReasonChanged>(&change);
        if (told == nullptr) continue;
        run_.waits.push_back({.at = turn.events[i].at,
                              .shape = told->shape,
                              .reason = reason_text(told->reason, room_)});
      }
    }
    return {};
  }

 private:
  PlayedRun& run_;
  Headroom room_;
};

}  // namespace

Result<PlayedRun> play_run(const Plan& plan, const Limits& limits, const Capacity& capacity,
                           const std::vector<Course>& courses, const PlayOptions& options) {
  PlayedRun run;
  PlayedMachine machine(plan, capacity, courses, options, run);
  WaitsKeeper keeper(run);
  Scheduler scheduler(plan, limits, capacity);
  std::vector<Observer> observers;
  const Result<void> driven = drive(scheduler, machine, keeper, observers);
  if (!driven) return std::unexpected(driven.error());
  if (machine.stood_still()) {
    return std::unexpected(Error{"the run would never end: tasks wait for what they never get"});
  }
  for (const PlayedTask& task : run.tasks) run.ended = std::max(run.ended, task.ended);
  return run;
}

}  // namespace trainyard::sim
