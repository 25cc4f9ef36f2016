#include "config/job_plan.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/bytes.h"
#include "base/duration_text.h"
#include "base/result.h"
#include "base/time.h"
#include "config/configuration.h"
#include "config/early_signal.h"
#include "config/file_name.h"
#include "config/gpu_variables.h"
#include "config/gpu_wish.h"
#include "config/job_binding.h"
#include "config/job_needs.h"
#include "config/job_spec.h"
#include "config/learned.h"
#include "config/mistake.h"
#include "config/placeholder.h"
#include "config/setting_value.h"
#include "config/wanted.h"
#include "config/written_and_taken.h"
#include "config/yaml_reader.h"
#include "model/ids.h"
#include "model/plan.h"
#include "model/resources.h"
#include "schedule/scheduler.h"

namespace trainyard {
namespace {

/// The texts that a shape is made of: where one depends on the matrix, so does the shape.
constexpr std::array kOfTheShape{&Wants::memory,     &Wants::gpu_memory, &Wants::gpus,
                                 &Wants::device,     &Wants::cpus,       &Wants::duration,
                                 &Wants::time_limit, &Wants::ranks};

class PlanMaker {
 public:
  PlanMaker(const JobSpec& spec, const PlanBasis& basis, const YamlDocument& document,
            MistakeList& mistakes)
      : spec_(spec), basis_(basis), document_(document), mistakes_(mistakes) {}

  PlannedJob make() {
    const std::vector<std::vector<GroupIndex>> needs = resolve_needs(spec_, document_, mistakes_);
    for (std::size_t i = 0; i < spec_.groups.size(); ++i) {
      const GroupSpec& group = spec_.groups[i];
      job_.plan.groups.push_back({.name = group.name,
                                  .needs = needs[i],
                                  .parallel_max = group.parallel_max,
                                  .fail_fast = group.fail_fast});
      job_.group_starts.push_back(static_cast<std::uint32_t>(job_.plan.tasks.size()));
      if (taken_in_run_directory(group.name) && grouping()) {
        complain(group.name_place, group,
                 fmt::format("the name '{}' is one that trainyard uses in the run directory itself",
                             group.name));
      }
      if (group.matrix_broken || group.tasks.empty()) continue;
      if (job_.plan.tasks.size() + count_tasks(group) > kTasksMax) {
        complain(group.place, group, fmt::format("the job has more than {} tasks", kTasksMax));
        break;
      }
      add_group(i);
    }
    check_shapes();
    check_ids();
    std::ranges::move(compared_.notes(), std::back_inserter(job_.notes));
    job_.plan.shapes.shrink_to_fit();
    job_.plan.tasks.shrink_to_fit();
    return std::move(job_);
  }

 private:
  struct NumberedId {
    std::uint64_t hash = 0;
    std::uint32_t task = 0;
    friend auto operator<=>(const NumberedId&, const NumberedId&) = default;
  };
  /// Whose shape it is: the first task that has it.
  struct ShapeOwner {
    std::size_t group = 0;
    TaskOrigin origin;
  };

  [[nodiscard]] bool grouping() const {
    return basis_.configuration.flag(Setting::TaskDirectoryGrouping);
  }

  void complain(Place place, const GroupSpec& group, std::string_view message) {
    mistakes_.add(document_.mistake(place, fmt::format("group '{}': {}", group.name, message)));
  }

  /// To be said after a mistake that not every combination has.
  [[nodiscard]] std::string in_combination(const GroupSpec& group) const {
    if (!group.has_matrix) return "";
    return fmt::format(" (in the combination {})", combination_text(group, bindings_));
  }

  void add_group(std::size_t number) {
    const GroupSpec& group = spec_.groups[number];
    group_number_ = number;
    shapes_.clear();
    same_for_all_.assign(group.tasks.size(), std::nullopt);
    complained_.clear();
    job_.plan.tasks.reserve(job_.plan.tasks.size() + count_tasks(group));
    ids_.reserve(ids_.size() + count_tasks(group));
    std::vector<std::size_t> sparse;
    for (std::size_t key = 0; key < group.matrix.keys().size(); ++key) {
      if (!group.matrix.everywhere(key)) sparse.push_back(kMatrixSlots + key);
    }
    for (std::size_t combination = 0; combination < group.matrix.size(); ++combination) {
      bind_combination(group, combination, bindings_);
      for (std::size_t task = 0; task < group.tasks.size(); ++task) {
        const TaskOrigin origin{.combination = combination, .task = task};
        if (sparse.empty() || has_all_values(group, origin)) {
          add_task(group, origin);
        } else {
          job_.plan.tasks.emplace_back();  // So that the others keep their numbers.
        }
      }
    }
  }

