#include "library/group_run.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdio>
#include <expected>
#include <iterator>
#include <ranges>
#include <set>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "base/check.h"
#include "base/fingerprint.h"
#include "hardware/mps.h"
#include "job/gpu_variables.h"
#include "job/keep_learned.h"
#include "job/learned_notes.h"
#include "job/task_environment.h"
#include "journal/options.h"
#include "journal/reader.h"
#include "library/group_plan.h"
#include "library/task_process.h"
#include "model/command.h"
#include "model/status.h"
#include "model/terms.h"
#include "run/neighbours.h"
#include "run/run_directory.h"
#include "settings/periods.h"
#include "sys/environment.h"
#include "sys/event_loop.h"
#include "sys/files.h"
#include "trainyard/task_outcome.h"

namespace trainyard::library {
namespace {

constexpr const char* kVersion = TRAINYARD_VERSION;
constexpr const char* kCommandLine = "a program with trainyard's library";

std::uint64_t fingerprint_of(Task& task, const TaskGroup& group) {
  Fingerprint fingerprint;
  const std::string& own = TaskAccess::state(task).options.fingerprint;
  fingerprint.add(own.empty() ? group.defaults().fingerprint : own);
  return fingerprint.value();
}

struct Launched {
  Task& task;
  const TaskGroup& group;
  const std::string& run_directory;
  std::string task_directory;  ///< Absolute.
  const model::Shape& shape;
  const model::Capacity& capacity;
  bool gpus_answer = true;  ///< All its GPUs answered when they were last sampled.
};

/// A fork of the program in a directory of its own, with the environment variables of a task of a
/// job file.
model::Launch launch_of(const Launched& what, std::uint32_t attempt) {
  const model::Terms& terms = what.shape.terms;
  model::Launch launch;
  job::set_files(launch, what.task_directory, attempt);
  launch.run_directory = what.run_directory;
  launch.working_directory = launch.task_directory;
  launch.two_phase = true;
  launch.forked = true;
  launch.ranks = terms.ranks;
  if (launch.ranks > 0) {
    launch.own_ranks =
        model::OwnRanks{.gpus = 0, .log_paths = job::logs_of_ranks(launch, launch.ranks, attempt)};
  }
  const auto add = [&launch](const job::Variables& variables) {
    for (const auto& [name, value] : variables) {
      launch.environment.push_back(fmt::format("{}={}", name, value));
    }
  };
  add(job::own_variables({.group = what.group.name(), .id = what.task.id(), .attempt = attempt},
                         launch, what.run_directory));
  for (const auto& variable : job::thread_variables(terms.request, model::processes_of(terms))) {
    if (!sys::variable(variable.first.c_str())) add({variable});
  }
  // The GPUs of an attempt are told when it trains: it sees all of them.
  const TaskOptions& own = TaskAccess::state(what.task).options;
  job::Variables said = own.environment;
  std::ranges::copy(what.group.defaults().environment, std::back_inserter(said));
  const std::string pipes = sys::variable(hardware::kMpsPipes).value_or(hardware::kMpsDirectory);
  const bool is_renumbered = !what.gpus_answer || hardware::find_mps(pipes).has_value();
  add(job::gpu_variables(what.capacity.gpus, what.shape, {},
                         job::naming_of_gpus(said, is_renumbered)));
  // The last word of a name counts.
  const std::size_t first = launch.environment.size();
  for (const TaskOptions* const options : std::array{&what.group.defaults(), &own}) {
    add(options->environment);
  }
  std::ranges::copy(launch.environment | std::views::drop(first),
                    std::back_inserter(launch.user_variables));
  return launch;
}

}  // namespace

GroupRun::GroupRun(ProgramRun& where, const TaskGroup& group,
                   const settings::Configuration& configuration, const GroupRunOptions& options,
                   const GroupEars& ears)
    : where_(where),
      group_(group),
      configuration_(configuration),
      options_(options),
      ears_(ears),
      machine_(hardware::find_this_machine()),
      capacity_(machine_.reading.capacity) {}

Result<RunSummary> GroupRun::run(const std::vector<Task*>& tasks) {
  if (Result<void> prepared = prepare(tasks); !prepared) {
    return std::unexpected(std::move(prepared.error()));
  }
  open_promises();
  Result<process::Keeper> forked = fork_keeper();
  if (!forked) return std::unexpected(std::move(forked.error()));
  try {
    yard_ = std::make_unique<run::YardRun>(
        *this,
        run::YardParts{.promises = std::move(promises_),
                       .keeper = std::move(*forked),
                       .machine = std::move(machine_)},
        run::YardRunOptions{.directory = where_.directory(),
                            .program = fmt::format("trainyard {}", kVersion),
                            .policy = settings::policy(configuration_, capacity_),
                            .sample_every = settings::sample_interval(configuration_),
                            .log_max = settings::log_max(configuration_),
                            .gpu_limits = settings::gpu_limits(configuration_),
                            .records_all = settings::records_all(configuration_),
                            .stop = options_.stop});
  } catch (const sys::EventLoopError& error) {
    return std::unexpected(Error{error.what()});
  }
  if (Result<void> begun = begin(); !begun) return std::unexpected(std::move(begun.error()));
  const run::Ending ending = yard_->run();
  yard_.reset();
  if (Result<void> finished = finish(ending); !finished) {
    return std::unexpected(std::move(finished.error()));
  }
  return summary_;
}

/// All that is to be known before the keeper is forked, which must find no database open.
Result<void> GroupRun::prepare(const std::vector<Task*>& tasks) {
  if (configuration_.flag(settings::Setting::SchedulerAutoAdjust)) {
    Result<job::Learned> learned = job::load_learned(options_.learned_path);
    if (learned) learned_ = std::move(*learned);
    std::set<std::int64_t> classes;
    for (const Task& task : group_.tasks()) classes.insert(class_fingerprint(task));
    learned_.set_commands(group_.name(), std::move(classes));
    if (!learned) ears_.note(learned.error().message);
  }
  Result<std::vector<Part>> parts = where_.parts_of(group_, tasks);
  if (!parts) return std::unexpected(std::move(parts.error()));
  parts_ = std::move(*parts);
  job::LearnedFor here{.host = sys::host_name()};
  for (const model::Gpu& gpu : capacity_.gpus) here.gpus.push_back(gpu.name);
  job::LearnedNotes notes(here, "class");
  const GroupBasis basis{.configuration = configuration_,
                         .capacity = capacity_,
                         .learned = learned_,
                         .here = here,
                         .notes = &notes};
  for (const Part& part : parts_) {
    Result<model::Plan> plan = plan_of(group_, part.number, part.tasks, basis);
    if (!plan) return std::unexpected(std::move(plan.error()));
    model::append(plan_, *plan);
    plans_.push_back(std::make_shared<const model::Plan>(std::move(*plan)));
    tasks_.insert(tasks_.end(), part.tasks.begin(), part.tasks.end());
  }
  for (const std::string& note : notes.notes()) ears_.note(note);
  return {};
}

void GroupRun::open_promises() {
  Result<std::optional<process::PromiseBoard>> board = run::open_promises();
  if (!board) return ears_.note(board.error().message);
  std::optional<process::PromiseBoard>& opened = *board;
  if (opened) promises_.emplace(*std::move(opened));
}

Result<process::Keeper> GroupRun::fork_keeper() const {
  // Buffered output would be written again by every task.
  std::fflush(nullptr);
  Result<process::Keeper> keeper = process::Keeper::fork(
      {.body = [this](model::AttemptKey key,
                      const model::Launch& its) { return TaskProcess::run(task(key.task), its); },
       .beside_threads = options_.beside_threads,
       .kills_when_yard_dies = true,
       .held = promises_ ? promises_->descriptor() : -1});
  if (keeper) return keeper;
  return std::unexpected(
      Error{keeper.error().message +
            "; the cure: run the yard before they start, set OMP_NUM_THREADS=1 for pools of "
            "OpenMP, or say {.fork = Fork::AnyThreads} when they are idle and survive a fork"});
}

std::vector<journal::Batch> GroupRun::batches() const {
  std::vector<journal::Batch> batches;
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    const Part& part = parts_[i];
    const auto its = [&part](model::TaskIndex index) -> Task& { return *part.tasks[index.value]; };
    batches.push_back(
        {.number = part.batch,
         .plan = plans_[i],
         .names = {.task_id = [its](model::TaskIndex index) { return its(index).id(); },
                   .fingerprint =
                       [this, its](model::TaskIndex index) {
                         return fingerprint_of(its(index), group_);
                       }},
         .source = {.command_line = kCommandLine}});
  }
  return batches;
}

