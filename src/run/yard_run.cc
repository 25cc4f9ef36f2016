#include "run/yard_run.h"

#include <algorithm>
#include <csignal>
#include <cstddef>
#include <expected>
#include <iterator>
#include <set>
#include <string_view>
#include <variant>

#include <fmt/format.h>

#include "base/bytes.h"
#include "hardware/capacity.h"
#include "hardware/cgroup.h"
#include "journal/reader.h"
#include "link/control_socket.h"
#include "model/event.h"
#include "model/ids.h"
#include "model/promises.h"
#include "model/terms.h"
#include "model/turn.h"
#include "process/process_table.h"
#include "process/watchers.h"
#include "run/drive.h"
#include "run/machine_keys.h"
#include "run/neighbours.h"
#include "run/noted_ends.h"
#include "run/run_directory.h"
#include "run/run_numbers.h"
#include "sys/clock.h"
#include "sys/files.h"
#include "sys/other_end.h"
#include "sys/this_process.h"
#include "sys/waker.h"
#include "wire/agent.h"
#include "wire/task.h"

namespace trainyard::run {
namespace {

/// Time limit for waiting for the keeper of a dead yard, and for its guard: as long as that waits.
constexpr Duration kKeeperPatience{20'000};

bool has_a_hard_limit(const model::Plan& plan) {
  return std::ranges::any_of(plan.shapes,
                             [](const model::Shape& it) { return it.terms.memory_hard; });
}

/// True if tasks are limited to a part of a GPU.
bool has_a_gpu_limit(const model::Plan& plan) {
  return std::ranges::any_of(plan.shapes, [](const model::Shape& it) {
    return it.terms.request.gpus > 0 && it.terms.gpu_memory_limit != model::GpuMemoryLimit::None;
  });
}

/// The memory of the machine's GPUs that the kernel can keep tasks to a part of.
std::vector<std::string> regions_of_gpus(const std::vector<model::Gpu>& gpus) {
  if (gpus.empty()) return {};
  const hardware::CapacitySources usual;
  const hardware::Cgroups groups = hardware::find_cgroups(usual.proc, usual.cgroup);
  if (groups.unified.empty()) return {};
  const std::vector<std::string> all = hardware::device_regions(groups.unified.back());
  std::vector<std::string> found;
  for (const model::Gpu& gpu : gpus) {
    std::ranges::move(hardware::regions_of(gpu, all), std::back_inserter(found));
  }
  return found;
}

/// Attempts on agents of an execution whose yard has died, that may go on. Two-phase ones may not:
/// only the yard knew the messages to them, and their reservations. `machines` may be null: none.
std::vector<journal::FoundAttempt> found_attempts(const RemoteMachines* machines) {
  std::vector<journal::FoundAttempt> found;
  if (machines == nullptr) return found;
  for (const wire::AgentRun& run : machines->found()) {
    if (!run.two_phase) found.push_back({.row = run.journal_number, .key = run.command.key});
  }
  return found;
}

/// All other attempts are ended: waits until they are.
Result<void> keep_attempts(RemoteMachines* machines, const std::set<model::AttemptKey>& go_on) {
  if (machines == nullptr || machines->found().empty()) return {};
  return machines->keep(go_on);
}

/// For users, before that: "2 tasks kept running without trainyard, and continue", and the outcomes
/// of the others. `machines` may be null: nothing.
std::vector<std::string> lines_about_found(const RemoteMachines* machines,
                                           const std::set<model::AttemptKey>& go_on) {
  if (machines == nullptr) return {};
  int running = 0;
  int ended = 0;
  int others = 0;
  for (const wire::AgentRun& run : machines->found()) {
    const bool goes_on = go_on.contains(run.command.key);
    running += goes_on && !run.ended ? 1 : 0;
    ended += goes_on && run.ended ? 1 : 0;
    others += !goes_on && !run.ended ? 1 : 0;
  }
  std::vector<std::string> lines;
  const auto tell = [&lines](int count, std::string_view of_one, std::string_view of_several) {
    if (count == 1) lines.push_back(fmt::format("1 task {}", of_one));
    if (count > 1) lines.push_back(fmt::format("{} tasks {}", count, of_several));
  };
  tell(running, "kept running without trainyard, and continues",
       "kept running without trainyard, and continue");
  tell(others, "that kept running is killed, and starts over",
       "that kept running are killed, and start over");
  std::ranges::move(lines_about_ends({.own = ended}), std::back_inserter(lines));
  return lines;
}

std::string how(const Ending& ending, const Tasks& tasks) {
  if (ending.gave_up) return "gave up: " + ending.gave_up->message;
  if (ending.interrupted) return ending.signal == SIGTERM ? kTerminated : journal::kInterrupted;
  if (ending.keeper_gone) return kKeeperDied;
  if (!ending.cannot_start.empty()) return ending.cannot_start;
  if (!ending.files_left.empty()) return kNotAllDone + ("files are left on " + ending.files_left);
  const std::string left = tasks.not_done();
  return left.empty() ? kEnded : kNotAllDone + left;
}

/// Whether a task ended in this turn without having finished.
bool ends_unfinished(const model::Turn& turn) {
  return std::ranges::any_of(turn.decisions, [](const model::Decision& decision) {
    return std::ranges::any_of(decision.changes, [](const model::Change& change) {
      const auto* const task = std::get_if<model::TaskChanged>(&change);
      return task != nullptr &&
             (task->verdict == model::Verdict::Failed || task->verdict == model::Verdict::Skipped ||
              task->verdict == model::Verdict::Stopped);
    });
  });
}

}  // namespace

Result<void> clear_up(const std::string& run_directory, const std::vector<std::string>& agents,
                      const std::function<void(const std::string&)>& tell) {
  // The keeper ends the running tasks properly, and notes their ends; where it was killed, the guard
  // does.
  static_cast<void>(process::wait_for_watchers(
      run_directory, kKeeperPatience, [&tell](const process::Watcher& watcher) {
        if (!tell) return;
        tell(fmt::format("waiting for process {} ({}) of the run to end", watcher.pid,
                         watcher.name));
      }));
  Result<journal::JournalReader> reader = journal::JournalReader::open(journal_path(run_directory));
  Result<std::vector<journal::ExecutionRow>> executions =
      reader ? reader->executions() : std::unexpected(reader.error());
  const bool begun = executions && !executions->empty();
  std::vector<std::string> go_on(agents.size());
  std::ranges::transform(agents, go_on.begin(), mark_of_agent);
  const Result<int> ended = process::end_processes({.mark = mark_of(run_directory),
                                                    .user = process::user_of_run(run_directory),
                                                    .but_for = std::move(go_on)},
                                                   kLeftoverGrace);
  if (!ended) return std::unexpected(Error(ended.error()).in("what the last run left"));
  if (begun) link::remove_dead_socket(executions->back().socket_path);
  return {};
}

YardRun::YardRun(Tasks& tasks, YardParts parts, YardRunOptions options)
    : tasks_(tasks),
      options_(std::move(options)),
      promises_(std::move(parts.promises)),
      keeper_(std::make_unique<process::Keeper>(std::move(parts.keeper))),
      capacity_(std::move(parts.machine.reading)),
      remotes_(std::move(parts.remotes)),
      allocated_(std::move(parts.allocated)),
      loop_(remotes_ ? remotes_->loop() : own_loop_.emplace()),
      gpus_(std::move(parts.machine.gpus)) {
  if (!parts.codes) return;
  codes_.emplace(loop_, *std::move(parts.codes),
                 [this](std::string text) { return tasks_.without_secrets(std::move(text)); });
}

YardRun::~YardRun() = default;

Result<void> YardRun::listen() {
  std::vector<std::string> parents = link::socket_parents();
  if (options_.outlives_session) {
    std::erase_if(parents, [](std::string_view each) { return each.starts_with("/run/user/"); });
  }
  Result<std::unique_ptr<link::FrameServer>> server = link::FrameServer::listen(
      loop_,
      {.program = options_.program,
       .parents = std::move(parents),
       .before_made = [this](const std::string& directory) { keeper_->remove_at_end(directory); },
       .on_trouble =
           [this](std::string_view what) {
             tasks_.note(fmt::format("control socket: {}", what));
           }});
  if (!server) return std::unexpected(std::move(server.error()));
  server_ = std::move(*server);
  control_.emplace(*server_, link::ControlLimits{},
                   [this](const wire::ControlRequest& request, link::Reply reply) {
                     serve(request, std::move(reply));
                   });
  return {};
}

journal::Execution YardRun::execution() const {
  return {.host = sys::host_name(),
          .run_directory = real_directory(options_.directory),
          .yard_pid = sys::own_pid(),
          .socket_path = server_ ? server_->path() : std::string(),
          .started_unix_ms = sys::unix_milliseconds(),
          .gpus = capacity_.capacity.gpus};
}

Result<void> YardRun::begin(const std::string& job_name, const journal::Batch& first,
                            const journal::Execution& execution) {
  if (options_.ends_on_signals) watch_signals();
  started_unix_ms_ = execution.started_unix_ms;
  if (codes_ && execution.code) codes_->know(*execution.code);
  Result<std::unique_ptr<journal::Journal>> journal =
      journal::Journal::create(journal_path(options_.directory), job_name, first, execution);
  if (!journal) return std::unexpected(std::move(journal.error()));
  journal_ = std::move(*journal);
  // If nothing was committed before the yard died, nothing is known about attempts that still run.
  if (Result<void> kept = keep_attempts(remotes_.get(), {}); !kept) return kept;
  batches_.push_back({.number = first.number, .plan = first.plan});
  // A submitted run has its number already.
  take_number(/*is_new=*/!sys::exists(submission_path(options_.directory)));
  return {};
}

void YardRun::take_number(bool is_new) {
  const Result<RunNumbers> numbers = RunNumbers::of_this_user();
  const std::string directory = real_directory(options_.directory);
  const std::string here = real_directory(".");
  const Result<std::uint32_t> number =
      numbers ? is_new ? numbers->give(directory, here) : numbers->keep(directory, here)
              : std::unexpected(numbers.error());
  if (number) {
    number_ = *number;
    numbering_ = numbers->identity();
  } else {
    tasks_.note(fmt::format("the run has no number: {}", number.error().message));
  }
}

Result<YardRun::Resumed> YardRun::go_on(const std::vector<journal::Batch>& batches,
                                        const journal::Execution& execution,
                                        const journal::JournalOptions& options) {
  if (options_.ends_on_signals) watch_signals();
  started_unix_ms_ = execution.started_unix_ms;
  if (codes_ && execution.code) codes_->know(*execution.code);
  if (Result<void> known = check_attempts_are_known(options_.directory); !known) {
    return std::unexpected(std::move(known.error()));
  }
  const NotedEnds noted = noted_ends(options_.directory);
  if (!noted.trouble.empty())
    tasks_.note("tasks that ended after trainyard had died: " + noted.trouble);
  journal::JournalOptions with_found = options;
  with_found.found = found_attempts(remotes_.get());
  Result<journal::Journal::Resumed> resumed = journal::Journal::resume(
      journal_path(options_.directory), batches, execution, with_found, noted.ends);
  if (!resumed) return std::unexpected(std::move(resumed.error()));
  std::vector<std::string> found = lines_about_found(remotes_.get(), resumed->goes_on);
  if (Result<void> kept = keep_attempts(remotes_.get(), resumed->goes_on); !kept) {
    return std::unexpected(std::move(kept.error()));
  }
  remove_noted_ends(options_.directory);
  const std::vector<std::string> ends = lines_about_ends(resumed->ends);
  resumed->changes.insert(resumed->changes.begin(), ends.begin(), ends.end());
  std::ranges::move(found, std::back_inserter(resumed->changes));
  journal_ = std::move(resumed->journal);
  at_ = resumed->at;
  for (std::size_t i = 0; i < batches.size(); ++i) {
    batches_.push_back({.number = batches[i].number, .plan = resumed->plans[i]});
  }
  take_number(/*is_new=*/false);
  return Resumed{.plans = std::move(resumed->plans),
                 .finished = resumed->finished,
                 .not_kept = resumed->not_kept,
                 .changes = std::move(resumed->changes)};
}

/// True where the kernel keeps the limits of tasks that have a hard one.
bool YardRun::open_group() {
  const bool hard = std::ranges::any_of(
      batches_, [](const model::BatchAdded& it) { return has_a_hard_limit(*it.plan); });
  const bool of_gpus = std::ranges::any_of(
      batches_, [](const model::BatchAdded& it) { return has_a_gpu_limit(*it.plan); });
  std::vector<std::string> regions;
  if (of_gpus) regions = regions_of_gpus(capacity_.capacity.gpus);
  const bool wanted = hard || !regions.empty();
  if (!wanted || !options_.opens_control_group) return false;
  group_ = process::find_delegated_group();
  if (group_.path.empty()) return false;
  const Result<void> opened = process::open_delegated_group(group_);
  if (group_.has_regions) regions_ = std::move(regions);
  if (!opened && hard) {
    tasks_.note(fmt::format("machine: memory-limit: hard is enforced by a check each second: {}",
                            opened.error().message));
  }
  return opened.has_value();
}

void YardRun::make_ledger() {
  if (!promises_ || !options_.runs_here) return;
  const auto note = [this](const std::string& text) { tasks_.note("other runs: " + text); };
  const auto tell = [this, note] {
    for (const std::string& text : promises_->take_notes()) note(text);
  };
  ledger_.emplace(
      SharedLedger::Board{.write =
                              [this, tell](const model::Promises& promises) {
                                promises_->write(promises);
                                tell();
                              },
                          .read =
                              [this, tell] {
                                std::vector<model::Neighbour> neighbours =
                                    named(promises_->read(), numbering_);
                                tell();
                                return neighbours;
                              },
                          .pause = [] { process::PromiseBoard::let_others_go_on(); },
                          .unix_s = [] { return sys::unix_milliseconds() / 1'000; },
                          .note = note},
      capacity_.capacity,
      SharedLedger::Options{.ticket = promises_->ticket(),
                            .run = number_.value_or(0),
                            .numbering = numbering_,
                            .name = options_.directory.substr(options_.directory.rfind('/') + 1),
                            .gpu_steady_after = options_.policy.gpu_steady_after});
}

model::Launch YardRun::launch(model::AttemptKey key, const model::Grant& grant) {
  model::Launch launch = tasks_.launch(key, grant);
  launch.journal_number = journal_->number_of(key.task);
  return launch;
}

void YardRun::make_machine() {
  make_ledger();
  if (gpus_) limits_.emplace(options_.gpu_limits, process::PromiseBoard::usual_directories());
  machine_ = std::make_unique<LocalMachine>(
      loop_, *keeper_,
      LocalMachine::Options{
          .begins = at_,
          .sample_every = options_.sample_every,
          .joins =
              options_.runs_here
                  ? std::optional(model::MachineJoined{
                        .machine = {}, .name = sys::host_name(), .capacity = capacity_.capacity})
                  : std::nullopt,
          .launch = [this](model::AttemptKey key,
                           const model::Grant& grant) { return launch(key, grant); },
          .pattern_of = [this](model::TaskIndex task) { return tasks_.pattern_of(task); },
          .frames = server_.get(),
          .on_message = [this](model::AttemptKey key,
                               const wire::Message& message) { tasks_.hear(key, message); },
          .on_note = [this](const std::string& text) { tasks_.note(text); },
          .delegated_group = group_.path,
          .regions = regions_,
          .more_to_come =
              [this] { return (held_by_ && !machine_->keeper_gone()) || submissions_->is_busy(); },
          .gpus = gpus_ ? &*gpus_ : nullptr,
          .run_directory = options_.directory,
          .log_max = options_.log_max,
          .ledger = ledger_ ? &*ledger_ : nullptr,
          .stop_grace = options_.policy.stop_grace,
          .gpu_steady_after = options_.policy.gpu_steady_after,
          .limits = limits_ ? &*limits_ : nullptr,
          .codes = codes_ ? &*codes_ : nullptr,
          .notes = {.path = ends_path(options_.directory),
                    .execution = journal_->execution(),
                    .started_unix_ms = started_unix_ms_}});
  submissions_ = std::make_unique<Submissions>(
      loop_, *journal_, tasks_, batches_.back().number,
      Submissions::Ways{.add = [this](model::BatchAdded batch) { machine_->add(std::move(batch)); },
                        .nothing_came = [this] { machine_->look_again(); }});
}

void YardRun::make_fleet() {
  fleet_ = std::make_unique<Fleet>(
      *machine_, remotes_.get(),
      [this](model::AttemptKey key, const model::Grant& grant) { return launch(key, grant); });
  const auto note = [this](const std::string& text) { tasks_.note(text); };
  fleet_->begin(options_.runs_here, note);
}

/// If all machines are those of an allocation that a user has requested, nothing follows it.
void YardRun::end_with_machines() {
  const bool has_others = options_.runs_here || allocated_;
  const std::optional<Duration> until = remotes_ ? remotes_->until() : std::nullopt;
  if (has_others || !until) return;
  const Duration left = std::max(*until - sys::EventLoop::now(), Duration{0});
  machines_end_ = loop_.after(left, [this] {
    machines_end_.reset();
    tasks_.note(
        "the time of the allocation is over: 'trainyard run --resume' continues in another one");
    if (!interrupted_) interrupt();
  });
}

void YardRun::look_after_allocations(const schedule::Scheduler& scheduler) {
  if (!allocated_) return end_with_machines();
  allocated_->go_on({.has_use_for =
                         [&](model::MachineIndex machine) {
                           return scheduler.is_of_use(machine, machine_->now());
                         },
                     .count_waiting = [&] { return scheduler.count_waiting(); }},
                    [this](const std::string& text) { tasks_.note(text); });
}

Ending YardRun::run() {
  model::Policy policy = options_.policy;
  // Agents make no control groups: where there are some all limits are kept by looking.
  policy.kernel_keeps_limits = open_group() && !remotes_;
  if (options_.records_all) {
    const Result<void> recorded = journal_->record(policy);
    if (!recorded) tasks_.note("the run is not recorded: " + recorded.error().message);
  }
  reserved_space_ = sys::reserve_space(options_.directory, mib(1));
  make_machine();
  make_fleet();
  for (model::BatchAdded& batch : batches_) {
    batch.more_follow = &batch != &batches_.back() || fleet_->has_found_attempts();
    machine_->add(std::move(batch));
  }
  fleet_->go_on();
  for (const auto& [asked, name] : retries_) {
    machine_->ask(asked, [this, &name](bool done) {
      if (!done) tasks_.note(name + " is not retried: a group that its group needs has failed");
    });
  }
  const sys::StopWatch stop(loop_, options_.stop, [this] { interrupt(); });
  if (options_.lasts_as_long_as) watch_other_end(*options_.lasts_as_long_as);
  std::vector<Observer> observers;
  schedule::Scheduler scheduler(policy);
  look_after_allocations(scheduler);
  observers.emplace_back([&](const model::Turn& turn) {
    see(turn, scheduler.idle());
    if (cannot_start_.empty() && !scheduler.refused_by_machine().empty()) {
      cannot_start_ = scheduler.refused_by_machine();
      let_go();
      submissions_->close();
    }
  });
  Result<void> driven =
      drive(scheduler, *fleet_, *journal_, observers,
            {.tell = [this](const std::optional<Error>& why) { tell_unwritten(why); },
             .make_room = [this] { reserved_space_.close(); }});
  const bool keeper_gone = machine_->keeper_gone();
  // The keeper may have died when all was done, and nobody could have submitted more.
  const bool lacks_keeper =
      keeper_gone && (ended_unfinished_ || held_by_ || !tasks_.not_done().empty());
  Ending ending{.interrupted = interrupted_,
                .signal = signal_,
                .keeper_gone = lacks_keeper,
                .cannot_start = cannot_start_};
  if (!driven) ending.gave_up = std::move(driven.error());
  ending.files_left = bring_files_back();
  // The remaining processes of the tasks are killed before their outcome is reported.
  take_apart();
  if (keeper_gone) end_leftovers();
  // Room for the last rows.
  reserved_space_.close();
  Result<void> closed = journal_->close(at_, how(ending, tasks_));
  // Before the outcome is read from the file.
  Result<bool> put_back = journal_->put_back();
  journal_.reset();
  if (put_back && *put_back) {
    const std::string path = journal_path(options_.directory);
    tasks_.note(fmt::format(
        "journal: '{0}' was removed, replaced or emptied while the run was active. trainyard "
        "has put it back; what was in its place is in '{0}.other-*'",
        path));
  }
  if (!put_back) closed = std::unexpected(std::move(put_back.error()));
  // The outcome from the journal has been reported. If the journal could not be written, the keeper
  // may have noted what is missing.
  if (closed && !ending.gave_up) remove_noted_ends(options_.directory);
  if (!closed) ending.not_closed = std::move(closed.error());
  return ending;
}

/// Ctrl-C leaves them where they are.
std::string YardRun::bring_files_back() {
  if (!remotes_) return {};
  submissions_->close();
  brings_files_ = true;
  remotes_->bring_the_rest([this] { return brings_files_; });
  brings_files_ = false;
  return remotes_->names_with_files_left();
}

void YardRun::take_apart() {
  let_go();
  submissions_.reset();
  codes_.reset();
  fleet_.reset();
  if (remotes_) remotes_->leave();
  allocated_.reset();
  machine_.reset();
  keeper_.reset();
  ledger_.reset();
  // Only now: what its tasks had is free.
  promises_.reset();
  gpus_.reset();
  control_.reset();
  server_.reset();
}

void YardRun::let_go_of_signals() { loop_.forget_signals({SIGINT, SIGTERM}); }

/// Ends the processes that the guard left when it was killed with the keeper.
void YardRun::end_leftovers() {
  const Result<int> ended = process::end_processes(
      {.mark = mark_of(options_.directory), .user = process::user_of_run(options_.directory)},
      kLeftoverGrace);
  if (!ended) tasks_.note(ended.error().message);
}

void YardRun::see(const model::Turn& turn, bool all_ended) {
  at_ = turn.events.back().at;
  all_ended_ = all_ended;
  ended_unfinished_ = ended_unfinished_ || (machine_->keeper_gone() && ends_unfinished(turn));
  for (const model::Event& event : turn.events) {
    const auto* const ended = std::get_if<model::AttemptEnded>(&event.what);
    if (ended != nullptr) keeper_->is_written(ended->key);
  }
  tasks_.see(turn);
  submissions_->see(turn);
  if (ledger_) ledger_->see(turn);
}

void YardRun::interrupt() {
  if (std::exchange(brings_files_, false)) return;
  interrupted_ = true;
  // When the other end closes as well, that is no second wish, which would kill at once.
  let_go();
  submissions_->close();
  machine_->ask_to_interrupt();
  if (remotes_) remotes_->say_what_is_waited_for();
}

void YardRun::watch_signals() {
  // From before anything is written down: what has begun ends as a run does. A lost terminal does
  // not end the run, and neither does a reader of its output that goes away.
  loop_.watch_signals({SIGINT, SIGTERM, SIGHUP, SIGPIPE}, [this](int signal) {
    if (signal != SIGINT && signal != SIGTERM) return;
    if (!interrupted_ && !brings_files_) signal_ = signal;
    interrupt();
  });
}

void YardRun::watch_other_end(int descriptor) {
  held_by_ = descriptor;
  loop_.watch_readable(descriptor, [this, descriptor] {
    if (!sys::is_other_end_closed(descriptor)) return;
    let_go();
    if (all_ended_ && !submissions_->is_busy()) return machine_->look_again();
    interrupt();
    // The second one kills at once: the program that the tasks work for is gone.
    interrupt();
  });
}

void YardRun::let_go() {
  if (machines_end_) loop_.cancel(*machines_end_);
  machines_end_.reset();
  if (const std::optional<int> descriptor = std::exchange(held_by_, std::nullopt)) {
    loop_.unwatch(*descriptor);
  }
}

void YardRun::tell_unwritten(const std::optional<Error>& why) {
  tasks_.note(why ? fmt::format("journal: {}: no new tasks start until it can be written again; "
                                "after a minute the run ends",
                                why->message)
                  : "journal: it can be written again");
}

}  // namespace trainyard::run
