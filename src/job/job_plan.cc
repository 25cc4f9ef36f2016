#include "job/job_plan.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "base/result.h"
#include "base/time.h"
#include "job/gpu_variables.h"
#include "job/gpu_wish.h"
#include "job/job_binding.h"
#include "job/lack.h"
#include "job/learned_notes.h"
#include "job/needs_check.h"
#include "job/raised_numbers.h"
#include "job/task_environment.h"
#include "job/task_keys.h"
#include "model/ids.h"
#include "model/terms.h"
#include "run/run_directory.h"
#include "schedule/fits_nowhere.h"
#include "schedule/ledger.h"
#include "settings/setting_value.h"
#include "text/file_name.h"
#include "text/placeholder.h"

namespace trainyard::job {
namespace {

/// Number of tasks without room that a dry run names.
constexpr std::size_t kWithoutRoomShown = 10;
/// A text for the shell that is shorter is short enough with the names of its variables.
constexpr std::size_t kLongText = kVariableMax / 4;

/// The part of a long word that people need to find it, as in " ('--data=0,1,2...')"; nothing if it
/// would not be readable.
std::string beginning_of(std::string_view word) {
  constexpr std::ptrdiff_t kShown = 20;
  const auto unreadable = [](char byte) { return byte < ' ' || byte > '~'; };
  const auto end = std::find_if(word.begin(), word.begin() + kShown, unreadable);
  if (end == word.begin()) return "";
  return fmt::format(" ('{}...')", std::string_view(word.begin(), end));
}

/// The note about tasks that share GPUs but leave them idle for want of CPUs, which no key
/// requests: each task has at least a quarter of a CPU, and one that trains on a GPU may need less.
/// `tasks` are those of the group. Nothing if the CPUs are enough for as many tasks as the GPUs and
/// the memory.
std::optional<std::string> idle_gpus_note(const std::string& group, std::int64_t tasks,
                                          const model::Request& request,
                                          const model::Policy& policy,
                                          const model::Capacity& capacity) {
  if (request.gpu_memory == Bytes{} || request.cpus == model::Cpus{}) return std::nullopt;
  const std::int64_t on_gpus = tasks_on_gpus(request, policy, capacity);
  const std::int64_t on_cpus = capacity.cpus.milli / request.cpus.milli;
  const Bytes memory = capacity.memory - schedule::memory_kept_free(policy, capacity);
  const std::int64_t in_memory =
      request.memory > Bytes{} ? memory.count / request.memory.count : tasks;
  const std::int64_t wanted = std::min({on_gpus, in_memory, tasks});
  if (on_cpus >= wanted) return std::nullopt;
  // Rounded down, so that as many really fit.
  const std::int64_t hundredths = capacity.cpus.milli / wanted / 10;
  return fmt::format(
      "group '{}': the GPUs{} have room for {} of its tasks at once, the CPUs for {}: with "
      "'cpus: {}' all of them run",
      group, wanted == in_memory && wanted < std::min(on_gpus, tasks) ? " and the memory" : "",
      wanted, on_cpus, static_cast<double>(hundredths) / 100);
}

struct ProcessMistake {
  text::Place place;
  std::string_view key;
  std::string_view message;
};

/// The mistakes in the keys of a task and its group that set its number of processes, and exclude
/// each other. They do not depend on placeholders.
std::vector<ProcessMistake> process_mistakes(const GroupSpec& group, const TaskSpec& task) {
  std::vector<ProcessMistake> mistakes;
  const auto complain = [&](TaskKey key, std::string_view message) {
    if (const Text* const text = said(group, task, key)) {
      mistakes.push_back({.place = text->place, .key = info_of(key).name, .message = message});
    }
  };
  if (!group.preload.empty()) {
    complain(TaskKey::Ranks, "a task with 'preload' is one process");
    complain(TaskKey::Workers, "a task with 'preload' is one process");
  }
  if (said(group, task, TaskKey::Workers) != nullptr) {
    complain(TaskKey::Ranks, "cannot be combined with 'workers'");
    complain(TaskKey::Launcher, "cannot be combined with 'workers', which trainyard starts itself");
    const Text* const two_phase = said(group, task, TaskKey::TwoPhase);
    const bool is_off = two_phase != nullptr && two_phase->text.text() == "false";
    if (!is_off) complain(TaskKey::TwoPhase, "one process waits for a device, and no 'workers' do");
  }
  return mistakes;
}

std::string size_mistake(std::size_t size, std::size_t max) {
  return fmt::format(
      "has {} bytes, but a program can be given at most {} (128 KiB); write it to a file and use "
      "the name of the file here",
      size, max);
}

class PlanMaker {
 public:
  PlanMaker(const JobSpec& spec, const PlanBasis& basis, const text::YamlDocument& document,
            text::MistakeList& mistakes)
      : spec_(spec), basis_(basis), document_(document), mistakes_(mistakes) {}

