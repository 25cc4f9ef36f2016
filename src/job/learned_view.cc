#include "job/learned_view.h"

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <map>
#include <ranges>
#include <string_view>
#include <tuple>

#include <fmt/format.h>

#include "base/duration_text.h"
#include "base/result.h"
#include "model/plan.h"
#include "model/terms.h"
#include "settings/setting_value.h"

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
                         Gathering(LearnedNumber{.key = key, .said = std::move(said)}))
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

/// A number in the file.
struct Standing {
  std::int64_t value = 0;
  bool grows = false;  ///< "at least"
  bool is_auto = false;
};

std::optional<Standing> read_standing(TaskKey key, const std::string& text) {
  if (key == TaskKey::Duration) {
    const Result<Duration> time = parse_duration(text);
    return time ? std::optional(Standing{.value = time->count()}) : std::nullopt;
  }
  const Result<settings::MemoryWish> size = settings::parse_gpu_memory(text);
  if (!size) return std::nullopt;
  const bool is_auto = size->learned && size->bytes == Bytes{};
  return Standing{
      .value = size->bytes.count, .grows = size->learned && !is_auto, .is_auto = is_auto};
}

std::string text_of(TaskKey key, std::int64_t value) {
  return key == TaskKey::Duration ? time_to_write(Duration{value}) : size_to_write({value});
}

/// Whether it is uncertain that a smaller amount would be enough.
bool is_unsure(const LearnedNumber& number, const LearnedFor& here) {
  const bool other_card = number.key == TaskKey::GpuMemory && !number.from.gpu.empty() &&
                          std::ranges::find(here.gpus, number.from.gpu) == here.gpus.end();
  return number.at_least || number.hard || other_card;
}

/// See LearnedNumber::suggested.
std::string suggestion(const LearnedNumber& number, const LearnedFor& here) {
  const std::int64_t now = number.should_be;
  if (now == 0) return {};
  const std::string text = text_of(number.key, now);
  const bool unsure = is_unsure(number, here);
  std::string safe = unsure ? "at least " + text : text;
  if (!number.said) return number.key == TaskKey::Duration ? std::string() : safe;
  if (!number.said->fixed) return {};
  const std::optional<Standing> standing = read_standing(number.key, number.said->text);
  if (!standing) return {};
  if (standing->is_auto) return safe;
  const bool near = std::abs(now - standing->value) * 10 <= standing->value;
  if (near || (unsure && now < standing->value)) return {};
  return standing->grows ? "at least " + text : text;
}

}  // namespace

std::string size_to_write(Bytes size) {
  struct Unit {
    std::int64_t bytes;
    std::string_view name;
  };
  constexpr std::array<Unit, 3> kUnits{{{.bytes = 1'000'000'000, .name = "GB"},
                                        {.bytes = 1'000'000, .name = "MB"},
                                        {.bytes = 1'000, .name = "kB"}}};
  std::int64_t step = 1;
  while (size.count / step >= 1'000) step *= 10;
  const std::int64_t rounded = (size.count + step - 1) / step * step;
  const auto unit =
      std::ranges::find_if(kUnits, [&](const Unit& it) { return rounded >= it.bytes; });
  if (unit == kUnits.end()) return "1kB";
  const double count = static_cast<double>(rounded) / static_cast<double>(unit->bytes);
  // Three digits at most, so that these are all that count.
  return fmt::format("{:.4g}{}", count, unit->name);
}

std::string time_to_write(Duration time) {
  const std::int64_t milliseconds = time.count();
  constexpr std::int64_t kSecond = 1'000;
  constexpr std::int64_t kMinute = 60 * kSecond;
  constexpr std::int64_t kHour = 60 * kMinute;
  if (milliseconds < kSecond) return fmt::format("{}ms", milliseconds);
  if (milliseconds < 10 * kSecond) {
    constexpr std::int64_t kTenth = kSecond / 10;
    const std::int64_t tenths = (milliseconds + kTenth - 1) / kTenth;
    return fmt::format("{:.3g}s", static_cast<double>(tenths) / 10);
  }
  if (milliseconds < 10 * kMinute) {
    return fmt::format("{}s", (milliseconds + kSecond - 1) / kSecond);
  }
  const std::int64_t minutes = (milliseconds + kMinute - 1) / kMinute;
  if (minutes * kMinute < kHour) return fmt::format("{}m", minutes);
  const std::int64_t rest = minutes % 60;
  return rest == 0 ? fmt::format("{}h", minutes / 60) : fmt::format("{}h{}m", minutes / 60, rest);
}

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
    LearnedGroup group{.name = plan.groups[number].name};
    const bool known = learned.knows(group.name);
    Numbers numbers;
    for (; task < plan.tasks.size() && job.group_of({task}).value == number; ++task) {
      if (known) add_task(job, {task}, learned, group, numbers);
    }
    if (!known) continue;
    for (auto& [place, number_of_tasks] : numbers) {
      LearnedNumber gathered = std::move(number_of_tasks).take();
      gathered.suggested = suggestion(gathered, job.here());
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
