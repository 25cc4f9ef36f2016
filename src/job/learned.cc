#include "job/learned.h"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <nlohmann/json_fwd.hpp>

#include "base/bytes.h"
#include "base/percentile.h"
#include "base/result.h"
#include "base/time.h"

namespace trainyard::job {
namespace {

using Json = nlohmann::json;

constexpr int kVersion = 1;
/// No task takes so much, or so long: what says so is damaged.
constexpr std::int64_t kBytesMax = std::int64_t{1} << 60U;
constexpr std::int64_t kMillisecondsMax = std::int64_t{10} * 365 * 86'400'000;

std::optional<std::int64_t> number(const Json& task, const char* key, std::int64_t most) {
  const auto found = task.find(key);
  if (found == task.end()) return 0;
  if (!found->is_number_integer()) return std::nullopt;
  const auto value = found->get<std::int64_t>();
  return value >= 0 && value <= most ? std::optional(value) : std::nullopt;
}

std::optional<LearnedTask> task_of(const Json& json) {
  if (!json.is_object()) return std::nullopt;
  const auto memory = number(json, "memory", kBytesMax);
  const auto gpu_memory = number(json, "gpu_memory", kBytesMax);
  const auto load = number(json, "load_ms", kMillisecondsMax);
  const auto train = number(json, "train_ms", kMillisecondsMax);
  if (!memory || !gpu_memory || !load || !train) return std::nullopt;
  return LearnedTask{.memory = {*memory},
                     .gpu_memory = {*gpu_memory},
                     .load = Duration{*load},
                     .train = Duration{*train}};
}

/// Up to two digits that count: 1,234 is 1,300. Coarsely to the next of 1, 1.3, 1.69, ...: of a
/// large group there shall not be a kind of its own for each task.
std::int64_t rounded_up(std::int64_t value, bool coarsely) {
  if (coarsely) {
    double step = 1;
    while (step < static_cast<double>(value)) step *= 1.3;
    return static_cast<std::int64_t>(step);
  }
  std::int64_t step = 1;
  while (value / step >= 100) step *= 10;
  return (value + step - 1) / step * step;
}

/// Of those that are not 0.
std::int64_t percentile(std::vector<std::int64_t> values) {
  std::erase(values, 0);
  return percentile_95(std::move(values));
}

std::int64_t average(std::vector<std::int64_t> values) {
  std::erase(values, 0);
  if (values.empty()) return 0;
  double sum = 0;
  for (const std::int64_t value : values) sum += static_cast<double>(value);
  return static_cast<std::int64_t>(sum / static_cast<double>(values.size()));
}

bool differs(std::int64_t own, std::int64_t usual, double by) {
  return std::abs(static_cast<double>(own - usual)) > by * static_cast<double>(usual);
}

Bytes memory_expected(Bytes own, Bytes usual, bool coarsely) {
  constexpr double kClearly = 0.1;
  const bool counts = own > Bytes{} && differs(own.count, usual.count, kClearly);
  const std::int64_t base = counts ? rounded_up(own.count, coarsely) : usual.count;
  return {base + (base / 10)};
}

Duration time_expected(Duration own, Duration usual, bool coarsely) {
  constexpr double kClearly = 0.25;
  const bool counts = own > Duration{0} && differs(own.count(), usual.count(), kClearly);
  return counts ? Duration{rounded_up(own.count(), coarsely)} : usual;
}

}  // namespace

Result<Learned> Learned::parse(std::string_view json) {
  const auto broken = [] { return std::unexpected(Error{"it is not what trainyard wrote there"}); };
  const Json whole = Json::parse(json, nullptr, false);
  if (!whole.is_object() || whole.value("version", Json()) != Json(kVersion)) return broken();
  const auto groups = whole.find("groups");
  if (groups == whole.end() || !groups->is_object()) return broken();
  Learned learned;
  for (const auto& [group, tasks] : groups->items()) {
    if (!tasks.is_object()) return broken();
    for (const auto& [id, json_task] : tasks.items()) {
      const std::optional<LearnedTask> task = task_of(json_task);
      if (!task) return broken();
      learned.add(group, id, *task);
    }
  }
  return learned;
}

std::string Learned::to_json() const {
  Json groups = Json::object();
  for (const auto& [name, group] : groups_) {
    Json& tasks = groups[name] = Json::object();
    for (const auto& [id, task] : group.tasks) {
      Json& json = tasks[id] = Json::object();
      if (task.memory > Bytes{}) json["memory"] = task.memory.count;
      if (task.gpu_memory > Bytes{}) json["gpu_memory"] = task.gpu_memory.count;
      if (task.load > Duration{0}) json["load_ms"] = task.load.count();
      if (task.train > Duration{0}) json["train_ms"] = task.train.count();
    }
  }
  return Json{{"version", kVersion}, {"groups", groups}}.dump(1, ' ', false,
                                                              Json::error_handler_t::replace) +
         "\n";
}

void Learned::add(std::string_view group, std::string_view id, const LearnedTask& task) {
  const auto known = groups_.find(group);
  const bool there = known != groups_.end() && known->second.tasks.contains(id);
  if (!there && tasks_ == kTasksMax) return;
  if (!there) ++tasks_;
  Group& of = known != groups_.end() ? known->second : groups_[std::string(group)];
  of.tasks.insert_or_assign(std::string(id), task);
  of.summed = false;
}

void Learned::sum_up(Group& group) {
  if (std::exchange(group.summed, true)) return;
  std::vector<std::int64_t> memory;
  std::vector<std::int64_t> gpu_memory;
  std::vector<std::int64_t> load;
  std::vector<std::int64_t> train;
  for (const auto& [id, task] : group.tasks) {
    memory.push_back(task.memory.count);
    gpu_memory.push_back(task.gpu_memory.count);
    load.push_back(task.load.count());
    train.push_back(task.train.count());
  }
  group.usual = {.memory = {percentile(std::move(memory))},
                 .gpu_memory = {percentile(std::move(gpu_memory))},
                 .load = Duration{average(std::move(load))},
                 .train = Duration{average(std::move(train))}};
}

LearnedTask Learned::expected(std::string_view group, std::string_view id) const {
  const auto found = groups_.find(group);
  if (found == groups_.end()) return {};
  Group& of = found->second;
  sum_up(of);
  const auto known = of.tasks.find(id);
  const LearnedTask own = known == of.tasks.end() ? LearnedTask{} : known->second;
  constexpr std::size_t kMany = 100;
  const bool coarsely = of.tasks.size() > kMany;
  return {.memory = memory_expected(own.memory, of.usual.memory, coarsely),
          .gpu_memory = memory_expected(own.gpu_memory, of.usual.gpu_memory, coarsely),
          .load = time_expected(own.load, of.usual.load, coarsely),
          .train = time_expected(own.train, of.usual.train, coarsely)};
}

LearnedTask Learned::taken(std::string_view group, std::string_view id) const {
  const auto found = groups_.find(group);
  if (found == groups_.end()) return {};
  const auto task = found->second.tasks.find(id);
  return task == found->second.tasks.end() ? LearnedTask{} : task->second;
}

std::string learned_path(std::string_view job_file) {
  const std::filesystem::path path(job_file);
  return (path.parent_path() / ".trainyard" / (path.filename().string() + ".learned.json"))
      .string();
}

}  // namespace trainyard::job