  PlannedJob make() {
    std::vector<Needs> needs = resolve_needs(spec_, basis_.groups_before, document_, mistakes_);
    for (std::size_t i = 0; i < spec_.groups.size(); ++i) {
      const GroupSpec& group = spec_.groups[i];
      job_.plan.groups.push_back(
          {.name = group.name,
           .called = called_in_run(group, spec_, basis_.batch, basis_.groups_before),
           .directory = directory_of(group),
           .needs = std::move(needs[i].own),
           .needs_earlier = std::move(needs[i].earlier),
           .needs_by_task = std::move(needs[i].by_task),
           .parallel_max = group.parallel_max,
           .fail_fast = group.fail_fast,
           .try_first = group.try_first.value_or(spec_.try_first && needs[i].by_task.empty())});
      job_.group_starts.push_back(static_cast<std::uint32_t>(job_.plan.tasks.size()));
      if (run::taken_in_run_directory(group.name) && grouping_ && basis_.batch == 1) {
        complain(group.name_place, group,
                 fmt::format("the name '{}' is reserved: trainyard uses it in the run directory",
                             group.name));
      }
      if (group.matrix_broken || group.tasks.empty()) continue;
      if (job_.plan.tasks.size() + count_tasks(group) > kTasksMax) {
        complain(group.place, group, fmt::format("the job has more than {} tasks", kTasksMax));
        break;
      }
      add_group(i);
    }
    // A key may have lost its meaning only because another mistake has removed something.
    if (mistakes_.empty()) {
      for (const auto& it : gpu_keys_.mistakes()) complain(it.place, *it.group, it.message);
    }
    check_shapes();
    check_ids();
    std::ranges::move(told_.notes(), std::back_inserter(job_.notes));
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
  /// The first task that has a shape.
  struct ShapeOwner {
    std::size_t group = 0;
    TaskOrigin origin;
  };

  [[nodiscard]] std::string directory_of(const GroupSpec& group) const {
    return group.round ? run::round_directory(name_in_round(group.name, *group.round), *group.round,
                                              grouping_)
                       : run::group_directory(basis_.batch, group.name, grouping_);
  }

  void complain(text::Place place, const GroupSpec& group, std::string_view message) {
    mistakes_.add(document_.mistake(place, fmt::format("group '{}': {}", group.name, message)));
  }

  /// To be said after a mistake that not every combination has.
  [[nodiscard]] std::string in_combination(const GroupSpec& group) const {
    if (!group.has_matrix) return "";
    return fmt::format(" (in the combination {})", combination_text(group, bindings_));
  }

  void add_group(std::size_t number) {
    const GroupSpec& group = spec_.groups[number];
    const std::size_t first = job_.plan.shapes.size();
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
    raised_.raise_all({.name = group.name, .first = first, .basis = terms_basis()},
                      job_.plan.shapes, job_.learned_uses, compared_);
  }

  /// Each kind of complaint once for each task of the file, not for each combination.
  bool first_time(std::size_t task, std::string_view about) {
    return complained_.emplace(task, about).second;
  }

  bool has_all_values(const GroupSpec& group, TaskOrigin origin) {
    const TaskSpec& task = group.tasks[origin.task];
    bool has_all = true;
    const auto look = [&](const text::Template& text, text::Place place) {
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
      for (const auto& [key, text] : wants->said) look(text.text, text.place);
      for (const auto& [name, text] : wants->environment) look(text.text, text.place);
    }
    for (const text::Template& argument : task.arguments) look(argument, task.command_place);
    if (task.id) look(task.id->text, task.id->place);
    return has_all;
  }

  /// The kernel starts no program with a longer argument or variable. The task's directories and
  /// values of needed tasks are not known yet and do not count.
  void check_sizes(const GroupSpec& group, TaskOrigin origin) {
    const TaskSpec& task = group.tasks[origin.task];
    if (task.in_shell) {
      check_shell_size(group, origin);
    } else {
      for (std::size_t i = 0; i < task.arguments.size(); ++i) {
        const std::size_t size = task.arguments[i].filled_size(bindings_);
        if (size < kVariableMax || !first_time(origin.task, fmt::format("size of {}", i))) continue;
        complain(task.command_place, group,
                 fmt::format("command: word {}{} {}", i + 1,
                             beginning_of(task.arguments[i].fill(bindings_)),
                             size_mistake(size, kVariableMax - 1)));
      }
    }
    for (const Wants* const wants : {&group.wants, &task.wants}) {
      for (const auto& [name, text] : wants->environment) {
        const std::size_t size = text.text.filled_size(bindings_);
        if (name.size() + size + 2 <= kVariableMax) continue;
        if (!first_time(origin.task, "size of env " + name)) continue;
        complain(text.place, group,
                 fmt::format(
                     "env: {} {}", name,
                     size_mistake(size, kVariableMax - std::min(kVariableMax, name.size() + 2))));
      }
    }
  }

  /// The shell gets values as variables, so that its text is the same in all combinations.
  void check_shell_size(const GroupSpec& group, TaskOrigin origin) {
    const TaskSpec& task = group.tasks[origin.task];
    if (task.arguments.empty()) return;
    const text::Template& text = task.arguments.front();
    if (text.text().size() < kLongText || !first_time(origin.task, "size of text")) return;
    const std::size_t size = shell_words(task, text.command(bindings_).text).back().size();
    if (size < kVariableMax) return;
    complain(task.command_place, group,
             fmt::format("command: the text {}", size_mistake(size, kVariableMax - 1)));
  }

  void add_task(const GroupSpec& group, TaskOrigin origin) {
    const TaskSpec& task = group.tasks[origin.task];
    check_sizes(group, origin);
    const std::string id = make_id(group, origin, bindings_);
    bindings_[kTaskIdSlot] = id;
    check_id(group, origin, id);
    ids_.push_back({.hash = std::hash<std::string_view>{}(id),
                    .task = static_cast<std::uint32_t>(job_.plan.tasks.size())});

    std::optional<model::ShapeIndex>& same = same_for_all_[origin.task];
    model::ShapeIndex shape;
    if (same) {
      shape = *same;
    } else {
      shape = shape_of(group, origin);
      const bool alike = !terms_depend(group.wants) && !terms_depend(task.wants);
      if (alike && !basis_.learned.knows(group.name)) same = shape;
    }
    job_.plan.tasks.push_back({.shape = shape});
  }

  /// Whether the terms may differ from combination to combination.
  static bool terms_depend(const Wants& wants) {
    return std::ranges::any_of(wants.said, [](const auto& it) {
      return info_of(it.first).take != nullptr && it.second.text.uses_any();
    });
  }

  void check_id(const GroupSpec& group, TaskOrigin origin, const std::string& id) {
    const TaskSpec& task = group.tasks[origin.task];
    const auto why = text::why_unsafe(id);
    const bool of_rounds = spec_.repeat && !group.round && id.starts_with("round-");
    const bool taken =
        !why && !grouping_ && basis_.batch == 1 && (run::taken_in_run_directory(id) || of_rounds);
    if ((!why && !taken) || !first_time(origin.task, "id")) return;
    const text::Place place = task.id ? task.id->place : task.place;
    if (taken) {
      complain(place, group,
               fmt::format("the id '{}' is reserved: trainyard uses it in the run directory", id));
    } else {
      complain(place, group,
               fmt::format("the id '{}' {}; it must be a valid directory name{}", id, *why,
                           task.id ? "" : "; give the task an 'id'"));
    }
  }

  model::ShapeIndex shape_of(const GroupSpec& group, TaskOrigin origin) {
    const auto [terms, use] = terms_of(group, origin);
    const auto next = static_cast<std::uint32_t>(job_.plan.shapes.size());
    const auto [known, fresh] = shapes_.try_emplace(terms, model::ShapeIndex{next});
    if (fresh) {
      job_.plan.shapes.push_back(
          {.group = {static_cast<std::uint32_t>(group_number_)}, .terms = terms});
      owners_.push_back({.group = group_number_, .origin = origin});
      job_.learned_uses.push_back(use);
    }
    const std::string id(bindings_[kTaskIdSlot].value_or(""));
    raised_.see(known->second,
                basis_.learned.taken(group.name, id).value_or(Learned::Taken{}).task);
    return known->second;
  }

  /// The request in this combination; complains about values that are not valid.
  Asked asked_of(const GroupSpec& group, TaskOrigin origin) {
    const TaskSpec& task = group.tasks[origin.task];
    Asked asked;
    for (const TaskKeyInfo& info : task_keys()) {
      const Text* const text = said(group, task, info.key);
      if (text == nullptr || info.take == nullptr) continue;
      const bool fixed = !text->text.uses_any();
      const std::string filled = fixed ? text->text.text() : text->text.fill(bindings_);
      const Result<void> taken = info.take(filled, asked);
      if (!taken && first_time(origin.task, fmt::format("{} {}", info.name, filled))) {
        complain(text->place, group,
                 fmt::format("{}: {}{}", info.name, taken.error().message, in_combination(group)));
      }
    }
    return asked;
  }

  struct TermsWithUse {
    model::Terms terms;
    LearnedUse use;  ///< The terms that are learned.
  };
  TermsWithUse terms_of(const GroupSpec& group, TaskOrigin origin) {
    const TaskSpec& task = group.tasks[origin.task];
    const bool device_goes_first = task.wants.find(TaskKey::Device) != nullptr &&
                                   task.wants.find(TaskKey::Gpus) == nullptr &&
                                   task.wants.find(TaskKey::GpuMemory) == nullptr;
    const Asked asked = asked_of(group, origin);
    MadeTerms made = make_terms(asked, device_goes_first, terms_basis());
    gpu_keys_.see(group, task, asked, made.terms);
    for (const TermsMistake& mistake : made.mistakes) {
      const std::string_view name = info_of(mistake.key).name;
      if (!first_time(origin.task, name)) continue;
      const Text* const text = said(group, task, mistake.key);
      complain(text != nullptr ? text->place : task.place, group,
               fmt::format("{}: {}{}", name, mistake.message, in_combination(group)));
    }
    for (const ProcessMistake& mistake : process_mistakes(group, task)) {
      if (!first_time(origin.task, mistake.key)) continue;
      complain(mistake.place, group, fmt::format("{}: {}", mistake.key, mistake.message));
    }
    const LearnedUse use = add_learned(group, origin, made.terms);
    if (use.gpu_memory && !asked.cpus) {
      made.terms.request.cpus = default_cpus(made.terms, terms_basis());
    }
    return {.terms = made.terms, .use = use};
  }

  [[nodiscard]] TermsBasis terms_basis() const {
    return {.configuration = basis_.configuration,
            .capacity = basis_.capacity,
            .machines = basis_.machines};
  }

  /// Learned estimates count where the job file sets nothing, and are reported where they differ.
  LearnedUse add_learned(const GroupSpec& group, TaskOrigin origin, model::Terms& terms) {
    if (!basis_.learned.knows(group.name)) return {};
    const std::string id(bindings_[kTaskIdSlot].value_or(""));
    const Learned::Taken known = basis_.learned.taken(group.name, id).value_or(Learned::Taken{});
    const LearnedTask& taken = known.task;
    const std::int64_t command = command_fingerprint(group, group.tasks[origin.task], bindings_);
    // A smaller measurement of another command does not show that the number in the file is too
    // large, so it is not compared.
    const auto compare = [&](const char* key, Bytes written, Bytes its) {
      if (known.command == command || its > written) compared_.see(group.name, key, written, its);
    };
    if (!terms.learns_memory) compare("memory", terms.request.memory, taken.memory);
    if (terms.request.gpu_memory > Bytes{} && !terms.learns_gpu_memory) {
      compare("gpu-memory", terms.request.gpu_memory, taken.gpu_memory);
    }
    if (terms.train_expected == Duration{0} && taken.train > Duration{0} &&
        !is_alike(known.from, basis_.here)) {
      told_.see_elsewhere(group.name, known.from);
    }
    const ExpectedTask expected = basis_.learned.expected(group.name, id, basis_.here, command);
    const Duration written = terms.train_expected;
    const LearnedUse use = use_learned(terms, expected, terms_basis());
    LearnedUse shown = use;
    if (use.duration && written > Duration{0}) {
      compared_.see(group.name, written, expected.train.value);
      shown.duration = false;
    }
    told_.see(group.name, {.terms = terms, .expected = expected, .use = shown});
    return use;
  }

  /// Whether remain-limit leaves any memory for tasks. If not, it is the mistake, and not the
  /// tasks.
  bool check_memory() {
    auto mistake =
        settings::no_memory_left(basis_.configuration, basis_.capacity.memory, basis_.machine.name);
    if (!mistake) return true;
    mistakes_.add(std::move(*mistake));
    return false;
  }

  /// The reason why a task of a group can never run on the machine.
  struct NoRoom {
    TaskKey key{};
    const Text* text = nullptr;  ///< The request in the file; null: the task has none.
    std::string why;
    bool lacks_gpu = false;  ///< See text::Mistake.
  };

  /// A mistake if the job is to be run. If it is only shown, a note, and the first few are enough.
  /// The shapes of a task may differ in another key, or in learned estimates: a text that is the
  /// same for all of them is one mistake.
  void say_no_room(const ShapeOwner& owner, const NoRoom& room) {
    const bool same = room.text == nullptr || !room.text->text.uses_any();
    if (same && !told_no_room_.emplace(owner.group, owner.origin.task, room.key).second) return;
    const GroupSpec& group = spec_.groups[owner.group];
    text::Mistake mistake =
        document_.mistake(place_of(room.text, group.tasks[owner.origin.task]),
                          fmt::format("group '{}': task '{}' can never run here: {}", group.name,
                                      make_id(group, owner.origin, bindings_), room.why));
    mistake.of_machine = true;
    mistake.lacks_gpu = room.lacks_gpu;
    if (!basis_.only_shown) return mistakes_.add(std::move(mistake));
    job_.lacks_gpu |= room.lacks_gpu;
    if (++without_room_ <= kWithoutRoomShown) job_.notes.push_back(text::to_text(mistake));
  }

  /// The cure that is left where the run uses this machine alone, and it is too small. Without
  /// any GPU, the cure is to run on the CPUs.
  [[nodiscard]] std::string_view larger_machine(TaskKey lacks) const {
    const bool of_gpus =
        (lacks == TaskKey::Gpus || lacks == TaskKey::GpuMemory) && !basis_.capacity.gpus.empty();
    if (lacks != TaskKey::Memory && lacks != TaskKey::Cpus && !of_gpus) return "";
    const bool only_here = basis_.machines.size() <= 1 && !basis_.machine.is_planned;
    return only_here ? "; 'run --on HOST' uses another machine" : "";
  }

  void check_shapes() {
    model::Policy policy = settings::policy(basis_.configuration, basis_.capacity);
    if (!check_memory()) policy.memory_remain = Bytes{};
    const LackBasis basis{.policy = policy,
                          .capacity = basis_.capacity,
                          .machines = basis_.machines,
                          .here = basis_.machine};
    for (std::size_t i = 0; i < owners_.size(); ++i) {
      const ShapeOwner& owner = owners_[i];
      const GroupSpec& group = spec_.groups[owner.group];
      const TaskSpec& task = group.tasks[owner.origin.task];
      model::Request request = model::request_of(job_.plan.shapes[i].terms);
      if (basis_.gpus_unknown) {
        request.gpus = 0;
        request.where.gpu.clear();
      }
      bind_combination(group, owner.origin.combination, bindings_);
      if (const auto why = cannot_see_gpus(basis_.capacity, job_.plan.shapes[i]);
          why && !basis_.gpus_unknown) {
        say_no_room(
            owner,
            {.key = TaskKey::TwoPhase, .text = said(group, task, TaskKey::TwoPhase), .why = *why});
      }
      if (basis_.disk_size && request.disk > *basis_.disk_size) {
        say_no_room(owner, {.key = TaskKey::Disk,
                            .text = said(group, task, TaskKey::Disk),
                            .why = schedule::more_than_the_disk(request.disk, *basis_.disk_size)});
      }
      std::optional<Lack> lack = find_lack(request, basis);
      if (!lack && said(group, task, TaskKey::Cpus) == nullptr) {
        compare_room(owner.group, request, policy);
      }
      while (lack) {
        const bool is_more = lack->key == TaskKey::Memory || lack->key == TaskKey::Cpus;
        const bool of_gpus = request.gpus > 0 && !is_more;
        say_no_room(owner, {.key = lack->key,
                            .text = request_text(group, task, lack->key),
                            .why = fmt::format("{}{}", lack->why, larger_machine(lack->key)),
                            .lacks_gpu = of_gpus});
        // The next shortage of the machine shows once this request is removed.
        if (lack->key == TaskKey::Memory) {
          request.memory = {};
        } else if (lack->key == TaskKey::Cpus) {
          request.cpus = {};
        } else {
          break;
        }
        lack = find_lack(request, basis);
        // A machine that keeps more free than it has is short of memory for any request.
        if (lack && lack->key == TaskKey::Memory && request.memory == Bytes{}) break;
      }
    }
    if (without_room_ > kWithoutRoomShown) {
      const std::size_t more = without_room_ - kWithoutRoomShown;
      job_.notes.push_back(
          fmt::format("{} more reason{} why tasks can never run here", more, more == 1 ? "" : "s"));
    }
  }

  /// Once a group.
  void compare_room(std::size_t group, const model::Request& request, const model::Policy& policy) {
    if (group < groups_compared_) return;
    const std::size_t end = group + 1 < job_.group_starts.size() ? job_.group_starts[group + 1]
                                                                 : job_.plan.tasks.size();
    const std::int64_t tasks = static_cast<std::int64_t>(end) - job_.group_starts[group];
    auto note = idle_gpus_note(spec_.groups[group].name, tasks, request, policy, basis_.capacity);
    if (!note) return;
    groups_compared_ = group + 1;
    job_.notes.push_back(std::move(*note));
  }

  /// The place of a value, or of the task where a default counts.
  static text::Place place_of(const Text* text, const TaskSpec& task) {
    return text != nullptr ? text->place : task.place;
  }

  /// The value that requests what the machine lacks: for CPUs perhaps a number of processes, for
  /// GPUs their memory or a device. Null: a default does.
  const Text* request_text(const GroupSpec& group, const TaskSpec& task, TaskKey lacks) const {
    if (lacks == TaskKey::Gpus && !says_gpus(task, group)) lacks = TaskKey::GpuMemory;
    const Text* text = said(group, task, lacks);
    if (text == nullptr && lacks == TaskKey::GpuMemory) {
      text = said(group, task, says_gpus(task, group) ? TaskKey::Gpus : TaskKey::Device);
    }
    if (lacks != TaskKey::Cpus) return text;
    if (text == nullptr) text = said(group, task, TaskKey::Ranks);
    return text != nullptr ? text : said(group, task, TaskKey::Workers);
  }

  /// `gpus: 0` next to an amount of GPU memory is not the key that requests a GPU.
  bool says_gpus(const TaskSpec& task, const GroupSpec& group) const {
    const Text* const number = said(group, task, TaskKey::Gpus);
    return number != nullptr && settings::parse_count(number->text.fill(bindings_)).value_or(0) > 0;
  }

  [[nodiscard]] std::size_t group_of(std::uint32_t task) const {
    const auto after = std::ranges::upper_bound(job_.group_starts, task);
    return static_cast<std::size_t>(after - job_.group_starts.begin()) - 1;
  }

  struct Named {
    const GroupSpec* group = nullptr;
    const TaskSpec* task = nullptr;
    std::string id;
    [[nodiscard]] text::Place place() const { return task->id ? task->id->place : task->place; }
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
        !grouping_ || !basis_.configuration.flag(settings::Setting::TaskAllowDuplicateId);
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
    const text::Place other = first.place();
    if (first.task == second.task) {
      complain(second.place(), *second.group,
               fmt::format("the id '{}' is the same for several combinations of the matrix; add "
                           "placeholders that make it unique",
                           second.id));
    } else if (first.group == second.group) {
      complain(second.place(), *second.group,
               fmt::format("duplicate id '{}'; the first is at {}:{}:{}", second.id,
                           document_.file(), other.line, other.column));
    } else {
      complain(second.place(), *second.group,
               fmt::format("the id '{}' is also in group '{}' at {}:{}:{}, and {}", second.id,
                           first.group->name, document_.file(), other.line, other.column,
                           grouping_ ? "task.allow-duplicate-id is false"
                                     : "without task.directory-grouping they would share a "
                                       "directory"));
    }
  }

  const JobSpec& spec_;
  const PlanBasis& basis_;
  const text::YamlDocument& document_;
  text::MistakeList& mistakes_;
  const bool grouping_{basis_.configuration.flag(settings::Setting::TaskDirectoryGrouping)};
  PlannedJob job_;

  // State of the group whose matrix is being expanded.
  std::size_t group_number_ = 0;
  text::Bindings bindings_{text::Bindings(kMatrixSlots)};
  std::map<model::Terms, model::ShapeIndex> shapes_;
  std::vector<std::optional<model::ShapeIndex>> same_for_all_;
  std::set<std::pair<std::size_t, std::string>> complained_;

  std::size_t without_room_ = 0;
  std::set<std::tuple<std::size_t, std::size_t, TaskKey>> told_no_room_;  ///< Group, task, key.
  std::size_t groups_compared_ = 0;  ///< Groups before this one need no more words about CPUs.
  GpuKeys gpu_keys_;
  WrittenAndTaken compared_;
  RaisedNumbers raised_;
  LearnedNotes told_{basis_.here};
  std::vector<NumberedId> ids_;
  std::vector<ShapeOwner> owners_;
  std::set<std::pair<const TaskSpec*, const TaskSpec*>> twins_;
};

}  // namespace

PlannedJob plan_job(const JobSpec& spec, const PlanBasis& basis, const text::YamlDocument& document,
                    text::MistakeList& mistakes) {
  PlannedJob job = PlanMaker(spec, basis, document, mistakes).make();
  if (!mistakes.empty()) return job;
  job.plan.task_needs = match_tasks(spec, job.group_starts, document, mistakes);
  check_needs(spec, job, document, mistakes);
  check_repeat(spec, document, mistakes);
  return job;
}

}  // namespace trainyard::job