  /// Each kind of complaint once for each task of the file, not for each combination.
  bool first_time(std::size_t task, std::string_view about) {
    return complained_.emplace(task, about).second;
  }

  bool has_all_values(const GroupSpec& group, TaskOrigin origin) {
    const TaskSpec& task = group.tasks[origin.task];
    bool has_all = true;
    const auto look = [&](const Template& text, Place place) {
      const auto slot = text.missing(bindings_);
      if (!slot || *slot < kMatrixSlots) return;
      has_all = false;
      const std::string& key = group.matrix.keys()[*slot - kMatrixSlots];
      if (!first_time(origin.task, key)) return;
      complain(place, group,
               fmt::format("'{{{}}}' has no value in the combination {}", key,
                           combination_text(group, bindings_)));
    };
    for (const auto* wants : {&group.wants, &task.wants}) {
      const auto look_at = [&](const std::optional<Text>& text) {
        if (text) look(text->text, text->place);
      };
      for (const auto which : kOfTheShape) look_at(wants->*which);
      look_at(wants->working_directory);
      for (const auto& [name, text] : wants->environment) look(text.text, text.place);
    }
    for (const Template& argument : task.arguments) look(argument, task.command_place);
    if (task.id) look(task.id->text, task.id->place);
    return has_all;
  }

  void add_task(const GroupSpec& group, TaskOrigin origin) {
    const TaskSpec& task = group.tasks[origin.task];
    const std::string id = make_id(group, origin, bindings_);
    bindings_[kTaskIdSlot] = id;
    check_id(group, origin, id);
    if (task.in_shell) check_command(group, origin);
    ids_.push_back({.hash = std::hash<std::string_view>{}(id),
                    .task = static_cast<std::uint32_t>(job_.plan.tasks.size())});

    std::optional<ShapeIndex>& same = same_for_all_[origin.task];
    ShapeIndex shape;
    if (same) {
      shape = *same;
    } else {
      shape = shape_of(group, origin);
      const bool alike = !wants_depend(group.wants) && !wants_depend(task.wants);
      if (alike && !basis_.learned.knows(group.name)) same = shape;
    }
    job_.plan.tasks.push_back({.shape = shape});
  }

  static bool wants_depend(const Wants& wants) {
    return std::ranges::any_of(kOfTheShape, [&](const auto which) {
      return wants.*which && (wants.*which)->text.uses_any();
    });
  }

  void check_id(const GroupSpec& group, TaskOrigin origin, const std::string& id) {
    const TaskSpec& task = group.tasks[origin.task];
    const auto why = why_unsafe(id);
    const bool taken = !why && !grouping() && taken_in_run_directory(id);
    if ((!why && !taken) || !first_time(origin.task, "id")) return;
    const Place place = task.id ? task.id->place : task.place;
    if (taken) {
      complain(
          place, group,
          fmt::format("the id '{}' is one that trainyard uses in the run directory itself", id));
    } else {
      complain(place, group,
               fmt::format("the id '{}' {}, and it is to be the name of a directory{}", id, *why,
                           task.id ? "" : "; give the task an 'id' of its own"));
    }
  }

  void check_command(const GroupSpec& group, TaskOrigin origin) {
    const TaskSpec& task = group.tasks[origin.task];
    for (const Template& argument : task.arguments) {
      const auto ending = argument.ends_here_document(bindings_);
      if (!ending || !first_time(origin.task, "command")) continue;
      const bool own = ending->slot < kMatrixSlots;
      const std::string_view name = own ? kOwnPlaceholders.at(ending->slot)
                                        : group.matrix.keys()[ending->slot - kMatrixSlots];
      complain(task.command_place, group,
               fmt::format("command: the value of '{{{}}}' has the line '{}', which ends the "
                           "here-document it stands in{}",
                           name, ending->word, in_combination(group)));
    }
  }

