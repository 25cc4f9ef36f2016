#include "config/job.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <filesystem>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/check.h"
#include "base/result.h"
#include "config/configuration.h"
#include "config/configuration_reader.h"
#include "config/file_name.h"
#include "config/job_binding.h"
#include "config/job_plan.h"
#include "config/job_reader.h"
#include "config/job_spec.h"
#include "config/job_state.h"
#include "config/learned.h"
#include "config/mistake.h"
#include "config/text_file.h"
#include "config/yaml_reader.h"
#include "model/ids.h"
#include "model/plan.h"
#include "model/resources.h"

namespace trainyard {
namespace {

/// The name of a job that says none: its file's, without the ending.
std::string name_of_file(const std::string& path) {
  const std::string stem = std::filesystem::path(path).stem().string();
  return why_unsafe(stem) ? "job" : stem;
}

Configuration layered(const LoadOptions& options, const YamlDocument& document,
                      const std::string& directory, MistakeList& mistakes) {
  const ConfigurationSources sources{.config_file = options.config_file,
                                     .settings = options.settings,
                                     .current_directory = options.current_directory};
  Configuration configuration;
  apply_config_file(configuration, sources, mistakes);
  if (document.root() != nullptr && document.root()->kind == YamlKind::Mapping) {
    if (const YamlNode* config = document.root()->find("config")) {
      apply_mapping(configuration, document, *config, directory, mistakes);
    }
  }
  apply_settings(configuration, sources, mistakes);
  return configuration;
}

std::string wanted_run_directory(const LoadOptions& options, const JobSpec& spec,
                                 const Configuration& configuration, const std::string& directory) {
  if (!options.run_directory.empty()) {
    return absolute_path(options.current_directory, options.run_directory);
  }
  const std::string& workdir = configuration.text(Setting::Workdir);
  const std::string base = workdir == "auto" ? directory : workdir;
  return absolute_path(base, spec.run_directory.empty() ? "runs/" + spec.name : spec.run_directory);
}

/// With the links on its way followed: a run is the same by whichever name it is called, and what
/// a dead run left is found by the one name that stands in its environment.
std::string run_directory(const LoadOptions& options, const JobSpec& spec,
                          const Configuration& configuration, const std::string& directory) {
  std::string wanted = wanted_run_directory(options, spec, configuration, directory);
  std::error_code error;
  const std::filesystem::path real = std::filesystem::weakly_canonical(wanted, error);
  return error ? wanted : real.string();
}

/// What earlier runs have taught; nothing where there were none, or where it cannot be read.
Learned read_learned(const std::string& job_file, std::vector<std::string>& notes) {
  const std::string path = learned_path(job_file);
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return {};
  const Result<std::string> text = read_text_file(path);
  Result<Learned> learned = text ? Learned::parse(*text) : std::unexpected(text.error());
  if (learned) return std::move(*learned);
  notes.push_back(fmt::format("'{}' is not used: {}", path, learned.error().message));
  return {};
}

/// Of the names that the yard was started with, those that decide what is set for a task.
std::vector<std::string> names_that_matter(const std::vector<std::string>& names) {
  constexpr std::array<std::string_view, 6> kSetForTasks{
      "OMP_NUM_THREADS",  "OPENBLAS_NUM_THREADS",      "MKL_NUM_THREADS",
      "PYTHONUNBUFFERED", "TF_FORCE_GPU_ALLOW_GROWTH", "XLA_PYTHON_CLIENT_PREALLOCATE"};
  std::vector<std::string> matter;
  for (const std::string_view name : kSetForTasks) {
    if (std::ranges::find(names, name) != names.end()) matter.emplace_back(name);
  }
  return matter;
}

}  // namespace

Job::Job(std::unique_ptr<State> state) : state_(std::move(state)) {}
Job::Job(Job&&) noexcept = default;
Job& Job::operator=(Job&&) noexcept = default;
Job::~Job() = default;

std::expected<Job, Mistakes> Job::load(const LoadOptions& options, const Capacity& capacity) {
  const std::string path = absolute_path(options.current_directory, options.job_file);
  const Result<std::string> text = read_text_file(path);
  if (text) return parse(*text, options, capacity);
  return std::unexpected(Mistakes{{.file = options.job_file, .message = text.error().message}});
}

std::expected<Job, Mistakes> Job::parse(std::string_view text, const LoadOptions& options,
                                        const Capacity& capacity) {
  MistakeList mistakes;
  const std::string path = absolute_path(options.current_directory, options.job_file);
  const std::string directory = std::filesystem::path(path).parent_path().string();
  const YamlDocument document(text, options.job_file);
  mistakes.add(document.mistakes());

  auto state = std::make_unique<State>();
  state->capacity = capacity;
  state->configuration = layered(options, document, directory, mistakes);
  state->spec = read_job(document, directory, mistakes);
  Learned learned;
  if (state->configuration.flag(Setting::SchedulerAutoAdjust)) {
    learned = read_learned(path, state->notes);
  }
  PlannedJob planned = plan_job(
      state->spec,
      {.configuration = state->configuration, .capacity = state->capacity, .learned = learned},
      document, mistakes);
  if (!mistakes.empty()) return std::unexpected(std::move(mistakes).take());

  if (state->spec.name.empty()) state->spec.name = name_of_file(path);
  state->text = text;
  state->name = state->spec.name;
  state->places = {
      .file = path,
      .directory = directory,
      .run_directory = run_directory(options, state->spec, state->configuration, directory)};
  state->environment_names = names_that_matter(options.environment_names);
  state->plan = std::move(planned.plan);
  std::ranges::move(planned.notes, std::back_inserter(state->notes));
  state->group_starts = std::move(planned.group_starts);
  return Job(std::move(state));
}

Result<JobRuns> Job::runs_of(const LoadOptions& options) {
  const std::string path = absolute_path(options.current_directory, options.job_file);
  const Result<std::string> text = read_text_file(path);
  if (!text) return std::unexpected(Error(text.error()).in(options.job_file));
  const std::string directory = std::filesystem::path(path).parent_path().string();
  const YamlDocument document(*text, options.job_file);
  if (document.root() == nullptr) {
    return std::unexpected(Error{fmt::format("{}: is no job file", options.job_file)});
  }
  MistakeList whatever;
  const Configuration configuration = layered(options, document, directory, whatever);
  JobSpec spec = read_job(document, directory, whatever);
  if (spec.name.empty()) spec.name = name_of_file(path);
  std::string first = run_directory(options, spec, configuration, directory);
  return JobRuns{.job_name = std::move(spec.name), .job_file = path, .first = std::move(first)};
}

const std::string& Job::name() const { return state_->name; }
const std::string& Job::text() const { return state_->text; }
const JobPlaces& Job::places() const { return state_->places; }
const Configuration& Job::configuration() const { return state_->configuration; }
const Capacity& Job::capacity() const { return state_->capacity; }
const std::vector<std::string>& Job::notes() const { return state_->notes; }
const Plan& Job::plan() const { return state_->plan; }

Limits Job::limits() const { return trainyard::limits(state_->configuration, state_->capacity); }

GroupIndex Job::group_of(TaskIndex task) const {
  check(task.value < state_->plan.tasks.size(), "a task of this job");
  return state_->plan.shape_of(task).group;
}

Job::State::Bound Job::State::bind(TaskIndex index) const {
  check(index.value < plan.tasks.size(), "a task of this job");
  const std::uint32_t number = plan.shape_of(index).group.value;
  Bound bound;
  bound.group = &spec.groups[number];
  const TaskOrigin origin = origin_of(*bound.group, index.value - group_starts[number]);
  bound.task = &bound.group->tasks[origin.task];
  bound.bindings.resize(kMatrixSlots);
  bind_combination(*bound.group, origin.combination, bound.bindings);
  bound.id = make_id(*bound.group, origin, bound.bindings);
  bound.bindings[kTaskIdSlot] = bound.id;
  return bound;
}

std::string Job::State::directory_of(const GroupSpec& group, const std::string& id) const {
  if (!configuration.flag(Setting::TaskDirectoryGrouping)) {
    return fmt::format("{}/{}", places.run_directory, id);
  }
  return fmt::format("{}/{}/{}", places.run_directory, group.name, id);
}

std::string Job::task_id(TaskIndex task) const { return state_->bind(task).id; }

std::string Job::task_directory(TaskIndex task) const {
  const State::Bound bound = state_->bind(task);
  return state_->directory_of(*bound.group, bound.id);
}

std::optional<TaskIndex> Job::find(std::string_view group, std::string_view id) const {
  const auto& groups = state_->spec.groups;
  const auto found = std::ranges::find(groups, group, &GroupSpec::name);
  if (found == groups.end()) return std::nullopt;
  const std::uint32_t start =
      state_->group_starts[static_cast<std::size_t>(found - groups.begin())];
  Bindings bindings(kMatrixSlots);
  for (std::uint32_t i = 0; i < count_tasks(*found); ++i) {
    const TaskOrigin origin = origin_of(*found, i);
    if (origin.task == 0) bind_combination(*found, origin.combination, bindings);
    if (make_id(*found, origin, bindings) == id) return TaskIndex{start + i};
  }
  return std::nullopt;
}

std::vector<std::pair<std::string, std::string>> Job::matrix_values(TaskIndex task) const {
  const State::Bound bound = state_->bind(task);
  const std::vector<std::string>& keys = bound.group->matrix.keys();
  std::vector<std::pair<std::string, std::string>> values;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const std::optional<std::string>& value = bound.bindings[kMatrixSlots + i];
    if (value) values.emplace_back(keys[i], *value);
  }
  return values;
}

}  // namespace trainyard
