#include "plan/play_run.h"

#include <algorithm>
#include <expected>
#include <map>
#include <memory>
#include <optional>
#include <queue>
#include <utility>
#include <variant>

#include "base/match.h"
#include "journal/recorder.h"
#include "model/command.h"
#include "model/gpu_obstacle.h"
#include "model/machine_rooms.h"
#include "model/turn.h"
#include "run/drive.h"
#include "run/machine.h"
#include "schedule/card_shares.h"
#include "schedule/scheduler.h"

namespace trainyard::plan {
namespace {

/// Nothing has happened for so long: nothing will.
constexpr Duration kStill{30LL * 86'400'000};

class PlayedMachines final : public run::Machine {
 public:
  PlayedMachines(const model::Plan& plan, const std::vector<model::NamedMachine>& machines,
                 const std::vector<Course>& courses, const PlayOptions& options, PlayedRun& run)
      : plan_(plan),
        courses_(courses),
        sample_every_(options.sample_every),
        on_finished_(options.on_finished),
        run_(run),
        shares_(count_gpus(machines), options.crowding) {
    run_.tasks.resize(plan.tasks.size());
    next_sample_ = Instant{sample_every_};
    std::uint32_t first_card = 0;
    for (const model::NamedMachine& machine : machines) {
      const model::MachineIndex index{static_cast<std::uint32_t>(machines_.size())};
      const std::size_t gpus = machine.capacity.gpus.size();
      Host host{.capacity = machine.capacity,
                .used = std::vector<Bytes>(gpus),
                .memory_free = machine.capacity.memory,
                .first_card = first_card};
      if (machines_.empty()) host.others = options.others;
      host.others.resize(gpus);
      first_card += static_cast<std::uint32_t>(gpus);
      machines_.push_back(std::move(host));
      tell(model::MachineJoined{
          .machine = index, .name = machine.name, .capacity = machine.capacity});
      look_at(index);
    }
    tell(model::BatchAdded{.plan = std::make_shared<model::Plan>(plan)});
  }

  void carry_out(const model::Command& command) override {
    match(
        command, [this](const model::StartAttempt& it) { start(it); },
        [this](const model::GrantDevice& it) { train(it.key.task, it.site); },
        [](const model::SignalAttempt&) {},
        [this](const model::StopAttempt& it) {
          end(it.key.task, model::KilledBy{.signal = 15}, false);
        },
        [](const model::Answer&) {});
  }

  std::vector<model::Event> wait(std::optional<Instant> until) override {
    while (inbox_.empty()) {
      Instant next = next_sample_;
      if (!agenda_.empty()) next = std::min(next, agenda_.top().at);
      if (until) next = std::min(next, *until);
      now_ = std::max(now_, next);
      while (!agenda_.empty() && agenda_.top().at <= now_) do_next();
      if (now_ >= next_sample_) look_again();
      if (inbox_.empty() && until && *until <= now_) tell(model::TimePassed{});
    }
    // One thing at a time: what it leads to may change what comes next.
    model::Event first = std::move(inbox_.front());
    inbox_.erase(inbox_.begin());
    std::vector<model::Event> events;
    events.push_back(std::move(first));
    return events;
  }

  [[nodiscard]] bool more_to_come() const override { return !inbox_.empty(); }

  /// Somebody waited for what never came.
  [[nodiscard]] bool stood_still() const { return stood_still_; }

 private:
  enum class Step : std::uint8_t { Loaded, Allocates, Trained };
  struct Happening {
    Instant at;
    std::uint64_t number = 0;
    Step step = Step::Loaded;
    model::TaskIndex task;
    std::uint32_t attempt = 0;
    friend auto operator<=>(const Happening&, const Happening&) = default;
  };
  struct Host {
    model::Capacity capacity;
    std::vector<Bytes> used;                ///< Of each GPU.
    std::vector<model::GpuReading> others;  ///< By GPU.
    Bytes memory_free;
    std::uint32_t first_card = 0;  ///< The number of its first GPU among those of all machines.
  };
  struct Process {
    model::AttemptKey key;
    model::Site site;
    Bytes on_gpus;                   ///< That it has on each.
    std::optional<Instant> trained;  ///< When it will have trained, as things are now.
  };