Result<void> GroupRun::begin() {
  if (Result<void> listens = yard_->listen(); !listens) return listens;
  journal::Execution execution = yard_->execution();
  execution.command_line = kCommandLine;
  execution.version = kVersion;
  execution.configuration = settings::show(configuration_);
  run::YardRun::Resumed resumed;
  if (!where_.has_begun()) {
    Result<void> begun = yard_->begin(where_.name(), batches().front(), execution);
    if (!begun) return begun;
  } else {
    Result<run::YardRun::Resumed> gone_on =
        yard_->go_on(batches(), execution,
                     {.edited = journal::Edited::RunAgain, .others = journal::OtherBatches::Stay});
    if (!gone_on) return std::unexpected(std::move(gone_on.error()));
    resumed = std::move(*gone_on);
  }
  where_.took(group_, parts_);
  for (Task* const each : tasks_) {
    TaskState& state = TaskAccess::state(*each);
    state = {.options = std::move(state.options), .run_by = options_.yard};
  }
  return keep(resumed.plans);
}

/// Tasks that an earlier execution of the program has finished are as that one has left them.
Result<void> GroupRun::keep(const std::vector<std::shared_ptr<const model::Plan>>& plans) {
  int changed = 0;
  for (std::size_t i = 0; i < plans.size(); ++i) {
    const Result<ProgramRun::Rows> rows = where_.rows_of(parts_[i].batch);
    if (!rows) return std::unexpected(rows.error());
    for (std::size_t k = 0; k < parts_[i].tasks.size(); ++k) {
      Task& kept = *parts_[i].tasks[k];
      if (!plans[i]->tasks[k].finished_before()) {
        if (parts_[i].finished_before.contains(kept.id())) ++changed;
        continue;
      }
      const journal::TaskRow& row = rows->at(kept.id());
      TaskState& state = TaskAccess::state(kept);
      state.status = row.standing.status;
      state.outcome = TaskOutcome::Finished;
      state.kept = true;
      state.task_dir = fmt::format("{}/{}", where_.directory(), row.directory);
      state.times = row.times;
      state.result = row.result;
      ++summary_.finished;
      ++summary_.kept;
      ears_.status(kept);
    }
  }
  if (summary_.kept + changed == 0) return {};
  ears_.note(fmt::format(
      "group '{}': keeps the results of {} of {} tasks{}", group_.name(), summary_.kept,
      tasks_.size(),
      changed == 0 ? std::string() : fmt::format(", reruns {} with another fingerprint", changed)));
  return {};
}

