#include "trainyard/yard.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <expected>
#include <filesystem>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/path_name.h"
#include "base/result.h"
#include "hardware/this_machine.h"
#include "job/learned.h"
#include "library/group_plan.h"
#include "library/group_run.h"
#include "library/program_run.h"
#include "library/settings.h"
#include "library/task_state.h"
#include "model/event.h"
#include "model/plan.h"
#include "pipeline/trouble.h"
#include "run/run_directory.h"
#include "settings/configuration.h"
#include "sys/environment.h"
#include "sys/files.h"
#include "sys/terminal.h"
#include "sys/this_process.h"
#include "text/file_name.h"
#include "wire/task.h"

namespace trainyard {
namespace {

/// With the links on its way followed, as the processes of a run know it by one name.
Result<std::string> directory_of(const YardOptions& options,
                                 const settings::Configuration& configuration) {
  Result<std::string> here = sys::current_directory();
  if (!here) return here;
  if (!options.directory.empty()) {
    return run::real_directory(absolute_path(options.directory, *here));
  }
  if (const std::optional<std::string> why = text::why_no_run_name(options.name)) {
    return std::unexpected(Error{fmt::format("the name of the yard '{}' {}", options.name, *why)});
  }
  const std::string& workdir = configuration.text(settings::Setting::Workdir);
  const std::string base = workdir == "auto" ? *here : absolute_path(workdir, *here);
  return run::real_directory(
      run::free_run_directory(fmt::format("{}/runs/{}", base, options.name)));
}

Error id_is_taken(const std::string& id, const std::string& group, bool by_group) {
  return Error{fmt::format("the id '{}' is also in group '{}', and {} is false", id, group,
                           by_group ? "task.allow-duplicate-id" : "task.directory-grouping")};
}

/// Another one for each yard of the program, by which tasks know who has run them: a yard may lie
/// where another one lay before.
std::uint64_t next_yard() {
  static std::atomic<std::uint64_t> last = 0;
  return ++last;
}

/// Those that this yard has not run yet.
std::vector<Task*> waiting_in(const std::vector<Task*>& tasks, std::uint64_t yard) {
  std::vector<Task*> waiting;
  std::ranges::copy_if(tasks, std::back_inserter(waiting),
                       [yard](Task* task) { return TaskAccess::state(*task).run_by != yard; });
  return waiting;
}

}  // namespace

struct Yard::State {
  State(Config its_config, YardOptions its_options)
      : config(std::move(its_config)), options(std::move(its_options)) {}

  void note(std::string_view text) const {
    try {
      if (options.note) return options.note(text);
    } catch (...) {
      sys::write_standard_error("trainyard: the program threw an exception in its note():\n");
    }
    sys::write_standard_error(fmt::format("trainyard: {}\n", text));
  }
  Result<void> take_directory(const settings::Configuration& configuration);
  [[nodiscard]] Result<std::string> name_of(const TaskGroup& group, int nth) const;
  [[nodiscard]] Result<void> check_ids(const std::string& group, const std::vector<Task*>& tasks,
                                       std::map<std::string, std::string>& taken,
                                       const settings::Configuration& configuration) const;
  Result<RunSummary> run(const TaskGroup& group, const std::vector<Task*>& tasks,
                         const settings::Configuration& configuration);
  [[nodiscard]] library::GroupEars ears();
  void hear(const std::string& source, const wire::Message& sent);
  /// Calls what the program has handed over, and notes what it throws.
  template <class Call>
  void guarded(std::string_view what, Call call) const;

