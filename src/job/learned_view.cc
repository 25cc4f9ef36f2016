#include "job/learned_view.h"

#include <algorithm>
#include <functional>
#include <map>
#include <ranges>
#include <string_view>
#include <tuple>

#include "base/bytes.h"
#include "base/time.h"
#include "model/plan.h"
#include "model/terms.h"

namespace trainyard::job {
namespace {

/// The learned number of one task for one key.
struct OfTask {
  std::int64_t taken = 0;
  bool at_least = false;
  std::int64_t reserved = 0;
  std::int64_t expected = 0;
  LearnedFrom from;
  bool asked = true;
  bool other_command = false;
};

OfTask number_of(TaskKey key, const model::Terms& terms, const Learned::Taken& taken,
                 const ExpectedTask& expected) {
  switch (key) {
    case TaskKey::Memory:
      return {.taken = taken.task.memory.count,
              .at_least = taken.task.memory_at_least,
              .reserved = terms.request.memory.count,
              .expected = expected.memory.value.count,
              .from = expected.memory.from,
              .other_command = expected.other_command};
    case TaskKey::GpuMemory:
      return {.taken = taken.task.gpu_memory.count,
              .reserved = terms.request.gpu_memory.count,
              .expected = expected.gpu_memory.value.count,
              .from = expected.gpu_memory.from,
              .asked = terms.request.gpus > 0,
              .other_command = expected.other_command};
    default:
      return {.taken = taken.task.train.count(),
              .reserved = terms.train_expected.count(),
              .expected = expected.train.value.count(),
              .from = expected.train.from};
  }
}

/// Sums up the numbers of one place.
class Gathering {
 public:
  explicit Gathering(LearnedNumber number) : number_(std::move(number)) {}

  void add(const OfTask& task, bool hard) {
    const bool first = number_.tasks++ == 0;
    number_.taken_most = std::max(number_.taken_most, task.taken);
    number_.at_least = number_.at_least || (task.at_least && task.taken > 0);
    number_.reserved_least =
        first ? task.reserved : std::min(number_.reserved_least, task.reserved);
    number_.reserved_most = std::max(number_.reserved_most, task.reserved);
    number_.hard = number_.hard || hard;
    number_.asked = number_.asked || task.asked;
    if (task.expected == 0) return;
    const bool newer = task.from.started_unix_ms > number_.from.started_unix_ms;
    if (newer || number_.from == LearnedFrom{}) number_.from = task.from;
    number_.other_command = number_.other_command || task.other_command;
    if (task.other_command) return;
    most_ = std::max(most_, task.expected);
    sum_ += static_cast<double>(task.expected);
    ++known_;
  }

  [[nodiscard]] LearnedNumber take() && {
    const bool is_time = number_.key == TaskKey::Duration;
    number_.should_be = is_time && known_ > 0
                            ? static_cast<std::int64_t>(sum_ / static_cast<double>(known_))
                            : most_;
    return std::move(number_);
  }

 private:
  LearnedNumber number_;
  std::int64_t most_ = 0;
  double sum_ = 0;
  std::size_t known_ = 0;
};

/// By key and place, numbers without a place first.
using Numbers = std::map<std::tuple<std::size_t, int, int>, Gathering>;

void add_task(const Job& job, model::TaskIndex task, const Learned& learned, LearnedGroup& group,
              Numbers& numbers) {
  const model::Terms& terms = job.plan().shape_of(task).terms;
  const std::string id = job.task_id(task);
  const std::optional<Learned::Taken> taken = learned.taken(group.name, id);
  const ExpectedTask expected =
      learned.expected(group.name, id, job.here(), job.command_fingerprint(task));
  ++group.tasks;
  for (std::size_t place = 0; place < kLearnedKeys.size(); ++place) {
    const TaskKey key = kLearnedKeys.at(place);
    std::optional<Job::SaidValue> said = job.said_value(task, key);
    const int line = said ? said->place.line : 0;
    const int column = said ? said->place.column : 0;
    const auto number =
        numbers
            .try_emplace({place, line, column},
                         Gathering(LearnedNumber{.key = key, .said = std::move(said), .from = {}}))
            .first;
    const bool hard = key == TaskKey::Memory && terms.memory_hard;
    number->second.add(number_of(key, terms, taken.value_or(Learned::Taken{}), expected), hard);
  }
  if (!taken) return;
  group.cells.push_back({.id = id,
                         .taken = *taken,
                         .memory = terms.request.memory.count,
                         .gpu_memory = terms.request.gpu_memory.count,
                         .duration = terms.train_expected.count()});
}

/// The known tasks that the file no longer has.
std::vector<std::pair<std::string, std::size_t>> gone_from(const LearnedView& view,
                                                           const Learned& learned) {
  std::map<std::string, std::size_t, std::less<>> counts;
  learned.each([&](std::string_view group, std::string_view, const Learned::Taken&) {
    ++counts[std::string(group)];
  });
  for (const LearnedGroup& group : view.groups) counts[group.name] -= group.cells.size();
  std::vector<std::pair<std::string, std::size_t>> gone;
  for (const auto& [name, count] : counts) {
    if (count > 0) gone.emplace_back(name, count);
  }
  return gone;
}

}  // namespace

bool LearnedGroup::cells_differ() const {
  if (cells.empty()) return false;
  const LearnedCell& first = cells.front();
  const bool alike = std::ranges::all_of(cells, [&first](const LearnedCell& cell) {
    return cell.memory == first.memory && cell.gpu_memory == first.gpu_memory &&
           cell.duration == first.duration;
  });
  const auto took_alike = [this](auto number) {
    const auto [least, most] = std::ranges::minmax(cells | std::views::transform(number));
    return most * 4 <= least * 5;
  };
  return !alike ||
         !took_alike([](const LearnedCell& cell) { return cell.taken.task.memory.count; }) ||
         !took_alike([](const LearnedCell& cell) { return cell.taken.task.gpu_memory.count; });
}

LearnedView view_learned(const Job& job, Learned learned) {
  job.compare_commands(learned);
  LearnedView view;
  const model::Plan& plan = job.plan();
  std::uint32_t task = 0;
  for (std::uint32_t number = 0; number < plan.groups.size(); ++number) {
    LearnedGroup group{.name = plan.groups[number].name, .numbers = {}, .cells = {}};
    const bool known = learned.knows(group.name);
    Numbers numbers;
    for (; task < plan.tasks.size() && job.group_of({task}).value == number; ++task) {
      if (known) add_task(job, {task}, learned, group, numbers);
    }
    if (!known) continue;
    for (auto& [place, number_of_tasks] : numbers) {
      LearnedNumber gathered = std::move(number_of_tasks).take();
      const bool of_no_gpu = gathered.key == TaskKey::GpuMemory && !gathered.asked;
      const bool something = gathered.taken_most != 0 || gathered.should_be != 0 || gathered.said;
      if (!of_no_gpu && something) group.numbers.push_back(std::move(gathered));
    }
    view.groups.push_back(std::move(group));
  }
  view.gone = gone_from(view, learned);
  for (const LearnedGroup& group : view.groups) view.tasks += group.cells.size();
  for (const auto& [name, count] : view.gone) view.tasks += count;
  return view;
}

}  // namespace trainyard::job