  ShapeIndex shape_of(const GroupSpec& group, TaskOrigin origin) {
    const Wanted wanted = wanted_by(group, origin);
    const auto next = static_cast<std::uint32_t>(job_.plan.shapes.size());
    const auto [known, fresh] = shapes_.try_emplace(wanted, ShapeIndex{next});
    if (fresh) {
      job_.plan.shapes.push_back({.group = {static_cast<std::uint32_t>(group_number_)},
                                  .request = wanted.request,
                                  .time_limit = wanted.time_limit,
                                  .two_phase = wanted.two_phase,
                                  .ranks = wanted.ranks,
                                  .memory_hard = wanted.memory_hard,
                                  .preemptible = wanted.preemptible,
                                  .early_signal = wanted.early_signal,
                                  .load_expected = wanted.load_expected,
                                  .train_expected = wanted.train_expected,
                                  .learns_memory = wanted.learns_memory,
                                  .learns_gpu_memory = wanted.learns_gpu_memory});
      owners_.push_back({.group = group_number_, .origin = origin});
    }
    return known->second;
  }

  /// The value of a text in this combination; complains when it has none.
  template <class Parse>
  auto value_of(const GroupSpec& group, TaskOrigin origin, const std::optional<Text>& text,
                std::string_view key, Parse parse)
      -> std::optional<std::decay_t<decltype(*parse(""))>> {
    if (!text) return std::nullopt;
    const bool fixed = !text->text.uses_any();
    const std::string filled = fixed ? text->text.text() : text->text.fill(bindings_);
    const auto value = parse(filled);
    if (value) return *value;
    if (first_time(origin.task, fmt::format("{} {}", key, filled))) {
      complain(text->place, group,
               fmt::format("{}: {}{}", key, value.error().message, in_combination(group)));
    }
    return std::nullopt;
  }

  Wanted wanted_by(const GroupSpec& group, TaskOrigin origin) {
    const Wants& own = group.tasks[origin.task].wants;
    const Wants& all = group.wants;
    const auto value = [&](const std::optional<Text> Wants::* which, std::string_view key,
                           auto parse) {
      return value_of(group, origin, first_said(own.*which, all.*which), key, parse);
    };
    Wanted wanted;
    wanted.ranks = value(&Wants::ranks, "ranks", parse_ranks).value_or(0);
    const Cpus usual = cpus(std::max(wanted.ranks, 1));
    wanted.request.cpus = value(&Wants::cpus, "cpus", parse_cpus).value_or(usual);
    const auto memory = value(&Wants::memory, "memory", parse_bytes);
    wanted.learns_memory = !memory.has_value();
    wanted.request.memory =
        memory ? *memory
               : default_memory(basis_.configuration, basis_.capacity, wanted.request.cpus);
    add_gpu_wish(group, origin, wanted);
    wanted.time_limit =
        value(&Wants::time_limit, "time-limit", parse_duration).value_or(Duration{0});
    wanted.train_expected =
        value(&Wants::duration, "duration", parse_duration).value_or(Duration{0});
    wanted.memory_hard = own.memory_hard.value_or(all.memory_hard.value_or(false));
    if (wanted.memory_hard && wanted.learns_memory && first_time(origin.task, "memory-limit")) {
      complain(group.tasks[origin.task].place, group,
               "memory-limit: a hard limit needs 'memory', which says how much");
    }
    wanted.preemptible = own.preempt.value_or(all.preempt.value_or(true));
    wanted.early_signal = own.early_signal.value_or(all.early_signal.value_or(EarlySignal{}));
    if (!fits_into(wanted.time_limit, wanted.early_signal) && first_time(origin.task, "signal")) {
      complain(group.tasks[origin.task].place, group,
               too_early_text(wanted.time_limit, wanted.early_signal));
    }
    wanted.two_phase = own.two_phase.value_or(all.two_phase.value_or(false));
    const auto& ranks = first_said(own.ranks, all.ranks);
    if (ranks && !group.preload.empty() && first_time(origin.task, "ranks")) {
      complain(ranks->place, group, "ranks: a task with 'preload' is one process");
    }
    add_learned(group, wanted);
    return wanted;
  }