  static std::size_t count_gpus(const std::vector<model::NamedMachine>& machines) {
    std::size_t count = 0;
    for (const model::NamedMachine& machine : machines) count += machine.capacity.gpus.size();
    return count;
  }
  Host& host_of(const Process& process) { return machines_[process.site.machine.value]; }
  const Course& course_of(model::TaskIndex task) const { return courses_[task.value]; }
  const model::Shape& shape_of(model::TaskIndex task) const { return plan_.shape_of(task); }
  void tell(model::What what) {
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

  void start(const model::StartAttempt& command) {
    const model::TaskIndex task = command.key.task;
    Process& process = processes_[task] = {.key = command.key, .site = command.site};
    host_of(process).memory_free -= course_of(task).memory;
    PlayedTask& played = run_.tasks[task.value];
    played.started = now_;
    played.machine = command.site.machine;
    ++played.attempts;
    tell(model::AttemptStarted{.key = command.key, .pid = static_cast<std::int64_t>(next_number_)});
    if (shape_of(task).terms.two_phase) {
      tell(model::StageReported{.key = command.key, .said = model::Said::Loading});
      plan(course_of(task).load, Step::Loaded, process);
    } else {
      train(task, command.site);
    }
  }

  void train(model::TaskIndex task, const model::Site& site) {
    Process& process = processes_.at(task);
    const Course& course = course_of(task);
    process.site = site;
    run_.tasks[task.value].trains = now_;
    run_.tasks[task.value].gpus = site.gpus;
    if (!site.gpus.empty() && course.gpu_memory > Bytes{}) {
      plan(course.gpu_after, Step::Allocates, process);
    }
    const Duration load = shape_of(task).terms.two_phase ? Duration{0} : course.load;
    std::vector<std::uint32_t> cards;
    cards.reserve(site.gpus.size());
    const std::uint32_t first_card = host_of(process).first_card;
    for (const model::GpuIndex gpu : site.gpus) cards.push_back(first_card + gpu.value);
    time_anew(
        shares_.begin(task.value, cards, course.gpu_share, load + course.train, now_.since_start));
  }

  /// Replaces the planned ends of these tasks: do_next() skips the earlier ones.
  void time_anew(const std::vector<schedule::CardShares::Timed>& timed) {
    for (const schedule::CardShares::Timed& it : timed) {
      Process& process = processes_.at(model::TaskIndex{it.task});
      process.trained = Instant{it.ends};
      plan(it.ends - now_.since_start, Step::Trained, process);
    }
  }

  void do_next() {
    const Happening next = agenda_.top();
    agenda_.pop();
    const auto found = processes_.find(next.task);
    if (found == processes_.end() || found->second.key.attempt != next.attempt) return;
    switch (next.step) {
      case Step::Loaded:
        return tell(model::StageReported{.key = found->second.key, .said = model::Said::Loaded});
      case Step::Allocates:
        return allocate(found->second);
      case Step::Trained:
        if (found->second.trained != next.at) return;
        if (shape_of(next.task).terms.two_phase) {
          tell(model::StageReported{.key = found->second.key, .said = model::Said::Trained});
        }
        return end(next.task, model::ExitedWith{0}, false);
    }
  }

  void allocate(Process& process) {
    const Bytes wanted = course_of(process.key.task).gpu_memory;
    Host& host = host_of(process);
    const bool fits = std::ranges::all_of(process.site.gpus, [&](model::GpuIndex gpu) {
      return host.others[gpu.value].used + host.used[gpu.value] + wanted <=
             host.capacity.gpus[gpu.value].memory;
    });
    if (!fits) {
      ++run_.out_of_memory;
      return end(process.key.task, model::ExitedWith{1}, true);
    }
    for (const model::GpuIndex gpu : process.site.gpus) host.used[gpu.value] += wanted;
    process.on_gpus = wanted;
  }

  void end(model::TaskIndex task, model::End how, bool out_of_gpu) {
    auto node = processes_.extract(task);
    if (node.empty()) return;
    Process& process = node.mapped();
    time_anew(shares_.leave(task.value, now_.since_start));
    Host& host = host_of(process);
    host.memory_free += course_of(task).memory;
    for (const model::GpuIndex gpu : process.site.gpus) host.used[gpu.value] -= process.on_gpus;
    PlayedTask& played = run_.tasks[task.value];
    played.ended = now_;
    played.finished = how == model::End(model::ExitedWith{0});
    if (played.finished && on_finished_) on_finished_(++finished_);
    tell(model::AttemptEnded{.key = process.key,
                             .end = std::move(how),
                             .usage = {.memory_peak = course_of(task).memory,
                                       .gpu_memory_peak = process.on_gpus,
                                       .cpu_time = Duration{0}},
                             .out_of_memory = out_of_gpu ? "CUDA out of memory" : "",
                             .of_gpu = out_of_gpu});
    // The driver is quick here.
    if (!process.site.gpus.empty()) tell(read_gpus(process.site.machine));
  }

  void look_again() {
    const Instant news = last_news_;
    next_sample_ = now_ + sample_every_;
    for (std::uint32_t machine = 0; machine < machines_.size(); ++machine) look_at({machine});
    last_news_ = news;
    // Nothing runs, and nothing is going to: whoever waits waits in vain.
    if (agenda_.empty() && now_ - last_news_ > kStill) {
      stood_still_ = true;
      tell(model::InterruptAsked{});
    }
  }

  /// At the GPUs first, without which nothing starts on a machine that has some.
  void look_at(model::MachineIndex machine) {
    if (!machines_[machine.value].used.empty()) tell(read_gpus(machine));
    tell(read(machine));
  }

  [[nodiscard]] model::Sampled read(model::MachineIndex machine) const {
    model::Sampled reading{.memory_available = machines_[machine.value].memory_free,
                           .cpu_used_by_others = 0,
                           .machine = machine};
    for (const auto& [task, process] : processes_) {
      if (process.site.machine != machine) continue;
      reading.tasks.push_back({.key = process.key, .memory = course_of(task).memory});
    }
    return reading;
  }

  [[nodiscard]] model::GpusSampled read_gpus(model::MachineIndex machine) const {
    const Host& host = machines_[machine.value];
    model::GpusSampled reading{.gpus = host.others, .machine = machine};
    for (std::size_t i = 0; i < host.used.size(); ++i) reading.gpus[i].used += host.used[i];
    for (const auto& [task, process] : processes_) {
      if (process.on_gpus == Bytes{} || process.site.machine != machine) continue;
      for (const model::GpuIndex gpu : process.site.gpus) {
        reading.uses.push_back({.key = process.key, .gpu = gpu, .memory = process.on_gpus});
      }
    }
    return reading;
  }

  const model::Plan& plan_;
  const std::vector<Course>& courses_;
  Duration sample_every_;
  std::vector<Host> machines_;  ///< By MachineIndex.
  const std::function<void(std::size_t)>& on_finished_;
  std::size_t finished_ = 0;
  PlayedRun& run_;
  Instant now_;
  Instant last_news_;
  Instant next_sample_;
  std::uint64_t next_number_ = 1;
  schedule::CardShares shares_;
  std::map<model::TaskIndex, Process> processes_;
  std::priority_queue<Happening, std::vector<Happening>, std::greater<>> agenda_;
  std::vector<model::Event> inbox_;
  bool stood_still_ = false;
};

/// A task on GPUs has its share of the CPUs by default, and all of them are reserved once all GPUs
/// are full: the task waits for a GPU then, though the CPUs are checked first.
model::Reason bottleneck_of(const model::Reason& reason, const model::Request& request,
                            const model::Headroom& room) {
  if (reason.cause != model::Cause::Cpus || request.gpus == 0) return reason;
  model::Reason of_gpus = reason;
  of_gpus.cause = model::Cause::Gpus;
  of_gpus.needs = request;
  const auto nearest = model::nearest_obstacle(of_gpus, room);
  const bool is_full = nearest && nearest->kind != model::GpuObstacle::Kind::None;
  return is_full ? of_gpus : reason;
}

/// Keeps why tasks waited, and nothing else.
class WaitsKeeper final : public journal::Recorder {
 public:
  WaitsKeeper(const model::Plan& plan, PlayedRun& run) : plan_(plan), run_(run) {}

