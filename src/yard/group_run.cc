#include "yard/group_run.h"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <expected>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <unistd.h>

#include <fmt/format.h>

#include "base/bytes.h"
#include "base/result.h"
#include "base/time.h"
#include "config/configuration.h"
#include "config/file_name.h"
#include "config/gpu_variables.h"
#include "config/gpu_wish.h"
#include "config/setting_value.h"
#include "io/clock.h"
#include "io/control_socket.h"
#include "io/event_loop.h"
#include "io/files.h"
#include "io/frame_server.h"
#include "io/gpu_watch.h"
#include "io/keeper.h"
#include "io/process_table.h"
#include "io/this_machine.h"
#include "journal/journal.h"
#include "journal/place.h"
#include "journal/reader.h"
#include "model/command.h"
#include "model/event.h"
#include "model/ids.h"
#include "model/launch.h"
#include "model/plan.h"
#include "model/resources.h"
#include "model/status.h"
#include "model/task_seed.h"
#include "model/turn.h"
#include "report/places.h"
#include "report/write_reports.h"
#include "run/drive.h"
#include "run/local_machine.h"
#include "schedule/scheduler.h"
#include "trainyard/task.h"
#include "trainyard/task_group.h"
#include "trainyard/yard.h"
#include "wire/task.h"
#include "yard/task_process.h"
#include "yard/task_state.h"

namespace trainyard {
namespace {

constexpr const char* kVersion = TRAINYARD_VERSION;

class GroupRun {
 public:
  GroupRun(const TaskGroup& group, const std::vector<Task*>& tasks,
           const Configuration& configuration, const GroupRunOptions& options)
      : group_(group), tasks_(tasks), configuration_(configuration), options_(options) {}

  Result<RunSummary> run();

 private:
  Result<void> make_plan(const Limits& limits, const Capacity& capacity);
  [[nodiscard]] Request request_of(Task& task, const Capacity& capacity) const;
  Result<void> add_gpu_wish(Task& task, Request& request) const;
  Result<void> check_id(const std::string& id, std::set<std::string_view>& ids) const;
  Result<io::Keeper> fork_keeper() const;
  Result<std::unique_ptr<Journal>> make_journal(const io::Keeper& keeper,
                                                const io::FrameServer& server,
                                                const Capacity& capacity) const;
  [[nodiscard]] Launch launch(AttemptKey key, const Capacity& capacity) const;
  void end_leftovers();
  void see(const Turn& turn);
  void see(const Event& event);
  void see(Instant at, const TaskChanged& change);
  TaskState& state(TaskIndex task) { return TaskAccess::state(*tasks_.at(task.value)); }