  void add_gpu_wish(const GroupSpec& group, TaskOrigin origin, Wanted& wanted) {
    const Wants& own = group.tasks[origin.task].wants;
    const Wants& all = group.wants;
    const auto value = [&](const std::optional<Text> Wants::* which, std::string_view key,
                           auto parse) {
      return value_of(group, origin, first_said(own.*which, all.*which), key, parse);
    };
    const bool wants_memory = first_said(own.gpu_memory, all.gpu_memory).has_value();
    std::optional<int> gpus = value(&Wants::gpus, "gpus", parse_count);
    // A GPU for each rank, unless something else is said.
    if (!gpus && wants_memory && !first_said(own.device, all.device)) {
      gpus = value(&Wants::ranks, "ranks", parse_ranks);
    }
    const GpuWish wish{
        .gpus = gpus,
        .memory = value(&Wants::gpu_memory, "gpu-memory", parse_gpu_memory).value_or(GpuMemory{}),
        .device = value(&Wants::device, "device", parse_device),
        .device_goes_first = own.device && !own.gpus && !own.gpu_memory};
    const auto usual = basis_.configuration.size(Setting::SchedulerDefaultCudaMemory);
    const Result<void> added = add_gpus(wish, usual.value_or(Bytes{}), wanted.request);
    wanted.learns_gpu_memory = wish.memory.learned && wanted.request.gpus > 0;
    if (added || !first_time(origin.task, "device")) return;
    const auto& said = first_said(own.device, all.device);
    complain(said ? said->place : group.place, group,
             fmt::format("device: {}{}", added.error().message, in_combination(group)));
  }

  /// What earlier runs have taught counts where nothing is written.
  void add_learned(const GroupSpec& group, Wanted& wanted) {
    if (!basis_.learned.knows(group.name)) return;
    const std::string id(bindings_[kTaskIdSlot].value_or(""));
    const LearnedTask expected = basis_.learned.expected(group.name, id);
    const LearnedTask taken = basis_.learned.taken(group.name, id);
    Request& request = wanted.request;
    if (!wanted.learns_memory) {
      compared_.see(group.name, "memory", request.memory, taken.memory);
    } else if (expected.memory > Bytes{}) {
      const Limits limits = trainyard::limits(basis_.configuration, basis_.capacity);
      request.memory = std::min(expected.memory, memory_to_give(limits, basis_.capacity));
    }
    if (request.gpu_memory > Bytes{}) {
      compared_.see(group.name, "gpu-memory", request.gpu_memory, taken.gpu_memory);
    } else if (wanted.learns_gpu_memory && expected.gpu_memory > Bytes{}) {
      const Limits limits = trainyard::limits(basis_.configuration, basis_.capacity);
      Request with = request;
      with.gpu_memory = expected.gpu_memory;
      // It may have been learned on a larger card.
      if (!never_fits(with, limits, basis_.capacity)) request = with;
    }
    wanted.load_expected = expected.load;
    if (wanted.train_expected == Duration{0}) wanted.train_expected = expected.train;
  }

  /// Whether remain-limit leaves memory for tasks at all. Where it does not, it is the mistake, and
  /// not the tasks.
  bool check_memory() {
    const Configuration& configuration = basis_.configuration;
    const Bytes memory = basis_.capacity.memory;
    const auto remain = configuration.size(Setting::RemainLimitMemory);
    if (!remain || *remain < memory || memory.count == 0) return true;
    mistakes_.add(configuration.mistake(
        Setting::RemainLimitMemory,
        fmt::format("remain-limit.memory: '{}' leaves nothing of this machine's memory, {}",
                    configuration.text(Setting::RemainLimitMemory), to_text(memory))));
    return false;
  }

  void check_shapes() {
    Limits limits = trainyard::limits(basis_.configuration, basis_.capacity);
    if (!check_memory()) limits.memory_remain = Bytes{};
    for (std::size_t i = 0; i < owners_.size(); ++i) {
      const ShapeOwner& owner = owners_[i];
      const GroupSpec& group = spec_.groups[owner.group];
      const TaskSpec& task = group.tasks[owner.origin.task];
      const Request& request = job_.plan.shapes[i].request;
      const auto said_at = [&](const std::optional<Text> Wants::* which) {
        const std::optional<Text>& text = first_said(task.wants.*which, group.wants.*which);
        return text ? text->place : task.place;
      };
      bind_combination(group, owner.origin.combination, bindings_);
      const std::string id = make_id(group, owner.origin, bindings_);
      if (const auto why = cannot_see_gpus(basis_.capacity, job_.plan.shapes[i])) {
        complain(task.place, group, fmt::format("task '{}' can never run here: {}", id, *why));
      }
      if (const auto why = never_fits(request, limits, basis_.capacity)) {
        const bool memory = request.memory > memory_to_give(limits, basis_.capacity);
        const bool cpus = request.cpus > basis_.capacity.cpus;
        const std::optional<Text> Wants::* which = memory                   ? &Wants::memory
                                                   : cpus                   ? &Wants::cpus
                                                   : request.gpu            ? &Wants::device
                                                   : says_gpus(task, group) ? &Wants::gpus
                                                                            : &Wants::gpu_memory;
        complain(said_at(which), group, fmt::format("task '{}' can never run here: {}", id, *why));
      }
    }
  }

