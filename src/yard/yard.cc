#include "trainyard/yard.h"

#include <exception>
#include <expected>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/result.h"
#include "config/configuration.h"
#include "config/file_name.h"
#include "io/files.h"
#include "io/terminal.h"
#include "pipeline/trouble.h"
#include "report/overview.h"
#include "report/write_reports.h"
#include "run/run_directory.h"
#include "trainyard/config.h"
#include "trainyard/task.h"
#include "trainyard/task_group.h"
#include "wire/task.h"
#include "yard/group_run.h"
#include "yard/settings.h"

namespace trainyard {
namespace {

/// The first of runs/<name>, runs/<name>-2, ... that is free.
Result<std::string> fresh_directory(const std::string& name) {
  if (const std::optional<std::string> why = why_unsafe(name)) {
    return std::unexpected(Error{fmt::format("the name of the yard '{}' {}", name, *why)});
  }
  Result<std::string> here = io::current_directory();
  if (!here) return here;
  return free_run_directory(fmt::format("{}/runs/{}", *here, name));
}

}  // namespace

struct Yard::State {
  State(Config its_config, YardOptions its_options)
      : config(std::move(its_config)), options(std::move(its_options)) {}

  void note(std::string_view text) const {
    if (options.note) return options.note(text);
    io::write_text(io::kStandardError, fmt::format("trainyard: {}\n", text));
  }
  Result<void> take_place();
  Result<std::string> name_group(const TaskGroup& group);
  [[nodiscard]] Result<void> check_ids(const std::string& group, const std::vector<Task*>& tasks,
                                       const Configuration& configuration) const;
  Result<RunSummary> run(const TaskGroup& group, const std::vector<Task*>& tasks,
                         const Configuration& configuration);
  void show(const report::Overview& group);
  void hear(const std::string& source, const wire::Message& sent);
  void hand_to(const Handler& handler, const Message& message) const;

