#include "job/job.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <iterator>

#include <fmt/format.h>

#include "base/check.h"
#include "base/path_name.h"
#include "hardware/mps.h"
#include "job/gpu_variables.h"
#include "job/gpu_wish.h"
#include "job/job_plan.h"
#include "job/job_reader.h"
#include "job/job_state.h"
#include "job/keep_learned.h"
#include "job/program_as_job.h"
#include "job/telling_keys.h"
#include "job/unused_keys.h"
#include "model/gpu_limits.h"
#include "model/sharing_text.h"
#include "run/run_directory.h"
#include "sys/files.h"
#include "text/file_name.h"
#include "text/text_file.h"

namespace trainyard::job {
namespace {

/// The name of a job that says none: its file's, without the ending.
std::string name_of_file(const std::string& path) {
  return text::run_name_for(std::filesystem::path(path).stem().string(), "job");
}

/// Whether the job file is the one that trainyard wrote for a command into its run directory,
/// `directory`.
bool is_kept_in_run(const LoadOptions& options, const std::string& directory) {
  const std::string path = absolute_path(options.job_file, options.current_directory);
  return run::is_kept_job_path(path) && sys::exists(run::journal_path(directory));
}

std::string run_directory(const LoadOptions& options, const JobSpec& spec,
                          const settings::Configuration& configuration,
                          const std::string& directory) {
  if (!options.run_directory.empty()) {
    return absolute_path(options.run_directory, options.current_directory);
  }
  const std::string& workdir = configuration.text(settings::Setting::Workdir);
  if (workdir == "auto" && spec.run_directory.empty() && is_kept_in_run(options, directory)) {
    return std::filesystem::path(directory).replace_filename(spec.name).string();
  }
  const std::string base = workdir == "auto" ? directory : workdir;
  return absolute_path(spec.run_directory.empty() ? "runs/" + spec.name : spec.run_directory, base);
}

/// Estimates from earlier runs; nothing if there were none, or if they cannot be read.
Learned learned_of(const std::string& path, std::vector<std::string>& notes) {
  Result<Learned> learned = load_learned(path);
  if (learned) return std::move(*learned);
  notes.push_back(std::move(learned.error().message));
  return {};
}

void set_commands(const JobSpec& spec, Learned& learned) {
  for (const GroupSpec& group : spec.groups) {
    const bool broken = group.matrix_broken || group.tasks.empty();
    if (broken || count_tasks(group) > kTasksMax || !learned.knows(group.name)) continue;
    std::set<std::int64_t> commands;
    text::Bindings bindings(kMatrixSlots);
    for (std::size_t combination = 0; combination < group.matrix.size(); ++combination) {
      bind_combination(group, combination, bindings);
      for (const TaskSpec& task : group.tasks) {
        commands.insert(command_fingerprint(group, task, bindings));
      }
    }
    learned.set_commands(group.name, std::move(commands));
  }
}

/// The cost of sharing GPUs for the tasks of each group, as Job::gpu_shares() says. Adds a note
/// where it is known, and adds it to the plan.
std::vector<int> learned_shares(model::Plan& plan, const Learned& learned, const LearnedFor& here,
                                std::vector<std::string>& notes) {
  constexpr double kWholeGpu = 1000;
  std::vector<int> shares(plan.groups.size());
  std::set<std::uint32_t> noted;
  for (std::uint32_t index = 0; index < plan.shapes.size(); ++index) {
    const model::Shape& shape = plan.shapes[index];
    const model::Request& request = shape.terms.request;
    if (model::wants_whole_gpus(request) || request.sharing.utilization > 0) continue;
    const std::string& group = plan.groups[shape.group.value].name;
    const std::optional<LearnedSharing> known = learned.sharing(group, here);
    if (request.gpus == 0 || !known) continue;
    plan.sharing.push_back({.shape = {index},
                            .to_a_gpu = known->to_a_gpu,
                            .factor = known->factor,
                            .tasks = known->tasks,
                            .to_a_gpu_max = known->to_a_gpu_max});
    if (!noted.insert(shape.group.value).second) continue;
    if (const double work = known->together().factor; work > 0) {
      shares[shape.group.value] =
          static_cast<int>(std::lround(std::min(kWholeGpu, kWholeGpu / work)));
    }
    notes.push_back(fmt::format("group '{}': {}, as learned from {}", group,
                                model::sharing_text(plan.sharing.back()),
                                to_text(known->from, here)));
  }
  return shares;
}

/// Warns of texts whose outcome may be wrong: those with a pipe whose first command may fail only
/// because the last one has exited, or with a command in the background that may be killed or may
/// have failed.
void add_notes_of_texts(const JobSpec& spec, std::vector<std::string>& notes) {
  for (const GroupSpec& group : spec.groups) {
    for (std::size_t i = 0; i < group.tasks.size(); ++i) {
      const TaskSpec& task = group.tasks[i];
      if (!task.in_shell || task.arguments.empty()) continue;
      const text::ShellTraits& traits = task.arguments.front().traits();
      const auto add_note = [&](std::string_view note) {
        notes.push_back(fmt::format("group '{}': task {}: {}", group.name, i + 1, note));
      };
      if (traits.uses_status_of_cut_pipe && !task.in_sh) {
        add_note(
            "a pipe into 'head', 'grep -q', 'grep -m' or 'sed q' whose status is used may fail "
            "with 141 (SIGPIPE) under pipefail; write 'head -n 1 < <(sort file)'");
      }
      if (traits.leaves_background) {
        add_note(
            "a command in the background ('&') is killed when the text ends; add 'wait $!' after "
            "it, or 'kill $!' if it need not finish");
      }
      if (traits.hides_failures) {
        add_note(
            "'wait' alone succeeds also when a command in the background failed; write 'wait $!', "
            "or 'wait \"$pid\" || exit' for each of several");
      }
    }
  }
}

/// The variables of the yard's environment on which the variables of a task depend.
Variables what_matters(const std::vector<std::string>& environment) {
  constexpr std::array<std::string_view, 17> kMatters{"OMP_NUM_THREADS",
                                                      "OPENBLAS_NUM_THREADS",
                                                      "MKL_NUM_THREADS",
                                                      "PYTHONUNBUFFERED",
                                                      "TF_FORCE_GPU_ALLOW_GROWTH",
                                                      "XLA_PYTHON_CLIENT_PREALLOCATE",
                                                      kTorchConf,
                                                      kTorchConfNew,
                                                      kJaxFraction,
                                                      kJaxFractionOld,
                                                      kJaxAllocator,
                                                      kMpsLimit,
                                                      hardware::kMpsPipes,
                                                      "PATH",
                                                      "HOME",
                                                      "PYTHONPATH",
                                                      "PYTHONNOUSERSITE"};
  Variables matter;
  for (const std::string& variable : environment) {
    const std::size_t equals = std::min(variable.find('='), variable.size());
    const std::string_view name = std::string_view(variable).substr(0, equals);
    if (std::ranges::find(kMatters, name) == kMatters.end()) continue;
    matter.emplace_back(name, variable.substr(std::min(equals + 1, variable.size())));
  }
  return matter;
}

}  // namespace

Job::Job(std::unique_ptr<State> state) : state_(std::move(state)) {}
Job::Job(Job&&) noexcept = default;
Job& Job::operator=(Job&&) noexcept = default;
Job::~Job() = default;

std::expected<Job, text::Mistakes> Job::load(const LoadOptions& options,
                                             const model::Capacity& capacity) {
  const std::string path = absolute_path(options.job_file, options.current_directory);
  const Result<std::string> text = text::read_text_file(path, run::links_at_job_file(path));
  if (text) return parse(*text, options, capacity);
  return std::unexpected(
      text::Mistakes{{.file = options.job_file, .message = text.error().message}});
}

std::expected<Job, text::Mistakes> Job::parse(std::string_view text, const LoadOptions& options,
                                              const model::Capacity& capacity) {
  text::MistakeList mistakes;
  const std::string path = absolute_path(options.job_file, options.current_directory);
  const std::string directory = std::filesystem::path(path).parent_path().string();
  const text::YamlDocument document(text, options.job_file, options.line_names);
  mistakes.add(document.mistakes());

  auto state = std::make_unique<State>();
  state->capacity = capacity;
  state->machines = options.machines;
  state->configuration = layered(options, document, directory, mistakes);
  state->spec = read_job(document, {.directory = directory, .files = options.files}, mistakes);
  if (state->spec.name.empty()) state->spec.name = name_of_file(path);
  const std::string runs_in = run_directory(options, state->spec, state->configuration, directory);
  // The text of a command that has no run yet has the file that its run will have.
  const bool has_no_run = !options.line_names.empty() && !options.submission;
  const std::string learned =
      learned_path(has_no_run ? run::kept_job_path(runs_in) : path, state->spec.name);
  if (state->configuration.flag(settings::Setting::SchedulerAutoAdjust)) {
    state->learned = learned_of(learned, state->notes);
  }
  set_commands(state->spec, state->learned);
  state->here.host = options.host;
  for (const model::Gpu& gpu : capacity.gpus) state->here.gpus.push_back(gpu.name);
  PlanBasis basis{.configuration = state->configuration,
                  .capacity = state->capacity,
                  .machines = state->machines,
                  .learned = state->learned,
                  .here = state->here,
                  .only_shown = options.only_shown,
                  .gpus_unknown = options.gpus_unknown};
  basis.machine.memory_now = options.memory_now;
  if (!options.machine_text.empty()) {
    basis.machine = {.name = options.machine_text, .is_planned = true};
  }
  if (options.submission) {
    basis.batch = options.submission->number;
    basis.groups_before = options.submission->groups;
  }
  if (options.disk_size) basis.disk_size = options.disk_size(runs_in);
  PlannedJob planned = plan_job(state->spec, basis, document, mistakes);
  if (!mistakes.empty())
    return std::unexpected(take_mistakes(std::move(mistakes), options, document));

  state->text = text;
  state->name = state->spec.name;
  state->paths = {.file = path,
                  .directory = directory,
                  .run_directory = run::real_directory(runs_in),
                  .learned = learned};
  state->moved_directory = options.moved_directory;
  state->environment = what_matters(options.environment);
  for (const std::string& variable : options.environment) {
    state->variable_names.insert(variable.substr(0, variable.find('=')));
  }
  state->gpu_shares = learned_shares(planned.plan, state->learned, state->here, state->notes);
  state->plan = std::make_shared<model::Plan>(std::move(planned.plan));
  std::ranges::move(planned.notes, std::back_inserter(state->notes));
  state->lacks_gpu = planned.lacks_gpu;
  state->warnings = unused_key_warnings(state->spec);
  for (const GroupSpec& group : state->spec.groups) {
    std::ranges::copy(group.matrix_warnings, std::back_inserter(state->warnings));
  }
  std::ranges::move(gpu_variable_warnings(state->spec, *state->plan, planned.group_starts),
                    std::back_inserter(state->warnings));
  std::ranges::copy(state->warnings, std::back_inserter(state->notes));
  add_notes_of_texts(state->spec, state->notes);
  const model::GpuLimits limits = settings::gpu_limits(state->configuration);
  if (auto note = gpu_limit_note(*state->plan, limits)) state->notes.push_back(std::move(*note));
  Addresses addresses = addresses_of(state->spec.telling, options.environment);
  state->notify = std::move(addresses.addresses);
  state->notify_notes = std::move(addresses.notes);
  std::ranges::copy(state->notify_notes, std::back_inserter(state->notes));
  state->group_starts = std::move(planned.group_starts);
  state->learned_uses = std::move(planned.learned_uses);
  state->check_values(document, mistakes);
  if (!mistakes.empty())
    return std::unexpected(take_mistakes(std::move(mistakes), options, document));
  return Job(std::move(state));
}

std::expected<Job, text::Mistakes> Job::later_round(const RoundOptions& options) const {
  auto state = std::make_unique<State>();
  state->text = state_->text;
  state->name = state_->name;
  state->paths = state_->paths;
  state->code_copy = state_->code_copy;
  state->configuration = state_->configuration;
  state->capacity = state_->capacity;
  state->machines = state_->machines;
  state->environment = state_->environment;
  state->variable_names = state_->variable_names;
  state->notify = state_->notify;
  state->learned = state_->learned;
  state->here = state_->here;
  state->spec = state_->spec;
  std::vector<GroupSpec>& groups = state->spec.groups;
  const auto repeated =
      std::ranges::find_if(groups, [](const GroupSpec& group) { return group.round.has_value(); });
  check(repeated != groups.end(), "a job that repeats something");
  state->spec.before.assign(std::make_move_iterator(groups.begin()),
                            std::make_move_iterator(repeated));
  groups.erase(groups.begin(), repeated);
  for (GroupSpec& group : groups) group.round = options.round;
  text::MistakeList mistakes;
  const text::YamlDocument document(state->text, state->paths.file);
  PlannedJob planned = plan_job(state->spec,
                                {.configuration = state->configuration,
                                 .capacity = state->capacity,
                                 .machines = state->machines,
                                 .learned = state->learned,
                                 .here = state->here,
                                 .batch = options.batch,
                                 .groups_before = options.groups_before},
                                document, mistakes);
  if (!mistakes.empty()) return std::unexpected(std::move(mistakes).take());
  state->gpu_shares = learned_shares(planned.plan, state->learned, state->here, state->notes);
  state->notes.clear();  // They were told when round 0 began.
  state->plan = std::make_shared<model::Plan>(std::move(planned.plan));
  state->group_starts = std::move(planned.group_starts);
  state->learned_uses = std::move(planned.learned_uses);
  return Job(std::move(state));
}

std::optional<Job::Repeat> Job::repeat() const {
  const std::optional<RepeatSpec>& repeat = state_->spec.repeat;
  if (!repeat) return std::nullopt;
  return Repeat{.rounds_max = repeat->rounds_max,
                .until = repeat->until ? repeat->until->text : std::string(),
                .round = state_->spec.groups.back().round.value_or(0)};
}

bool Job::is_repeated(model::TaskIndex task) const {
  return state_->spec.groups[group_of(task).value].round.has_value();
}

std::vector<KeptGroup> Job::kept_groups() const {
  const std::vector<GroupSpec>& groups = state_->spec.groups;
  std::vector<KeptGroup> all;
  all.reserve(groups.size());
  for (const GroupSpec& group : groups) {
    all.push_back({.name = group.name, .keep = group.keep, .round = group.round});
  }
  for (std::size_t i = 0; i < groups.size(); ++i) {
    if (!groups[i].round) continue;
    // The needs of round 0 stand for those of the other rounds; and none of them is in a cell of
    // its matrix.
    for (const model::GroupIndex need : state_->plan->groups[i].needs) {
      all[need.value].is_for_rounds = !groups[need.value].round;
    }
  }
  return all;
}

Result<JobRuns> Job::runs_of(const LoadOptions& options) {
  const std::string path = absolute_path(options.job_file, options.current_directory);
  const Result<std::string> text = text::read_text_file(path, run::links_at_job_file(path));
  if (!text) return std::unexpected(Error(text.error()).in(options.job_file));
  const std::string directory = std::filesystem::path(path).parent_path().string();
  const text::YamlDocument document(*text, options.job_file);
  if (const auto program = program_mistake(options, document)) {
    return std::unexpected(Error{text::to_text(*program)});
  }
  if (document.root() == nullptr) {
    return std::unexpected(Error{document.mistakes().empty()
                                     ? fmt::format("{}: {}", options.job_file, kEmptyJobFile)
                                     : text::to_text(document.mistakes().front())});
  }
  text::MistakeList whatever;
  const settings::Configuration configuration = layered(options, document, directory, whatever);
  JobSpec spec = read_job(document, {.directory = directory, .files = options.files}, whatever);
  if (spec.name.empty()) spec.name = name_of_file(path);
  std::string first = run::real_directory(run_directory(options, spec, configuration, directory));
  return JobRuns{.job_name = std::move(spec.name), .job_file = path, .first = std::move(first)};
}

JobNotify Job::notify_of(std::string_view text, const LoadOptions& options) {
  const std::string path = absolute_path(options.job_file, options.current_directory);
  const std::string directory = std::filesystem::path(path).parent_path().string();
  const text::YamlDocument document(text, options.job_file);
  if (document.root() == nullptr) {
    return {.job_name = name_of_file(path)};
  }
  text::MistakeList whatever;
  JobSpec spec = read_job(document, {.directory = directory, .files = options.files}, whatever);
  Addresses found = addresses_of(spec.telling, options.environment);
  return {.job_name = spec.name.empty() ? name_of_file(path) : std::move(spec.name),
          .addresses = std::move(found.addresses),
          .notes = std::move(found.notes)};
}

const std::string& Job::name() const { return state_->name; }
const std::string& Job::text() const { return state_->text; }
const JobFiles& Job::files() const { return state_->spec.files; }
const JobPaths& Job::paths() const { return state_->paths; }
const settings::Configuration& Job::configuration() const { return state_->configuration; }
const model::Capacity& Job::capacity() const { return state_->capacity; }
const std::vector<model::NamedMachine>& Job::machines() const { return state_->machines; }
const std::vector<text::WebAddress>& Job::notify() const { return state_->notify; }
const std::vector<std::string>& Job::notify_notes() const { return state_->notify_notes; }
const std::string& Job::on_finish() const { return state_->spec.telling.on_finish; }
std::string Job::without_secrets(std::string text) const {
  return job::without_secrets(std::move(text), state_->notify);
}
const std::vector<std::string>& Job::notes() const { return state_->notes; }
bool Job::lacks_gpu() const { return state_->lacks_gpu; }
const std::vector<std::string>& Job::warnings() const { return state_->warnings; }
const model::Plan& Job::plan() const { return *state_->plan; }
std::shared_ptr<const model::Plan> Job::shared_plan() const { return state_->plan; }

const std::vector<int>& Job::gpu_shares() const { return state_->gpu_shares; }

const LearnedFor& Job::here() const { return state_->here; }
const Learned& Job::learned() const { return state_->learned; }
void Job::compare_commands(Learned& learned) const { set_commands(state_->spec, learned); }

std::int64_t Job::command_fingerprint(model::TaskIndex task) const {
  const State::Bound bound = state_->bind(task);
  return job::command_fingerprint(*bound.group, *bound.task, bound.bindings);
}

std::optional<Job::SaidValue> Job::said_value(model::TaskIndex task, TaskKey key) const {
  const State::Bound bound = state_->bind(task);
  const Text* const text = said(*bound.group, *bound.task, key);
  if (text == nullptr) return std::nullopt;
  text::Bindings names;
  for (const std::string_view name : text::kOwnPlaceholders) {
    names.emplace_back(fmt::format("{{{}}}", name));
  }
  for (const std::string& name : bound.group->matrix.keys()) {
    names.emplace_back(fmt::format("{{{}}}", name));
  }
  if (bound.group->round) names.emplace_back("{round}");
  const bool fixed = !text->text.uses_any();
  return SaidValue{.place = text->place,
                   .text = fixed ? text->text.text() : text->text.fill(names),
                   .fixed = fixed};
}

Job::LearnedNumbers Job::learned_numbers(model::TaskIndex task) const {
  const model::Shape& shape = state_->plan->shape_of(task);
  const LearnedUse use = state_->learned_uses.at(state_->plan->tasks.at(task.value).shape.value);
  if (use == LearnedUse{}) return {};
  const std::string& group = state_->spec.groups.at(shape.group.value).name;
  const ExpectedTask expected =
      state_->learned.expected(group, task_id(task), state_->here, command_fingerprint(task));
  LearnedNumbers numbers;
  const auto take = [](auto& into, bool used, auto number, auto value) {
    if (!used) return;
    number.value = value;
    into = number;
  };
  take(numbers.memory, use.memory, expected.memory, shape.terms.request.memory);
  take(numbers.gpu_memory, use.gpu_memory, expected.gpu_memory, shape.terms.request.gpu_memory);
  take(numbers.duration, use.duration, expected.train, shape.terms.train_expected);
  return numbers;
}

model::Policy Job::policy() const {
  return settings::policy(state_->configuration, state_->capacity);
}

model::GroupIndex Job::group_of(model::TaskIndex task) const {
  check(task.value < state_->plan->tasks.size(), "a task of this job");
  return state_->plan->shape_of(task).group;
}

Job::State::Bound Job::State::bind(model::TaskIndex index) const {
  check(index.value < plan->tasks.size(), "a task of this job");
  const std::uint32_t number = plan->shape_of(index).group.value;
  Bound bound;
  bound.group = &spec.groups[number];
  bound.index = {number};
  const TaskOrigin origin = origin_of(*bound.group, index.value - group_starts[number]);
  bound.task = &bound.group->tasks[origin.task];
  bound.bindings.resize(kMatrixSlots);
  bind_combination(*bound.group, origin.combination, bound.bindings);
  bound.id = make_id(*bound.group, origin, bound.bindings);
  bound.bindings[kTaskIdSlot] = bound.id;
  return bound;
}

std::string Job::State::directory_of(const Bound& bound) const {
  const std::string& directory = plan->groups[bound.index.value].directory;
  return fmt::format("{}/{}", paths.run_directory, run::task_directory(directory, bound.id));
}

std::string Job::task_id(model::TaskIndex task) const { return state_->bind(task).id; }

std::string Job::task_directory(model::TaskIndex task) const {
  return state_->directory_of(state_->bind(task));
}

/// Thousands of tasks may be looked up one after the other.
const std::vector<Job::State::HashedId>& Job::State::ids_of(std::size_t group) const {
  const auto [place, fresh] = ids.try_emplace(group);
  if (!fresh) return place->second;
  const GroupSpec& of = spec.groups[group];
  text::Bindings bindings(kMatrixSlots);
  for (std::uint32_t i = 0; i < count_tasks(of); ++i) {
    const TaskOrigin origin = origin_of(of, i);
    if (origin.task == 0) bind_combination(of, origin.combination, bindings);
    place->second.push_back({.hash = std::hash<std::string>()(make_id(of, origin, bindings)),
                             .task = {group_starts[group] + i}});
  }
  std::ranges::sort(place->second);
  return place->second;
}

std::optional<model::TaskIndex> Job::find(std::string_view group, std::string_view id) const {
  const auto& groups = state_->spec.groups;
  const auto found = std::ranges::find(groups, group, &GroupSpec::name);
  if (found == groups.end()) return std::nullopt;
  const auto& ids = state_->ids_of(static_cast<std::size_t>(found - groups.begin()));
  // The first of several tasks with this id.
  for (const auto& same : std::ranges::equal_range(ids, std::hash<std::string_view>()(id), {},
                                                   &State::HashedId::hash)) {
    if (task_id(same.task) == id) return same.task;
  }
  return std::nullopt;
}

std::vector<std::pair<std::string, std::string>> Job::matrix_values(model::TaskIndex task) const {
  const State::Bound bound = state_->bind(task);
  const std::vector<std::string>& keys = bound.group->matrix.keys();
  std::vector<std::pair<std::string, std::string>> values;
  if (bound.group->round) values.emplace_back("round", fmt::to_string(*bound.group->round));
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const std::optional<std::string>& value = bound.bindings[kMatrixSlots + i];
    if (value) values.emplace_back(keys[i], *value);
  }
  return values;
}

}  // namespace trainyard::job