  const TaskGroup& group_;
  const std::vector<Task*>& tasks_;
  const Configuration& configuration_;
  const GroupRunOptions& options_;
  Plan plan_;
  Instant last_;
  RunSummary summary_;
};

Request GroupRun::request_of(Task& task, const Capacity& capacity) const {
  const TaskOptions& own = TaskAccess::state(task).options;
  const double wanted = own.cpus.value_or(group_.options().cpus.value_or(1));
  const Cpus cpus{static_cast<std::int64_t>(std::lround(wanted * 1000))};
  const std::optional<Bytes> memory = own.memory ? own.memory : group_.options().memory;
  return {.memory = memory ? *memory : default_memory(configuration_, capacity, cpus),
          .cpus = cpus};
}

Result<void> GroupRun::check_id(const std::string& id, std::set<std::string_view>& ids) const {
  if (const std::optional<std::string> why = why_unsafe(id)) {
    return std::unexpected(Error{fmt::format("the id of a task '{}' {}", id, *why)});
  }
  if (taken_in_run_directory(id)) {
    return std::unexpected(Error{fmt::format("the id '{}' is a name that trainyard uses", id)});
  }
  if (ids.insert(id).second) return {};
  return std::unexpected(Error{fmt::format("two tasks have the id '{}'", id)});
}

Result<void> GroupRun::add_gpu_wish(Task& task, Request& request) const {
  const TaskOptions& own = TaskAccess::state(task).options;
  const GroupOptions& all = group_.options();
  GpuWish wish{
      .gpus = own.gpus ? own.gpus : all.gpus,
      .memory = {.bytes = (own.gpu_memory ? own.gpu_memory : all.gpu_memory).value_or(Bytes{})},
      .device = {},
      .device_goes_first = !own.device.empty() && !own.gpus && !own.gpu_memory};
  const std::string& text = own.device.empty() ? all.device : own.device;
  const auto refuse = [&task](const Error& error) {
    return std::unexpected(Error{fmt::format("task '{}': {}", task.id(), error.message)});
  };
  if (!text.empty()) {
    const Result<DeviceWish> device = parse_device(text);
    if (!device) return refuse(device.error());
    wish.device = *device;
  }
  const auto usual = configuration_.size(Setting::SchedulerDefaultCudaMemory);
  const Result<void> added = add_gpus(wish, usual.value_or(Bytes{}), request);
  return added ? added : refuse(added.error());
}

Result<void> GroupRun::make_plan(const Limits& limits, const Capacity& capacity) {
  plan_.groups.push_back({.name = group_.name(),
                          .needs = {},
                          .parallel_max = group_.options().parallel_max,
                          .fail_fast = group_.options().fail_fast});
  std::map<Request, ShapeIndex> shapes;
  std::set<std::string_view> ids;
  for (Task* task : tasks_) {
    if (Result<void> good = check_id(task->id(), ids); !good) return good;
    Request request = request_of(*task, capacity);
    if (Result<void> good = add_gpu_wish(*task, request); !good) return good;
    if (const auto why = never_fits(request, limits, capacity)) {
      return std::unexpected(
          Error{fmt::format("task '{}' can never run here: it {}", task->id(), *why)});
    }
    const Shape seen{.group = {0}, .request = request, .two_phase = true};
    if (const auto why = cannot_see_gpus(capacity, seen)) {
      return std::unexpected(
          Error{fmt::format("task '{}' can never run here: {}", task->id(), *why)});
    }
    const ShapeIndex next{static_cast<std::uint32_t>(plan_.shapes.size())};
    const auto [shape, is_new] = shapes.try_emplace(request, next);
    if (is_new) {
      plan_.shapes.push_back(
          {.group = {0}, .request = request, .time_limit = Duration{0}, .two_phase = true});
    }
    plan_.tasks.push_back({.shape = shape->second});
  }
  return {};
}

Result<io::Keeper> GroupRun::fork_keeper() const {
  // What is buffered now would be written by every task, too.
  std::fflush(nullptr);
  Result<io::Keeper> keeper = io::Keeper::fork(
      {.body = [this](AttemptKey key,
                      const Launch& its) { return TaskProcess::run(*tasks_[key.task.value], its); },
       .beside_threads = options_.beside_threads});
  if (keeper) return keeper;
  return std::unexpected(
      Error{keeper.error().message +
            "; the cure: run the yard before they start, set OMP_NUM_THREADS=1 for pools of "
            "OpenMP, or say {.fork = Fork::AnyThreads} when they are idle and bear a fork"});
}

Result<std::unique_ptr<Journal>> GroupRun::make_journal(const io::Keeper& keeper,
                                                        const io::FrameServer& server,
                                                        const Capacity& capacity) const {
  return Journal::create(
      journal_path(options_.directory), plan_,
      {.job_name = options_.name,
       .task_id = [this](TaskIndex task) { return tasks_[task.value]->id(); },
       .matrix_values =
           [](TaskIndex) { return std::vector<std::pair<std::string, std::string>>(); },
       .fingerprint = [](TaskIndex) { return std::uint64_t{0}; }},
      {.command_line = "a program with trainyard's library",
       .version = kVersion,
       .host = io::host_name(),
       .yard_pid = ::getpid(),
       .keeper_pid = keeper.pid(),
       .socket_path = server.path(),
       .started_unix_ms = io::unix_milliseconds(),
       .job_file = {},
       .job_text = {},
       .config_file = {},
       .settings = {},
       .configuration = show(configuration_),
       .gpus = capacity.gpus,
       .git_commit = {},
       .git_diff = {}});
}

Launch GroupRun::launch(AttemptKey key, const Capacity& capacity) const {
  const std::string& id = tasks_[key.task.value]->id();
  Launch launch;
  launch.task_directory = fmt::format("{}/{}", options_.directory, id);
  launch.working_directory = launch.task_directory;
  const auto log = [&](std::string_view stream) {
    return fmt::format("{}/{}", launch.task_directory, report::log_name(stream, key.attempt));
  };
  launch.stdout_path = log("stdout");
  launch.stderr_path = log("stderr");
  launch.result_path = key.attempt == 1
                           ? launch.task_directory + "/result.json"
                           : fmt::format("{}/result.{}.json", launch.task_directory, key.attempt);
  launch.two_phase = true;
  launch.forked = true;
  launch.environment = {
      "TRAINYARD_TASK_ID=" + id,
      "TRAINYARD_GROUP=" + group_.name(),
      "TRAINYARD_RUN_DIR=" + options_.directory,
      "TRAINYARD_TASK_DIR=" + launch.task_directory,
      "TRAINYARD_RESULT=" + launch.result_path,
      fmt::format("TRAINYARD_ATTEMPT={}", key.attempt),
      fmt::format("TRAINYARD_SEED={}", task_seed(group_.name(), id, key.attempt))};
  const Shape& shape = plan_.shape_of(key.task);
  for (const auto& [name, value] : gpu_variables(capacity, shape, {})) {
    launch.environment.push_back(fmt::format("{}={}", name, value));
  }
  return launch;
}

Result<RunSummary> GroupRun::run() {
  // Before the loop, which it must not outlive, and moved behind it below.
  io::ThisMachine machine = io::find_this_machine();
  const Capacity& capacity = machine.reading.capacity;
  const Limits limits_in_force = limits(configuration_, capacity);
  if (Result<void> planned = make_plan(limits_in_force, capacity); !planned) {
    return std::unexpected(std::move(planned.error()));
  }
  if (Result<void> made = io::make_directories(options_.directory); !made) {
    return std::unexpected(std::move(made.error()));
  }
  const Result<io::RunLock> lock = io::RunLock::take(options_.directory);
  if (!lock) return std::unexpected(lock.error());
  Result<io::Keeper> forked = fork_keeper();
  if (!forked) return std::unexpected(std::move(forked.error()));
  auto keeper = std::make_unique<io::Keeper>(std::move(*forked));
  io::EventLoop loop;
  std::optional<io::GpuWatch> gpus = std::move(machine.gpus);
  Result<std::unique_ptr<io::FrameServer>> server =
      io::FrameServer::listen(loop, {.program = fmt::format("trainyard {}", kVersion),
                                     .parents = io::socket_parents(),
                                     .on_trouble = [this](std::string_view what) {
                                       options_.note(fmt::format("the tasks' socket: {}", what));
                                     }});
  if (!server) return std::unexpected(std::move(server.error()));
  Result<std::unique_ptr<Journal>> journal = make_journal(*keeper, **server, capacity);
  if (!journal) return std::unexpected(std::move(journal.error()));
  auto tasks_machine = std::make_unique<LocalMachine>(
      loop, *keeper,
      LocalMachine::Options{
          .capacity = capacity,
          .begins = {},
          .sample_every = sample_interval(configuration_),
          .launch = [&](AttemptKey key,
                        const std::vector<GpuIndex>&) { return launch(key, capacity); },
          .frames = server->get(),
          .on_message =
              [this](AttemptKey key, const wire::Message& message) {
                options_.on_message(tasks_[key.task.value]->id(), message);
              },
          .on_note = [this](const std::string& text) { options_.note(text); },
          .gpus = gpus ? &*gpus : nullptr});
  Scheduler scheduler(plan_, limits_in_force, capacity);
  std::vector<Observer> observers;
  observers.emplace_back([this](const Turn& turn) { see(turn); });
  Result<void> driven = drive(scheduler, *tasks_machine, **journal, observers);
  const bool keeper_gone = tasks_machine->keeper_gone();
  tasks_machine.reset();
  keeper.reset();
  if (keeper_gone) end_leftovers();
  Result<void> closed = (*journal)->close(last_, !driven       ? "gave up"
                                                 : keeper_gone ? "the keeper died"
                                                               : "ended");
  journal->reset();
  if (!driven) return std::unexpected(std::move(driven.error()));
  if (!closed) return std::unexpected(std::move(closed.error()));
  Result<JournalReader> reader = JournalReader::open(journal_path(options_.directory));
  if (!reader) return std::unexpected(std::move(reader.error()));
  if (const auto told = report::write_reports(*reader, options_.directory)) {
    options_.on_report(*told);
  } else {
    options_.note(told.error().message);
  }
  return summary_;
}

/// What the guard has left, when it was killed with the keeper.
void GroupRun::end_leftovers() {
  constexpr Duration kGrace{5'000};
  const Result<int> ended =
      io::end_processes_with("TRAINYARD_RUN_DIR=" + options_.directory, kGrace);
  if (!ended) options_.note(ended.error().message);
}

void GroupRun::see(const Turn& turn) {
  for (std::size_t i = 0; i < turn.events.size(); ++i) {
    last_ = turn.events[i].at;
    see(turn.events[i]);
    for (const Change& change : turn.decisions[i].changes) {
      if (const auto* const changed = std::get_if<TaskChanged>(&change)) see(last_, *changed);
    }
  }
}

void GroupRun::see(const Event& event) {
  if (const auto* const said = std::get_if<StageReported>(&event.what)) {
    if (!said->traceback.empty()) state(said->key.task).traceback = said->traceback;
  } else if (const auto* const ended = std::get_if<AttemptEnded>(&event.what)) {
    state(ended->key.task).result = ended->result;
    if (ended->warning.empty()) return;
    options_.note(
        fmt::format("task '{}': result: {}", tasks_[ended->key.task.value]->id(), ended->warning));
  }
}

void GroupRun::see(Instant at, const TaskChanged& change) {
  TaskState& task = state(change.key.task);
  task.status = change.status;
  task.times.enter(change.status, at);
  task.task_dir = fmt::format("{}/{}", options_.directory, task.options.id);
  task.message = change.message;
  const bool failed = change.verdict == Verdict::Failed;
  task.failed_in = failed ? std::optional(change.stage) : std::nullopt;
  if (change.verdict == Verdict::Finished) task.traceback.clear();
  switch (change.verdict) {
    case Verdict::Finished:
      ++summary_.finished;
      break;
    case Verdict::Failed:
      ++summary_.failed;
      break;
    case Verdict::Skipped:
      ++summary_.skipped;
      break;
    case Verdict::Stopped:
      ++summary_.stopped;
      break;
    case Verdict::None:
      break;
  }
}

}  // namespace

Result<RunSummary> run_group(const TaskGroup& group, const std::vector<Task*>& tasks,
                             const Configuration& configuration, const GroupRunOptions& options) {
  return GroupRun(group, tasks, configuration, options).run();
}

}  // namespace trainyard