  const std::uint64_t number = next_yard();
  Config config;
  YardOptions options;
  std::unique_ptr<library::ProgramRun> where;  ///< From the first run() on,
  std::int64_t taken_by = 0;                   ///< which this process called.
  std::vector<TaskGroup*> groups;
  RunSummary untold;                       ///< Of groups that ran before one of them was refused.
  std::set<std::string> names;             ///< Of the groups that have run.
  std::map<std::string, std::string> ids;  ///< Of all their tasks, with their group.
  std::map<std::string, Handler> handlers;
  Handler any;
  library::GroupRun* running = nullptr;
  int groups_named = 0;
};

Result<void> Yard::State::take_directory(const settings::Configuration& configuration) {
  if (where && taken_by != sys::own_pid()) {
    return std::unexpected(Error{fmt::format(
        "the run in '{}' is that of process {}, from which this one was forked: here it needs "
        "another Yard, with another directory",
        where->directory(), taken_by)});
  }
  if (where) return {};
  const Result<std::string> directory = directory_of(options, configuration);
  if (!directory) return std::unexpected(directory.error());
  Result<library::ProgramRun> taken = library::ProgramRun::open(*directory, options.name);
  if (!taken) return std::unexpected(std::move(taken.error()));
  where = std::make_unique<library::ProgramRun>(std::move(*taken));
  taken_by = sys::own_pid();
  return {};
}

/// The name of the group with number `nth` in the yard.
Result<std::string> Yard::State::name_of(const TaskGroup& group, int nth) const {
  std::string name = group.name().empty() ? fmt::format("group-{}", nth) : group.name();
  std::optional<std::string> why = text::why_unsafe(name);
  if (!why && run::taken_in_run_directory(name)) why = "is one that trainyard uses";
  if (why) {
    return std::unexpected(Error{fmt::format("the name of the group '{}' {}", name, *why)});
  }
  if (group.run_by_ != this->number && names.contains(name)) {
    return std::unexpected(Error{fmt::format("a group '{}' has run in this yard already", name)});
  }
  return name;
}

/// Within a group ids differ anyway.
Result<void> Yard::State::check_ids(const std::string& group, const std::vector<Task*>& tasks,
                                    std::map<std::string, std::string>& taken,
                                    const settings::Configuration& configuration) const {
  const bool by_group = configuration.flag(settings::Setting::TaskDirectoryGrouping);
  if (by_group && configuration.flag(settings::Setting::TaskAllowDuplicateId)) return {};
  for (const Task* const task : tasks) {
    const auto [other, fresh] = taken.try_emplace(task->id(), group);
    if (fresh || other->second == group) continue;
    return std::unexpected(id_is_taken(task->id(), other->second, by_group));
  }
  return {};
}

library::GroupEars Yard::State::ears() {
  return {.note = [this](std::string_view text) { note(text); },
          .message = [this](const Task& task,
                            const wire::Message& message) { hear(task.id(), message); },
          .status =
              [this](const Task& task) {
                if (!options.on_status) return;
                guarded("on_status", [&] { options.on_status(task); });
              },
          .progress =
              [this](const Task& task, const model::Progressed& said) {
                if (!options.on_progress) return;
                Json values = Json::parse(said.values, nullptr, /*allow_exceptions=*/false);
                if (!values.is_object()) values = Json::object();
                guarded("on_progress", [&] { options.on_progress(task, said.fraction, values); });
              }};
}

Result<RunSummary> Yard::State::run(const TaskGroup& group, const std::vector<Task*>& tasks,
                                    const settings::Configuration& configuration) {
  if (options.stop.stop_requested()) return std::unexpected(Error{"the yard was asked to stop"});
  std::map<std::string, std::string> taken = ids;
  if (Result<void> fine = check_ids(group.name(), tasks, taken, configuration); !fine) {
    return std::unexpected(std::move(fine.error()));
  }
  const std::filesystem::path above = std::filesystem::path(where->directory()).parent_path();
  const library::GroupRunOptions its{
      .learned_path = job::learned_path((above / options.name).string()),
      .beside_threads = options.fork == Fork::AnyThreads,
      .stop = options.stop,
      .yard = number};
  const library::GroupEars heard = ears();
  library::GroupRun run(*where, group, configuration, its, heard);
  running = &run;
  Result<RunSummary> done = run.run(tasks);
  running = nullptr;
  if (!done) return done;
  for (const Task* const task : tasks) ids.try_emplace(task->id(), group.name());
  return done;
}

template <class Call>
void Yard::State::guarded(std::string_view what, Call call) const {
  try {
    call();
  } catch (...) {
    note(fmt::format("{}: {}", what, pipeline::full_text_of(std::current_exception())));
  }
}

void Yard::State::hear(const std::string& source, const wire::Message& sent) {
  const Json json = Json::parse(sent.data, nullptr, /*allow_exceptions=*/false);
  const Message message{
      .source = source, .command = sent.command, .data = json, .buffer = sent.buffer};
  // A copy: a handler may register another one in its own place.
  const auto found = handlers.find(source);
  const Handler handler = found != handlers.end() ? found->second : any;
  if (!handler) {
    return note(fmt::format("task '{}' sends '{}', which nothing receives", source, sent.command));
  }
  guarded(fmt::format("the handler of what '{}' sends", source), [&] { handler(message); });
}

Yard::Yard(Config config, YardOptions options)
    : state_(std::make_unique<State>(std::move(config), std::move(options))) {}

Yard::~Yard() = default;

void Yard::add(TaskGroup& group) { state_->groups.push_back(&group); }

Result<void> Yard::check() {
  const sys::OwnEnvironment own;
  const Result<settings::Configuration> configuration = library::settings_of(state_->config);
  if (!configuration) return std::unexpected(configuration.error());
  const hardware::ThisMachine machine = hardware::find_this_machine();
  const job::Learned nothing;
  const library::GroupBasis basis{
      .configuration = *configuration, .capacity = machine.reading.capacity, .learned = nothing};
  std::map<std::string, const TaskGroup*> names;
  std::map<std::string, std::string> ids = state_->ids;
  int number = state_->groups_named;
  for (TaskGroup* const group : state_->groups) {
    const Result<std::string> name = state_->name_of(*group, ++number);
    if (!name) return std::unexpected(name.error());
    const auto [other, fresh] = names.try_emplace(*name, group);
    if (!fresh && other->second != group) {
      return std::unexpected(Error{fmt::format("duplicate group '{}'", *name)});
    }
    const std::vector<Task*> tasks = tasks_of(*group);
    Result<void> fine = library::check_ids(tasks);
    if (fine) {
      const Result<model::Plan> plan = library::plan_of(*group, 1, tasks, basis);
      if (!plan) fine = std::unexpected(plan.error());
    }
    if (fine) fine = state_->check_ids(*name, tasks, ids, *configuration);
    if (!fine) return std::unexpected(std::move(fine.error()).in("group '" + *name + "'"));
  }
  return {};
}

Result<RunSummary> Yard::run() {
  if (Result<void> fine = check(); !fine) return std::unexpected(std::move(fine.error()));
  RunSummary& all = state_->untold;
  while (!state_->groups.empty()) {
    const Result<RunSummary> done = run(*state_->groups.front());
    if (!done) return done;
    state_->groups.erase(state_->groups.begin());
    all.finished += done->finished;
    all.failed += done->failed;
    all.skipped += done->skipped;
    all.stopped += done->stopped;
    all.kept += done->kept;
    // The remaining groups stay added, and the results so far are returned.
    if (state_->options.stop.stop_requested()) break;
  }
  return std::exchange(all, {});
}

std::vector<Task*> Yard::tasks_of(const TaskGroup& group) {
  std::vector<Task*> tasks;
  tasks.reserve(group.tasks_.size());
  for (const auto& task : group.tasks_) tasks.push_back(task.get());
  return tasks;
}

Result<RunSummary> Yard::run(TaskGroup& group) { return run(group, tasks_of(group)); }

Result<RunSummary> Yard::run(Task& task) {
  std::string name = "default";
  for (int n = 2; state_->names.contains(name); ++n) name = fmt::format("default-{}", n);
  TaskGroup group(std::move(name));
  return run(group, {&task});
}

Result<RunSummary> Yard::run(TaskGroup& group, const std::vector<Task*>& tasks) {
  if (state_->running != nullptr) {
    return std::unexpected(Error{"run() was called from a callback while tasks run"});
  }
  const sys::FileSizeLimitGuard files;
  const sys::OwnEnvironment own;
  const Result<settings::Configuration> configuration = library::settings_of(state_->config);
  if (!configuration) return std::unexpected(configuration.error());
  if (Result<void> placed = state_->take_directory(*configuration); !placed) {
    return std::unexpected(std::move(placed.error()));
  }
  Result<std::string> name = state_->name_of(group, state_->groups_named + 1);
  if (!name) return std::unexpected(std::move(name.error()));
  group.name_ = std::move(*name);
  // Ids differ within all of a group, however often it is run.
  const auto wrong = [&group](Error error) {
    return std::unexpected(std::move(error).in("group '" + group.name() + "'"));
  };
  if (Result<void> fine = library::check_ids(tasks); !fine) return wrong(std::move(fine.error()));
  const std::vector<Task*> waiting = waiting_in(tasks, state_->number);
  if (waiting.empty()) return RunSummary{};
  Result<RunSummary> done = state_->run(group, waiting, *configuration);
  // One that was refused may be run again.
  if (!done) return wrong(std::move(done.error()));
  group.run_by_ = state_->number;
  if (state_->names.insert(group.name()).second) ++state_->groups_named;
  return done;
}

bool Yard::cancel(const Task& task) {
  return state_->running != nullptr && state_->running->cancel(task);
}

bool Yard::on_message(std::string source, Handler handler, bool overwrite) {
  const auto found = state_->handlers.find(source);
  if (found != state_->handlers.end() && !overwrite) {
    state_->note(fmt::format("what '{}' sends has a handler, which stays", source));
    return false;
  }
  state_->handlers.insert_or_assign(std::move(source), std::move(handler));
  return true;
}

void Yard::on_any_message(Handler handler) {
  if (!handler) return state_->note("the handler for other messages is empty");
  state_->any = std::move(handler);
}

const std::string& Yard::directory() const {
  static const std::string nowhere;
  return state_->where ? state_->where->directory() : nowhere;
}

}  // namespace trainyard