  Result<void> commit(const model::Turn& turn) override {
    for (std::size_t i = 0; i < turn.events.size(); ++i) {
      rooms_.hear(turn.events[i].what);
      // Their numbers come behind them.
      for (const model::Change& change : turn.decisions[i].changes) {
        if (const auto* const seen = std::get_if<model::HeadroomSeen>(&change))
          rooms_.see(seen->machine, seen->headroom);
      }
      for (const model::Change& change : turn.decisions[i].changes) {
        const auto* const changed = std::get_if<model::ReasonChanged>(&change);
        if (changed == nullptr) continue;
        const model::Headroom& room = rooms_.room_of(changed->reason);
        const model::Request& request = plan_.shapes[changed->shape.value].terms.request;
        const model::Reason reason = bottleneck_of(changed->reason, request, room);
        run_.waits.push_back({.at = turn.events[i].at,
                              .shape = changed->shape,
                              .reason = rooms_.reason_text(reason),
                              .brief = model::brief_reason_text(reason, room),
                              .cause = reason.cause});
      }
    }
    return {};
  }

 private:
  const model::Plan& plan_;
  PlayedRun& run_;
  model::MachineRooms rooms_;
};

}  // namespace

Result<PlayedRun> play_run(const model::Plan& plan, const model::Policy& policy,
                           const std::vector<model::NamedMachine>& machines,
                           const std::vector<Course>& courses, const PlayOptions& options) {
  PlayedRun run;
  PlayedMachines machine(plan, machines, courses, options, run);
  WaitsKeeper keeper(plan, run);
  schedule::Scheduler scheduler(policy);
  std::vector<run::Observer> observers;
  const Result<void> driven = run::drive(scheduler, machine, keeper, observers);
  if (!driven) return std::unexpected(driven.error());
  if (machine.stood_still()) {
    // Why the last of them waits comes before the interrupt that ends its waiting.
    const auto why = std::ranges::find_if(run.waits.rbegin(), run.waits.rend(),
                                          [](const PlayedWait& it) { return !it.reason.empty(); });
    return std::unexpected(Error{"the run would never end: tasks wait for what they never get" +
                                 (why == run.waits.rend() ? "" : ": " + why->reason)});
  }
  for (const PlayedTask& task : run.tasks) run.ended = std::max(run.ended, task.ended);
  return run;
}

}  // namespace trainyard::plan
