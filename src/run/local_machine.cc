#include "run/local_machine.h"

#include <algorithm>
#include <array>
#include <csignal>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/check.h"
#include "base/duration_text.h"
#include "base/match.h"
#include "hardware/process_owner.h"
#include "model/gpu_stranger.h"
#include "model/promises.h"
#include "model/rank_environment.h"
#include "process/memory_group.h"
#include "run/attempt_limits.h"
#include "sys/environment.h"
#include "wire/memory_text.h"
#include "wire/metric_line.h"

namespace trainyard::run {
namespace {

/// The service through which what is started so shares its GPUs; nothing where none runs.
std::optional<hardware::MpsService> mps_for(const model::Launch& launch) {
  const std::string begins = fmt::format("{}=", hardware::kMpsPipes);
  for (const std::vector<std::string>* const variables : {&launch.environment, &launch.inherited}) {
    for (const std::string& variable : *variables) {
      if (variable.starts_with(begins)) return hardware::find_mps(variable.substr(begins.size()));
    }
  }
  std::optional<std::string> ours;
  if (launch.inherited.empty()) ours = sys::variable(hardware::kMpsPipes);
  return hardware::find_mps(ours.value_or(hardware::kMpsDirectory));
}

/// The message of one of several ranks begins with which it is.
bool says_not_which(std::string_view message) {
  return message.empty() || message.ends_with(wire::kOfSomeMemory);
}

}  // namespace

LocalMachine::LocalMachine(sys::EventLoop& loop, process::Keeper& keeper, Options options)
    : loop_(loop),
      keeper_(keeper),
      options_(std::move(options)),
      clock_offset_(options_.begins.since_start - sys::EventLoop::now()),
      looks_at_disk_(options_.looks_at_disk),
      log_bounds_(options_.log_max) {
  keeper_.listen(loop_, [this](std::span<const process::KeeperNews> news) { hear(news); });
  options_.notes.clock_offset = clock_offset_;
  if (!options_.notes.path.empty()) keeper_.note_ends(options_.notes);
  if (options_.gpus != nullptr) {
    gpus_ = options_.gpus->list().gpus;
    silences_.resize(gpus_.size());
    options_.gpus->listen(
        loop_, [this](const std::vector<hardware::GpuState>& states) { hear_gpus(states); });
  }
  if (options_.codes != nullptr) {
    options_.codes->listen([this](model::CodeFound found) { hear_code(std::move(found)); });
  }
  if (options_.frames == nullptr) return;
  tasks_.emplace(*options_.frames, [this](model::AttemptKey key, wire::TaskReport report) {
    hear_task(key, std::move(report));
  });
}

void LocalMachine::hear_code(model::CodeFound found) {
  // Git may have answered before the start of the process is known: that is reported with its code.
  for (const model::AttemptKey key : found.attempts) {
    const auto attempt = running_.find(key.task);
    if (attempt == running_.end() || attempt->second.key != key) continue;
    attempt->second.code = found.code;
  }
  inbox_.push_back({.at = now(), .what = std::move(found)});
}

Instant LocalMachine::now() const { return {clock_offset_ + sys::EventLoop::now()}; }

/// Comes before all other events, so that nothing is decided without it.
void LocalMachine::look_first() {
  if (std::exchange(looked_, true)) return;
  next_sample_ = now() + options_.sample_every;
  if (!options_.joins) return;
  inbox_.push_back({.at = now(), .what = *options_.joins});
  look_at_neighbours({.thorough = true});
  if (options_.gpus != nullptr) {
    model::GpusSampled gpus = gpus_from(options_.gpus->look_now());
    inbox_.push_back({.at = now(), .what = std::move(gpus)});
  }
  inbox_.push_back({.at = now(), .what = sample()});
}

/// Before the machine itself is read: the memory that neighbours report as taken is in that
/// reading.
void LocalMachine::look_at_neighbours(SharedLedger::Look look) {
  if (options_.limits != nullptr && look.thorough) {
    if (auto limits = options_.limits->look(gpus_)) {
      inbox_.push_back({.at = now(), .what = *std::move(limits)});
    }
  }
  if (options_.ledger == nullptr) return;
  constexpr Duration kBetween{100};
  next_look_ = now() + kBetween;
  if (auto seen = options_.ledger->look(look)) {
    inbox_.push_back({.at = now(), .what = *std::move(seen)});
  }
}

std::optional<model::ClaimRefused> LocalMachine::claim(const Claim& claim) {
  return options_.ledger == nullptr ? std::nullopt : options_.ledger->claim(claim);
}

void LocalMachine::add(model::BatchAdded batch) {
  const auto asks = [](const model::Shape& shape) { return shape.terms.request.disk > Bytes{}; };
  if (!looks_at_disk_ && std::ranges::any_of(batch.plan->shapes, asks)) {
    looks_at_disk_ = true;
    // None of them is to start before it is known how much there is.
    if (looked_ && options_.joins) inbox_.push_back({.at = now(), .what = sample()});
  }
  look_first();
  inbox_.push_back({.at = now(), .what = std::move(batch)});
}

void LocalMachine::carry_out(const model::Command& command) {
  match(
      command, [this](const model::StartAttempt& it) { start(it); },
      [this](const model::GrantDevice& it) { grant(it); },
      [this](const model::SignalAttempt& it) {
        if (!keeper_gone_) keeper_.signal(it.key, it.signal);
      },
      [this](const model::StopAttempt& it) {
        if (keeper_gone_) return;
        // No other process could carry that out. When the keeper dies, its guard ends everything.
        if (it.kill && keeper_silent_ && interrupted_) {
          keeper_killed_ = true;
          return keeper_.kill();
        }
        if (const auto stopped = running_.find(it.key.task); stopped != running_.end()) {
          stopped->second.mps.reset();
        }
        keeper_.signal(it.key, it.kill ? SIGKILL : SIGTERM, options_.stop_grace);
      },
      [this](const model::Answer& it) {
        auto reply = asked_.extract(it.request);
        if (!reply.empty()) reply.mapped()(it.done);
      });
}

void LocalMachine::start(const model::StartAttempt& command) {
  if (keeper_gone_) {
    inbox_.push_back(
        {.at = now(),
         .what = model::AttemptEnded{
             .key = command.key, .end = model::Vanished{"the keeper of the processes is gone"}}});
    return;
  }
  model::Grant given{.gpus = {}, .memory_max = command.gpu_memory_max, .of_machine = gpus_};
  given.gpus_answer = gpus_answer_;
  given.gpus.reserve(command.site.gpus.size());
  for (const model::GpuIndex gpu : command.site.gpus) given.gpus.push_back(gpus_.at(gpu.value));
  model::Launch launch = options_.launch(command.key, given);
  if (!launch.cannot_start.empty()) {
    inbox_.push_back(
        {.at = now(),
         .what = model::AttemptEnded{
             .key = command.key, .end = model::NotStarted{.why = std::move(launch.cannot_start)}}});
    return;
  }
  introduce(command.key, launch);
  add_limits(command, given.gpus,
             {.group = fmt::format("{}/trainyard-{}-{}.{}", options_.delegated_group, keeper_.pid(),
                                   command.key.task.value, command.key.attempt),
              .regions = options_.regions},
             launch);
  running_[command.key.task] = {
      .key = command.key,
      .journal_number = launch.journal_number,
      .memory_group = launch.memory_group,
      .logs = logs_of(launch),
      .files = process::EndReader::Question::of(launch),
      .ranks = launch.ranks,
      .forked = launch.forked || !launch.preload.modules.empty(),
      .on_gpus = !command.site.gpus.empty(),
      .code = options_.codes == nullptr
                  ? std::nullopt
                  : options_.codes->started(command.key, launch.working_directory),
      .gpu_memory_max = command.gpu_memory_max,
      .capped_by = launch.capped_by,
      .mps = options_.gpus != nullptr ? mps_for(launch) : std::nullopt,
      .printed = printed_by(command.key.task, launch)};
  keeper_.start(command.key, launch);
}

/// A loaded task sees all GPUs that tasks may have, and gets the places of its own among them.
void LocalMachine::grant(const model::GrantDevice& command) {
  const auto running = running_.find(command.key.task);
  if (running == running_.end() || running->second.key != command.key) return;
  Attempt& attempt = running->second;
  attempt.on_gpus = !command.site.gpus.empty();
  attempt.gpu_memory_max = command.gpu_memory_max;
  if (command.memory_max > Bytes{}) {
    process::change_memory_limit(attempt.memory_group, command.memory_max);
  }
  if (!tasks_) return;
  const int processes = std::max(attempt.ranks, 1);
  // If it has more processes than GPUs, each GPU has this number of them.
  const int gpus_given = std::max(static_cast<int>(command.site.gpus.size()), 1);
  const Bytes memory_max{command.gpu_memory_max.count /
                         std::max(1, (processes + gpus_given - 1) / gpus_given)};
  std::vector<wire::TaskOrder> orders;
  for (int rank = 0; rank < processes; ++rank) {
    const std::string gpus =
        model::device_names(model::share_of_rank(rank, processes, command.site.gpus));
    orders.emplace_back(
        wire::TrainOrder{.device = gpus.empty() ? "cpu" : gpus, .gpu_memory_max = memory_max});
  }
  tasks_->order(command.key, orders);
}

/// Takes a reading of the GPUs. While ends of attempts are held back, earlier readings than the
/// last one that they wait for are dropped: they may still show the memory of tasks that have
/// ended.
void LocalMachine::hear_gpus(const std::vector<hardware::GpuState>& states) {
  if (!held_.empty() && --looks_to_come_ > 0) {
    options_.gpus->ask();
    return;
  }
  model::GpusSampled seen = gpus_from(states);
  seen.ends_follow = std::ranges::any_of(held_, [](const model::What& what) {
    return std::holds_alternative<model::AttemptEnded>(what);
  });
  inbox_.push_back({.at = now(), .what = std::move(seen)});
  release_held();
}

/// A failure on GPUs is reported after the next sample of them: the process that crowded the task
/// out of their memory still runs, and a GPU that stopped answering may have answered at the sample
/// before. GpuWatch bounds each look: it reports a driver that does not answer within
/// GpuPatience::look. A failure that comes meanwhile makes the wait longer by two looks at most;
/// there are no more of these than attempts that run, as none starts before the ends are told.
void LocalMachine::hold(model::What what) {
  held_.push_back(std::move(what));
  looks_to_come_ = 1;
  if (!options_.gpus->ask()) looks_to_come_ = 2;
}

/// Adds an event behind the held ones, so that all are reported in order.
void LocalMachine::tell(model::What what) {
  if (!held_.empty()) return held_.push_back(std::move(what));
  inbox_.push_back({.at = now(), .what = std::move(what)});
}

void LocalMachine::release_held() {
  for (model::What& what : std::exchange(held_, {})) {
    inbox_.push_back({.at = now(), .what = std::move(what)});
  }
}

std::optional<std::uint32_t> LocalMachine::other_user_on(const hardware::GpuState& state,
                                                         const std::string& uuid) {
  std::vector<model::GpuStranger> strangers;
  for (const hardware::GpuProcess& process : state.processes) {
    if (owners_.task_of(process.pid)) continue;
    strangers.push_back(hardware::stranger_of(process));
  }
  std::span<const model::Neighbour> neighbours;
  if (options_.ledger != nullptr) neighbours = options_.ledger->neighbours();
  return model::who_computes(strangers, uuid, neighbours);
}

Bytes LocalMachine::memory_of_strangers(const hardware::GpuState& state) {
  Bytes sum;
  for (const hardware::GpuProcess& process : state.processes) {
    if (process.memory_known && owners_.is_stranger(process.pid)) sum += process.memory;
  }
  return sum;
}

/// Once in a while of each: one that blinks all night does not fill the log.
void LocalMachine::tell_of_silence(std::size_t index, bool present) {
  constexpr Duration kBetween{600'000};
  const bool answered = std::exchange(silences_[index].answers, present);
  std::optional<Instant>& noted = silences_[index].noted;
  if (present || !answered || !options_.on_note || (noted && now() - *noted < kBetween)) return;
  noted = now();
  options_.on_note(
      fmt::format("GPU {} ({}) does not answer: no tasks start on it until it has answered for {} "
                  "(longer after earlier drop-outs)",
                  gpus_[index].label(), gpus_[index].uuid, to_text(options_.gpu_steady_after)));
}

model::GpusSampled LocalMachine::gpus_from(const std::vector<hardware::GpuState>& states) {
  model::GpusSampled seen;
  std::map<std::pair<model::TaskIndex, model::GpuIndex>, Bytes> uses;
  gpus_answer_ = std::ranges::all_of(states, &hardware::GpuState::present);
  for (std::uint32_t index = 0; index < states.size(); ++index) {
    const hardware::GpuState& state = states[index];
    tell_of_silence(index, state.present);
    seen.gpus.push_back({.present = state.present,
                         .used = state.used,
                         .of_strangers = memory_of_strangers(state),
                         .processes_known = state.processes_known,
                         .utilization = state.utilization,
                         .other_user = other_user_on(state, gpus_[index].uuid)});
    if (state.found && gpus_.at(index) != *state.found) {
      gpus_[index] = *state.found;
      seen.found.push_back({.gpu = {index}, .what = *state.found});
      if (options_.on_note) {
        options_.on_note(fmt::format(
            "GPU {} ({}) answers now: tasks start on it once it has answered for {}",
            state.found->label(), state.found->uuid, to_text(options_.gpu_steady_after)));
      }
    }
    for (const hardware::GpuProcess& process : state.processes) {
      const std::optional<model::TaskIndex> owner = owners_.task_of(process.pid);
      if (owner && process.memory_known) uses[{*owner, model::GpuIndex{index}}] += process.memory;
    }
  }
  owners_.keep_only(states);
  for (const auto& [place, memory] : uses) {
    const auto running = running_.find(place.first);
    if (running == running_.end()) continue;
    Attempt& attempt = running->second;
    attempt.gpu_memory_peak = std::max(attempt.gpu_memory_peak, memory);
    seen.uses.push_back({.key = attempt.key, .gpu = place.second, .memory = memory});
  }
  return seen;
}

/// A task that had a GPU has ended: the next one waits for its memory.
void LocalMachine::look_at_gpus_soon() {
  constexpr std::array<Duration, 4> kLooks{Duration{0}, Duration{30}, Duration{120}, Duration{400}};
  for (const Duration after : kLooks) {
    loop_.after(after, [gpus = options_.gpus] { gpus->ask(); });
  }
}

void LocalMachine::hear_task(model::AttemptKey key, wire::TaskReport report) {
  match(
      std::move(report),
      [&](wire::StageWord word) {
        const auto running = running_.find(key.task);
        const bool on_gpus = running != running_.end() && running->second.on_gpus;
        // If it does not say whether host or GPU memory ran out, it was that of its GPU if it has
        // one.
        const bool of_gpu =
            word.said == model::Said::OutOfMemory &&
            (wire::is_of_gpu(word.message) || (on_gpus && says_not_which(word.message)));
        if (running != running_.end() && word.said == model::Said::Loaded) {
          running->second.capped_by = word.capped_by;
        }
        model::StageReported stage{.key = key,
                                   .said = word.said,
                                   .message = std::move(word.message),
                                   .of_gpu = of_gpu,
                                   .traceback = std::move(word.traceback),
                                   .capped_by = std::move(word.capped_by)};
        if (of_gpu && on_gpus && options_.gpus != nullptr) return hold(std::move(stage));
        tell(std::move(stage));
      },
      [&](wire::Progress progress) { hear_progress(key, std::move(progress)); },
      [&](const wire::Message& message) {
        if (options_.on_message) options_.on_message(key, message);
      });
}

void LocalMachine::look_at_all(Instant at) {
  look_at_neighbours({.thorough = true});
  inbox_.push_back({.at = at, .what = sample()});
  // The GPUs are sampled concurrently, and reported when they have answered.
  if (options_.gpus != nullptr) options_.gpus->ask();
  read_what_they_print();
  for (auto& [task, attempt] : running_) {
    tell_progress(attempt);
    log_bounds_.look(attempt.logs, options_.on_note);
  }
}

std::vector<model::Event> LocalMachine::wait(std::optional<Instant> until) {
  look_first();
  while (inbox_.empty()) {
    const Instant at = now();
    if (const auto fresh = fresh_.next(); fresh && at >= *fresh) look_at_fresh(at);
    if (at >= next_sample_) {
      keeper_.look();
      if (options_.joins) look_at_all(at);
      next_sample_ = next_sample_ + options_.sample_every;
      // After a long pause (a laptop that slept) one look is enough: a second one at once would see
      // nothing of what others use meanwhile.
      if (next_sample_ <= at) next_sample_ = at + options_.sample_every;
    } else if (until && at >= *until) {
      inbox_.push_back({.at = at, .what = model::TimePassed{}});
    } else if (looks_at_neighbours() && at >= next_look_) {
      look_at_neighbours({.thorough = false});
    }
    Instant wake = until ? std::min(*until, next_sample_) : next_sample_;
    if (looks_at_neighbours()) wake = std::min(wake, next_look_);
    if (const auto fresh = fresh_.next()) wake = std::min(wake, *fresh);
    // The loop runs in each turn, so that ends and signals are handled even if reading the machine
    // takes so long that the next reading is always due.
    loop_.run_once(inbox_.empty() ? wake - at : Duration{0});
  }
  return std::exchange(inbox_, {});
}

void LocalMachine::ask_to_interrupt() {
  interrupted_ = true;
  inbox_.push_back({.at = now(), .what = model::InterruptAsked{}});
}

void LocalMachine::look_again() { inbox_.push_back({.at = now(), .what = model::TimePassed{}}); }

void LocalMachine::hear_of(model::What what) {
  inbox_.push_back({.at = now(), .what = std::move(what)});
}

void LocalMachine::ask(Asked asked, Answered reply) {
  const std::uint64_t request = next_request_++;
  asked_.emplace(request, std::move(reply));
  std::visit(
      [&](auto& it) {
        it.request = request;
        inbox_.push_back({.at = now(), .what = it});
      },
      asked);
}

void LocalMachine::hear(std::span<const process::KeeperNews> news) {
  for (const process::KeeperNews& item : news) {
    // A keeper that has nothing to start is not waited for.
    if (!options_.joins && !std::holds_alternative<process::KeeperNote>(item)) continue;
    match(
        item,
        [this](const process::ProcessStarted& it) {
          const auto found = running_.find(it.key.task);
          if (found == running_.end() || found->second.key != it.key) return;
          std::vector<std::int64_t>& pids = found->second.pids;
          pids = {it.pid};
          pids.insert(pids.end(), it.others.begin(), it.others.end());
          found->second.rank_peaks.resize(pids.size());
          owners_.started(it.key.task, pids);
          fresh_.add(it.key.task, now());
          inbox_.push_back({.at = now(),
                            .what = model::AttemptStarted{.key = it.key,
                                                          .pid = it.pid,
                                                          .capped_by = found->second.capped_by,
                                                          .began = Instant{clock_offset_ + it.at},
                                                          .code = found->second.code}});
        },
        [](const process::RankFailed&) {},  // The end of the attempt says so, too.
        [this](const process::ProcessEnded& it) { hear_end(it); },
        [this](const process::KeeperNote& it) {
          if (options_.on_note) options_.on_note(it.text);
        },
        [this](const process::KeeperHeard& it) { hear_silence(it.silent); },
        [this](const process::KeeperDied&) { lose_keeper(); },
        [this](const process::KeeperReplaced& it) { take_another(it); },
        [this](const process::KeeperGone& it) { lose_everything(it); });
  }
}

/// Puts the address for messages, and the attempt's name there, into its environment.
void LocalMachine::introduce(model::AttemptKey key, model::Launch& launch) {
  check(tasks_.has_value() || !launch.two_phase, "a socket where there are two-phase tasks");
  if (!tasks_) return;
  const std::string token =
      tasks_->expect(key, {.ranks = launch.ranks, .tells_its_life = launch.two_phase});
  launch.environment.push_back(fmt::format("TRAINYARD_SOCKET={}", tasks_->path()));
  launch.environment.push_back(fmt::format("TRAINYARD_TOKEN={}", token));
  launch.environment.push_back(fmt::format("TRAINYARD_PHASES={}", launch.two_phase ? 2 : 1));
}

/// The metrics that a task prints; with several ranks, those of the first one. Many programs log to
/// standard error.
PrintedMetrics LocalMachine::printed_by(model::TaskIndex task, const model::Launch& launch) {
  return {streams_of(launch), options_.pattern_of ? options_.pattern_of(task) : LinePattern()};
}

/// However often a task reports progress, it is passed on with the next look at the machine: the
/// latest fraction and the latest values, which may come apart.
void LocalMachine::hear_progress(model::AttemptKey key, wire::Progress progress) {
  const auto running = running_.find(key.task);
  if (running == running_.end() || running->second.key != key) return;
  Attempt& attempt = running->second;
  attempt.values = wire::values_together(attempt.values, progress.values);
  std::optional<wire::Progress>& latest = attempt.progress;
  if (latest && !progress.fraction) progress.fraction = latest->fraction;
  if (latest) progress.values = wire::values_together(latest->values, progress.values);
  latest = std::move(progress);
}

/// Reads the metrics that tasks print, a bounded number of bytes in one turn. The next turn begins
/// with the task that comes next.
void LocalMachine::read_what_they_print() {
  std::size_t left = PrintedMetrics::kOfATurnMax;
  auto next = running_.upper_bound(read_last_);
  for (std::size_t n = 0; n < running_.size() && left > 0; ++n, ++next) {
    if (next == running_.end()) next = running_.begin();
    const std::size_t read = next->second.printed.look(std::min(left, PrintedMetrics::kOfALogMax));
    left -= std::min(left, read);
    read_last_ = next->first;
  }
}

void LocalMachine::tell_progress(Attempt& attempt) {
  const bool printed = attempt.printed.take_news();
  if (!attempt.progress && !printed) return;
  wire::Progress reported =
      std::exchange(attempt.progress, std::nullopt).value_or(wire::Progress{});
  const wire::LastMetrics& metrics = attempt.printed.last();
  if (!reported.fraction) reported.fraction = metrics.fraction();
  inbox_.push_back({.at = now(),
                    .what = model::Progressed{.key = attempt.key,
                                              .fraction = reported.fraction,
                                              .values = metrics.values_with(reported.values)}});
}

}  // namespace trainyard::run