  /// `gpus: 0` beside an amount of a GPU's memory is not what asks for one.
  bool says_gpus(const TaskSpec& task, const GroupSpec& group) const {
    const auto& number = first_said(task.wants.gpus, group.wants.gpus);
    return number && parse_count(number->text.fill(bindings_)).value_or(0) > 0;
  }

  [[nodiscard]] std::size_t group_of(std::uint32_t task) const {
    const auto after = std::ranges::upper_bound(job_.group_starts, task);
    return static_cast<std::size_t>(after - job_.group_starts.begin()) - 1;
  }

  struct Named {
    const GroupSpec* group = nullptr;
    const TaskSpec* task = nullptr;
    std::string id;
    [[nodiscard]] Place place() const { return task->id ? task->id->place : task->place; }
  };
  Named named(std::uint32_t index) {
    const GroupSpec& group = spec_.groups[group_of(index)];
    const TaskOrigin origin = origin_of(group, index - job_.group_starts[group_of(index)]);
    bind_combination(group, origin.combination, bindings_);
    return {.group = &group,
            .task = &group.tasks[origin.task],
            .id = make_id(group, origin, bindings_)};
  }

  void check_ids() {
    const bool over_groups =
        !grouping() || !basis_.configuration.flag(Setting::TaskAllowDuplicateId);
    std::ranges::sort(ids_);
    for (std::size_t i = 1; i < ids_.size(); ++i) {
      if (ids_[i].hash != ids_[i - 1].hash) continue;
      const Named first = named(ids_[i - 1].task);
      const Named second = named(ids_[i].task);
      if (first.id != second.id) continue;
      if (first.group != second.group && !over_groups) continue;
      complain_of_twins(first, second);
    }
  }

  void complain_of_twins(const Named& first, const Named& second) {
    if (!twins_.emplace(first.task, second.task).second) return;
    const Place other = first.place();
    if (first.task == second.task) {
      complain(second.place(), *second.group,
               fmt::format("the id '{}' is the same for several combinations of the matrix; "
                           "put placeholders in it that tell them apart",
                           second.id));
    } else if (first.group == second.group) {
      complain(second.place(), *second.group,
               fmt::format("the id '{}' is taken twice; the other is at {}:{}:{}", second.id,
                           document_.file(), other.line, other.column));
    } else {
      complain(second.place(), *second.group,
               fmt::format("the id '{}' is also in group '{}' at {}:{}:{}, and {}", second.id,
                           first.group->name, document_.file(), other.line, other.column,
                           grouping() ? "task.allow-duplicate-id is false"
                                      : "without task.directory-grouping they would share a "
                                        "directory"));
    }
  }

  const JobSpec& spec_;
  const PlanBasis& basis_;
  const YamlDocument& document_;
  MistakeList& mistakes_;
  PlannedJob job_;

  // Of the group that is being multiplied.
  std::size_t group_number_ = 0;
  Bindings bindings_{Bindings(kMatrixSlots)};
  std::map<Wanted, ShapeIndex> shapes_;
  std::vector<std::optional<ShapeIndex>> same_for_all_;
  std::set<std::pair<std::size_t, std::string>> complained_;

  WrittenAndTaken compared_;
  std::vector<NumberedId> ids_;
  std::vector<ShapeOwner> owners_;
  std::set<std::pair<const TaskSpec*, const TaskSpec*>> twins_;
};

}  // namespace

PlannedJob plan_job(const JobSpec& spec, const PlanBasis& basis, const YamlDocument& document,
                    MistakeList& mistakes) {
  return PlanMaker(spec, basis, document, mistakes).make();
}

}  // namespace trainyard