Result<void> GroupRun::finish(const run::Ending& ending) {
  for (const std::optional<Error>& error : {ending.gave_up, ending.not_closed}) {
    if (error) return std::unexpected(*error);
  }
  if (ending.keeper_gone) {
    ears_.note("the process that starts tasks is gone: unfinished tasks have ended");
  }
  if (!ending.cannot_start.empty()) {
    ears_.note(ending.cannot_start + ": unfinished tasks have ended");
  }
  if (configuration_.flag(settings::Setting::SchedulerAutoAdjust)) {
    std::set<std::uint32_t> batches;
    for (const Part& part : parts_) batches.insert(part.batch);
    const Duration trained_least =
        configuration_.period(settings::kTrainedLeast, job::kTrainedLeast);
    const auto class_of = [this](std::uint32_t batch, model::TaskIndex task) {
      const auto part = std::ranges::find(parts_, batch, &Part::batch);
      check(part != parts_.end(), "only tasks of these batches are learned from");
      return class_fingerprint(*part->tasks.at(task.value));
    };
    const Result<void> kept = job::keep_learned(where_.directory(), batches, options_.learned_path,
                                                trained_least, class_of);
    if (!kept) ears_.note("cannot save the learned estimates: " + kept.error().message);
  }
  if (const Result<void> reported = where_.report(); !reported)
    ears_.note(reported.error().message);
  return {};
}