  Config config;
  YardOptions options;
  std::string directory;
  std::vector<TaskGroup*> groups;
  int groups_named = 0;
  std::set<std::string> names;             ///< Of the groups that have run.
  std::map<std::string, std::string> ids;  ///< Of all their tasks, with their group.
  report::Overview overview;               ///< Of all that have run.
  std::map<std::string, Handler> handlers;
  Handler any;
};

Result<void> Yard::State::take_place() {
  if (!directory.empty()) return {};
  if (!options.directory.empty()) {
    Result<std::string> here = io::current_directory();
    if (!here) return std::unexpected(std::move(here.error()));
    directory = io::absolute_path(options.directory, *here);
    return {};
  }
  Result<std::string> fresh = fresh_directory(options.name);
  if (!fresh) return std::unexpected(std::move(fresh.error()));
  directory = std::move(*fresh);
  return {};
}

Result<std::string> Yard::State::name_group(const TaskGroup& group) {
  ++groups_named;
  std::string name = group.name().empty() ? fmt::format("group-{}", groups_named) : group.name();
  if (const std::optional<std::string> why = why_unsafe(name)) {
    return std::unexpected(Error{fmt::format("the name of the group '{}' {}", name, *why)});
  }
  if (!names.insert(name).second) {
    return std::unexpected(Error{fmt::format("a group '{}' has run in this yard already", name)});
  }
  return name;
}

/// Adds a group to the page of all of them.
void Yard::State::show(const report::Overview& group) {
  overview.head = group.head;
  for (report::OverviewRow row : group.rows) {
    row.link = fmt::format("{}/reports/{}", row.group.name, row.link);
    overview.rows.push_back(std::move(row));
  }
  const Result<void> written = report::write_overview_page(overview, directory + "/index.html");
  if (!written) note(written.error().message);
}

Result<void> Yard::State::check_ids(const std::string& group, const std::vector<Task*>& tasks,
                                    const Configuration& configuration) const {
  if (configuration.flag(Setting::TaskAllowDuplicateId)) return {};
  for (const Task* const task : tasks) {
    const auto other = ids.find(task->id());
    if (other == ids.end() || other->second == group) continue;
    return std::unexpected(
        Error{fmt::format("the id '{}' is also in group '{}', and task.allow-duplicate-id is false",
                          task->id(), other->second)});
  }
  return {};
}

Result<RunSummary> Yard::State::run(const TaskGroup& group, const std::vector<Task*>& tasks,
                                    const Configuration& configuration) {
  if (Result<void> fine = check_ids(group.name(), tasks, configuration); !fine) {
    return std::unexpected(std::move(fine.error()));
  }
  Result<RunSummary> done =
      run_group(group, tasks, configuration,
                {.name = options.name,
                 .directory = fmt::format("{}/{}", directory, group.name()),
                 .beside_threads = options.fork == Fork::AnyThreads,
                 .note = [this](std::string_view text) { note(text); },
                 .on_report = [this](const report::Overview& written) { show(written); },
                 .on_message = [this](const std::string& source,
                                      const wire::Message& message) { hear(source, message); }});
  if (!done) return done;
  for (const Task* const task : tasks) ids.try_emplace(task->id(), group.name());
  return done;
}

void Yard::State::hand_to(const Handler& handler, const Message& message) const {
  try {
    handler(message);
  } catch (...) {
    note(fmt::format("the handler of what '{}' sends: {}", message.source,
                     trouble_of(std::current_exception()).message));
  }
}

void Yard::State::hear(const std::string& source, const wire::Message& sent) {
  const Json json = Json::parse(sent.data, nullptr, /*allow_exceptions=*/false);
  const Message message{
      .source = source, .command = sent.command, .data = json, .buffer = sent.buffer};
  // A copy: a handler may register another one in its own place.
  const auto found = handlers.find(source);
  const Handler handler = found != handlers.end() ? found->second : any;
  if (handler) return hand_to(handler, message);
  note(fmt::format("task '{}' sends '{}', and nobody listens", source, sent.command));
}

Yard::Yard(Config config, YardOptions options)
    : state_(std::make_unique<State>(std::move(config), std::move(options))) {}

Yard::~Yard() = default;

void Yard::add(TaskGroup& group) { state_->groups.push_back(&group); }

Result<RunSummary> Yard::run() {
  RunSummary all;
  for (TaskGroup* const group : std::exchange(state_->groups, {})) {
    const Result<RunSummary> done = run(*group);
    if (!done) return done;
    all.finished += done->finished;
    all.failed += done->failed;
    all.skipped += done->skipped;
    all.stopped += done->stopped;
  }
  return all;
}

Result<RunSummary> Yard::run(TaskGroup& group) {
  std::vector<Task*> tasks;
  tasks.reserve(group.tasks_.size());
  for (const auto& task : group.tasks_) tasks.push_back(task.get());
  return run(group, tasks);
}

Result<RunSummary> Yard::run(Task& task) {
  std::string name = "default";
  for (int n = 2; state_->names.contains(name); ++n) name = fmt::format("default-{}", n);
  TaskGroup group(std::move(name));
  return run(group, {&task});
}

Result<RunSummary> Yard::run(TaskGroup& group, const std::vector<Task*>& tasks) {
  const Result<Configuration> configuration = settings_of(state_->config);
  if (!configuration) return std::unexpected(configuration.error());
  if (Result<void> placed = state_->take_place(); !placed) {
    return std::unexpected(std::move(placed.error()));
  }
  Result<std::string> name = state_->name_group(group);
  if (!name) return std::unexpected(std::move(name.error()));
  group.name_ = std::move(*name);
  if (tasks.empty()) return RunSummary{};
  Result<RunSummary> done = state_->run(group, tasks, *configuration);
  if (!done) return std::unexpected(std::move(done.error()).in("group '" + group.name() + "'"));
  return done;
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
  if (!handler) return state_->note("no handler was given for what nobody else hears");
  state_->any = std::move(handler);
}

const std::string& Yard::directory() const { return state_->directory; }

}  // namespace trainyard
