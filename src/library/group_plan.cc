#include "library/group_plan.h"

#include <expected>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <typeinfo>
#include <utility>

#include <fmt/format.h>

#include "base/fingerprint.h"
#include "job/gpu_variables.h"
#include "job/raised_numbers.h"
#include "job/task_environment.h"
#include "job/task_keys.h"
#include "job/task_terms.h"
#include "library/task_state.h"
#include "model/ids.h"
#include "model/terms.h"
#include "run/run_directory.h"
#include "schedule/scheduler.h"
#include "text/file_name.h"
#include "trainyard/task_options.h"

namespace trainyard::library {
namespace {

Result<void> check_id(const std::string& id) {
  if (const std::optional<std::string> why = text::why_unsafe(id)) {
    return std::unexpected(Error{fmt::format("the id of a task '{}' {}", id, *why)});
  }
  if (run::taken_in_run_directory(id)) {
    return std::unexpected(Error{fmt::format("the id '{}' is a name that trainyard uses", id)});
  }
  return {};
}

/// An amount is what it says, or it may grow.
Result<void> check_memory(const TaskOptions& options) {
  if (options.memory && options.memory_at_least) {
    return std::unexpected(Error{"memory: cannot be combined with memory_at_least"});
  }
  if (options.gpu_memory && options.gpu_memory_at_least) {
    return std::unexpected(Error{"gpu_memory: cannot be combined with gpu_memory_at_least"});
  }
  return {};
}

Result<void> check_environment(const TaskOptions& options) {
  const auto wrong = [](std::string_view name, std::string_view why) {
    return std::unexpected(Error{fmt::format("environment: '{}' {}", name, why)});
  };
  for (const auto& [name, value] : options.environment) {
    if (const auto why = job::why_not_to_set(name)) return wrong(name, *why);
    if (value.contains('\0')) return wrong(name, "has a value with a NUL in it");
    if (name.size() + value.size() + 2 > job::kVariableMax)
      return wrong(name, "has more than 128 KiB");
  }
  return {};
}

struct AskedOfTask {
  job::Asked asked;
  /// The task itself names a device, and only its group says anything else of GPUs.
  bool device_goes_first = false;
};

/// The options of a task and of its group, read by the rules of a job file's keys. The task's word
/// counts over its group's. An error names the option: "retries: ...".
Result<AskedOfTask> asked_of(const TaskOptions& own, const TaskOptions& group) {
  AskedOfTask found{.device_goes_first = !own.device.empty() && !own.gpus && !own.gpu_memory &&
                                         !own.gpu_memory_at_least};
  for (const TaskOptions* const options : {&group, &own}) {
    if (Result<void> fine = check_environment(*options); !fine) {
      return std::unexpected(std::move(fine.error()));
    }
    if (Result<void> fine = check_memory(*options); !fine) {
      return std::unexpected(std::move(fine.error()));
    }
    for (const job::TaskKeyInfo& info : job::task_keys()) {
      const auto text = info.option == nullptr ? std::nullopt : info.option(*options);
      if (!text) continue;
      Result<void> taken = info.take(*text, found.asked);
      if (!taken) return std::unexpected(std::move(taken.error()).in(std::string(info.name)));
    }
  }
  // A task of the library has two phases: it loads, and then waits for its device.
  found.asked.terms.two_phase = true;
  return found;
}

/// On what terms a task runs, by the rules of a job file.
Result<model::Terms> terms_of(Task& task, const TaskGroup& group, const GroupBasis& basis) {
  const auto refuse = [&task](std::string_view what) {
    return std::unexpected(Error{fmt::format("task '{}': {}", task.id(), what)});
  };
  const Result<AskedOfTask> asked = asked_of(TaskAccess::state(task).options, group.defaults());
  if (!asked) return refuse(asked.error().message);
  const job::TermsBasis terms{.configuration = basis.configuration, .capacity = basis.capacity};
  job::MadeTerms made = job::make_terms(asked->asked, asked->device_goes_first, terms);
  if (!made.mistakes.empty()) {
    const job::TermsMistake& first = made.mistakes.front();
    return refuse(fmt::format("{}: {}", job::info_of(first.key).name, first.message));
  }
  if (basis.learned.knows(group.name())) {
    const job::ExpectedTask expected =
        basis.learned.expected(group.name(), task.id(), basis.here, class_fingerprint(task));
    const job::LearnedUse use = job::use_learned(made.terms, expected, terms);
    if (use.gpu_memory && !asked->asked.cpus) {
      made.terms.request.cpus = job::default_cpus(made.terms, terms);
    }
    if (basis.notes != nullptr) {
      basis.notes->see(group.name(), {.terms = made.terms, .expected = expected, .use = use});
    }
  }
  return made.terms;
}

}  // namespace

std::int64_t class_fingerprint(const Task& task) {
  Fingerprint print;
  print.add(typeid(task).name());
  return static_cast<std::int64_t>(print.value() >> 1U);
}

std::string part_name(const std::string& group, int part) {
  return part > 1 ? fmt::format("{} ({})", group, part) : group;
}

Result<void> check_ids(const std::vector<Task*>& tasks) {
  std::set<std::string_view> ids;
  for (const Task* const task : tasks) {
    if (Result<void> good = check_id(task->id()); !good) return good;
    if (ids.insert(task->id()).second) continue;
    return std::unexpected(Error{fmt::format("duplicate id '{}'", task->id())});
  }
  return {};
}

Result<model::Plan> plan_of(const TaskGroup& group, int part, const std::vector<Task*>& tasks,
                            const GroupBasis& basis) {
  if (group.options().parallel_max < 0) {
    return std::unexpected(Error{fmt::format(
        "parallel_max: {} is not a valid number of tasks; 0 is as many as there is room for",
        group.options().parallel_max)});
  }
  const bool by_group = basis.configuration.flag(settings::Setting::TaskDirectoryGrouping);
  const model::Policy policy = settings::policy(basis.configuration, basis.capacity);
  model::Plan plan;
  plan.groups.push_back({.name = group.name(),
                         .called = part > 1 ? part_name(group.name(), part) : std::string(),
                         .directory = run::group_directory(1, group.name(), by_group),
                         .parallel_max = group.options().parallel_max,
                         .fail_fast = group.options().fail_fast,
                         .try_first = group.options().try_first});
  std::map<model::Terms, model::ShapeIndex> shapes;
  job::RaisedNumbers raised;
  for (Task* const task : tasks) {
    const Result<model::Terms> terms = terms_of(*task, group, basis);
    if (!terms) return std::unexpected(terms.error());
    const model::Shape shape{.group = {0}, .terms = *terms};
    std::optional<std::string> why = job::cannot_see_gpus(basis.capacity, shape);
    if (const auto misfit =
            schedule::never_fits(model::request_of(*terms), policy, basis.capacity)) {
      why = "it " + misfit->why;
    }
    if (why) {
      return std::unexpected(
          Error{fmt::format("task '{}' can never run here: {}", task->id(), *why)});
    }
    const model::ShapeIndex next{static_cast<std::uint32_t>(plan.shapes.size())};
    const auto [known, is_new] = shapes.try_emplace(*terms, next);
    if (is_new) plan.shapes.push_back(shape);
    plan.tasks.push_back({.shape = known->second});
    raised.see(known->second,
               basis.learned.taken(group.name(), task->id()).value_or(job::Learned::Taken{}).task);
  }
  for (std::uint32_t i = 0; i < plan.shapes.size(); ++i) {
    raised.raise({i}, plan.shapes[i].terms,
                 {.configuration = basis.configuration, .capacity = basis.capacity});
  }
  return plan;
}

}  // namespace trainyard::library