bool GroupRun::cancel(const Task& task) {
  const auto found = std::ranges::find(tasks_, &task);
  if (!yard_ || found == tasks_.end() || task.outcome() != TaskOutcome::None) return false;
  const model::TaskIndex index{static_cast<std::uint32_t>(found - tasks_.begin())};
  return yard_->kill(index, [](bool) {});
}

const std::string& GroupRun::part_of(model::TaskIndex index) const {
  return plan_.groups[plan_.shape_of(index).group.value].shown();
}

std::string GroupRun::directory_of(model::TaskIndex index) const {
  const model::PlannedGroup& group = plan_.groups[plan_.shape_of(index).group.value];
  return fmt::format("{}/{}", where_.directory(),
                     run::task_directory(group.directory, task(index).id()));
}

model::Launch GroupRun::launch(model::AttemptKey key, const model::Grant& grant) {
  return launch_of({.task = task(key.task),
                    .group = group_,
                    .run_directory = where_.directory(),
                    .task_directory = directory_of(key.task),
                    .shape = plan_.shape_of(key.task),
                    .capacity = capacity_,
                    .gpus_answer = grant.gpus_answer},
                   key.attempt);
}

std::optional<model::TaskIndex> GroupRun::find(std::string_view group, std::string_view id) {
  for (std::uint32_t i = 0; i < tasks_.size(); ++i) {
    if (tasks_[i]->id() == id && part_of({i}) == group) return model::TaskIndex{i};
  }
  return std::nullopt;
}

void GroupRun::hear(model::AttemptKey key, const wire::Message& message) {
  ears_.message(task(key.task), message);
}

Result<run::Tasks::Accepted> GroupRun::accept(const wire::Submit& /*submission*/,
                                              std::uint32_t /*number*/) {
  return std::unexpected(Error{"it is the run of a program, and takes no job file"});
}

void GroupRun::see(const model::Turn& turn) {
  for (std::size_t i = 0; i < turn.events.size(); ++i) {
    see(turn.events[i]);
    for (const model::Change& change : turn.decisions[i].changes) {
      const auto* const changed = std::get_if<model::TaskChanged>(&change);
      if (changed != nullptr) see(model::moment_of(turn.events[i], changed->key), *changed);
    }
  }
}

void GroupRun::see(const model::Event& event) {
  if (const auto* const said = std::get_if<model::StageReported>(&event.what)) {
    if (!said->traceback.empty())
      TaskAccess::state(task(said->key.task)).traceback = said->traceback;
  } else if (const auto* const far = std::get_if<model::Progressed>(&event.what)) {
    ears_.progress(task(far->key.task), *far);
  } else if (const auto* const ended = std::get_if<model::AttemptEnded>(&event.what)) {
    Task& its = task(ended->key.task);
    TaskState& state = TaskAccess::state(its);
    state.result = ended->result;
    state.times.end_by(model::moment_of(event, ended->key));
    if (ended->warning.empty()) return;
    ears_.note(fmt::format("task '{}': {}", its.id(), ended->warning));
  }
}

void GroupRun::see(Instant at, const model::TaskChanged& change) {
  Task& changed = task(change.key.task);
  TaskState& state = TaskAccess::state(changed);
  state.status = change.status;
  state.outcome = outcome_of(change.verdict, change.failure);
  state.exit_code = change.exit_code;
  state.times.enter(change.status, at);
  state.task_dir = directory_of(change.key.task);
  state.message = change.message;
  const bool failed = change.verdict == model::Verdict::Failed;
  state.failed_in = failed ? std::optional(change.stage) : std::nullopt;
  if (change.verdict == model::Verdict::Finished) state.traceback.clear();
  switch (change.verdict) {
    case model::Verdict::Finished:
      ++summary_.finished;
      break;
    case model::Verdict::Failed:
      ++summary_.failed;
      break;
    case model::Verdict::Skipped:
    case model::Verdict::NotSelected:
    case model::Verdict::NotNeeded:
      ++summary_.skipped;
      break;
    case model::Verdict::Stopped:
      ++summary_.stopped;
      break;
    case model::Verdict::None:
      break;
  }
  ears_.status(changed);
}

}  // namespace trainyard::library
