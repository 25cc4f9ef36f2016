// Learned estimates as the text of their file, and back.
#include <expected>
#include <limits>

#include <nlohmann/json.hpp>
#include <nlohmann/json_fwd.hpp>

#include "job/learned.h"
#include "model/resources.h"

namespace trainyard::job {
namespace {

using Json = nlohmann::json;

constexpr int kVersion = 2;
/// No task takes more, or longer: larger numbers mean that the file is damaged.
constexpr std::int64_t kBytesMax = std::int64_t{1} << 60U;
constexpr std::int64_t kMillisecondsMax = std::int64_t{10} * 365 * 86'400'000;
constexpr std::int64_t kUnixMillisecondsMax = std::int64_t{1} << 48U;
constexpr std::size_t kTextMax = 4'096;

/// 0 if it is missing; nothing if it is not such a number.
std::optional<std::int64_t> number(const Json& object, const char* key, std::int64_t most) {
  const auto found = object.find(key);
  if (found == object.end()) return 0;
  if (!found->is_number_integer()) return std::nullopt;
  if (found->is_number_unsigned() &&
      found->get<std::uint64_t>() > static_cast<std::uint64_t>(most)) {
    return std::nullopt;
  }
  const auto value = found->get<std::int64_t>();
  return value >= 0 && value <= most ? std::optional(value) : std::nullopt;
}

std::optional<std::string> text(const Json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end()) return std::string();
  if (!found->is_string()) return std::nullopt;
  auto value = found->get<std::string>();
  return value.size() <= kTextMax ? std::optional(std::move(value)) : std::nullopt;
}

std::optional<LearnedTask> task_of(const Json& json) {
  if (!json.is_object()) return std::nullopt;
  const auto memory = number(json, "memory", kBytesMax);
  const auto gpu_memory = number(json, "gpu_memory", kBytesMax);
  const auto load = number(json, "load_ms", kMillisecondsMax);
  const auto train = number(json, "train_ms", kMillisecondsMax);
  const auto train_least = number(json, "train_least_ms", kMillisecondsMax);
  const Json at_least = json.value("memory_at_least", Json(false));
  if (!memory || !gpu_memory || !load || !train || !at_least.is_boolean()) return std::nullopt;
  if (!train_least || *train_least > *train) return std::nullopt;
  return LearnedTask{.memory = {*memory},
                     .memory_at_least = at_least.get<bool>(),
                     .gpu_memory = {*gpu_memory},
                     .load = Duration{*load},
                     .train = Duration{*train},
                     .train_least = Duration{*train_least}};
}

std::optional<LearnedFrom> source_of(const Json& json) {
  if (!json.is_object()) return std::nullopt;
  auto run = text(json, "run");
  const auto started = number(json, "started_unix_ms", kUnixMillisecondsMax);
  auto host = text(json, "host");
  auto gpu = text(json, "gpu");
  const auto gpu_memory = number(json, "gpu_memory", kBytesMax);
  if (!run || !started || !host || !gpu || !gpu_memory) return std::nullopt;
  const Bytes of_gpu = gpu->empty() ? Bytes{} : Bytes{*gpu_memory};
  return LearnedFrom{.run = std::move(*run),
                     .started_unix_ms = *started,
                     .host = std::move(*host),
                     .gpu = std::move(*gpu),
                     .gpu_memory = of_gpu};
}

/// The sources in the file, after the empty source for unknown ones; nothing if one is not valid.
std::optional<std::vector<LearnedFrom>> sources_of(const Json& whole) {
  std::vector<LearnedFrom> sources{LearnedFrom{}};
  const auto found = whole.find("sources");
  if (found == whole.end()) return sources;
  if (!found->is_array() || found->size() > 2 * Learned::kTasksMax) return std::nullopt;
  for (const Json& json : *found) {
    std::optional<LearnedFrom> source = source_of(json);
    if (!source) return std::nullopt;
    sources.push_back(std::move(*source));
  }
  return sources;
}

/// The source with this number: the file numbers sources from 0.
const LearnedFrom* source_in(const std::vector<LearnedFrom>& sources, const Json& task,
                             const char* key, const LearnedFrom* otherwise) {
  if (!task.contains(key)) return otherwise;
  const auto place = number(task, key, static_cast<std::int64_t>(sources.size()) - 2);
  return place ? &sources[static_cast<std::size_t>(*place) + 1] : nullptr;
}

Json to_json_of(const LearnedFrom& from) {
  Json json{{"run", from.run}, {"started_unix_ms", from.started_unix_ms}, {"host", from.host}};
  if (from.gpu.empty()) return json;
  json["gpu"] = from.gpu;
  json["gpu_memory"] = from.gpu_memory.count;
  return json;
}

std::optional<LearnedSharing> sharing_of(const Json& json) {
  if (!json.is_object()) return std::nullopt;
  constexpr double kFactorMax = model::kMaxPerGpuMost;
  const auto to_a_gpu = number(json, "to_a_gpu", model::kMaxPerGpuMost);
  const auto tasks = number(json, "tasks", std::numeric_limits<int>::max());
  const auto most = number(json, "to_a_gpu_max", model::kMaxPerGpuMost);
  const Json factor = json.value("factor", Json(0.0));
  if (!to_a_gpu || !tasks || !most || !factor.is_number()) return std::nullopt;
  const auto times = factor.get<double>();
  const bool right = *to_a_gpu == 0 ? times == 0 : times > 0 && times <= kFactorMax;
  if (!right) return std::nullopt;
  return LearnedSharing{.to_a_gpu = static_cast<int>(*to_a_gpu),
                        .factor = times,
                        .tasks = static_cast<int>(*tasks),
                        .to_a_gpu_max = static_cast<int>(*most)};
}

Json to_json_of(const LearnedSharing& sharing) {
  return {{"to_a_gpu", sharing.to_a_gpu},
          {"factor", sharing.factor},
          {"tasks", sharing.tasks},
          {"to_a_gpu_max", sharing.to_a_gpu_max}};
}

/// The sources that are still of use, in the order in which they are first named.
class SourceList {
 public:
  /// Puts the source's number under the key; nothing if the source is not known.
  void put(Json& task, const char* key, const LearnedFrom& from) {
    if (from == LearnedFrom{}) return;
    const auto [known, fresh] = numbers_.try_emplace(from, sources_.size());
    if (fresh) sources_.push_back(to_json_of(from));
    task[key] = known->second;
  }
  [[nodiscard]] const Json& all() const { return sources_; }

 private:
  Json sources_ = Json::array();
  std::map<LearnedFrom, std::size_t> numbers_;
};

}  // namespace

Result<Learned> Learned::parse(std::string_view json) {
  const auto broken = [] {
    return std::unexpected(Error{"it is damaged, or from another version of trainyard"});
  };
  const Json whole = Json::parse(json, nullptr, false);
  if (!whole.is_object()) return broken();
  const auto groups = whole.find("groups");
  const auto sources = sources_of(whole);
  if (number(whole, "version", kVersion) != kVersion || !sources) return broken();
  if (groups == whole.end() || !groups->is_object()) return broken();
  Learned learned;
  for (const auto& [group, tasks] : groups->items()) {
    if (!tasks.is_object()) return broken();
    for (const auto& [id, json_task] : tasks.items()) {
      const std::optional<LearnedTask> task = task_of(json_task);
      if (!task) return broken();
      const LearnedFrom* const from = source_in(*sources, json_task, "from", sources->data());
      const LearnedFrom* const of_gpu = source_in(*sources, json_task, "gpu_from", from);
      const auto command = number(json_task, "command", std::numeric_limits<std::int64_t>::max());
      if (from == nullptr || of_gpu == nullptr || !command) return broken();
      if (of_gpu != from) {
        learned.add(group, id, {.gpu_memory = task->gpu_memory}, *of_gpu, *command);
        LearnedTask rest = *task;
        rest.gpu_memory = {};
        learned.add(group, id, rest, *from, *command);
      } else {
        learned.add(group, id, *task, *from, *command);
      }
    }
  }
  const Json sharing = whole.value("sharing", Json::object());
  if (!sharing.is_object()) return broken();
  for (const auto& [group, measured] : sharing.items()) {
    std::optional<LearnedSharing> known = sharing_of(measured);
    const LearnedFrom* const from = source_in(*sources, measured, "from", sources->data());
    if (!known || from == nullptr) return broken();
    known->from = *from;
    learned.set_sharing(group, *known);
  }
  return learned;
}

std::string Learned::to_json() const {
  Json groups = Json::object();
  SourceList sources;
  each([&](std::string_view group, std::string_view id, const Taken& taken) {
    Json json = Json::object();
    const LearnedTask& task = taken.task;
    if (task.memory > Bytes{}) json["memory"] = task.memory.count;
    if (task.memory_at_least) json["memory_at_least"] = true;
    if (task.gpu_memory > Bytes{}) json["gpu_memory"] = task.gpu_memory.count;
    if (task.load > Duration{0}) json["load_ms"] = task.load.count();
    if (task.train > Duration{0}) json["train_ms"] = task.train.count();
    if (task.train_least > Duration{0}) json["train_least_ms"] = task.train_least.count();
    if (taken.command != 0) json["command"] = taken.command;
    sources.put(json, "from", taken.from);
    if (taken.gpu_from != taken.from) sources.put(json, "gpu_from", taken.gpu_from);
    groups[std::string(group)][std::string(id)] = std::move(json);
  });
  Json sharing = Json::object();
  for (const auto& [name, group] : groups_) {
    if (!group.sharing) continue;
    Json& json = sharing[name] = to_json_of(*group.sharing);
    sources.put(json, "from", group.sharing->from);
  }
  Json whole{{"version", kVersion}, {"sources", sources.all()}, {"groups", groups}};
  if (!sharing.empty()) whole["sharing"] = std::move(sharing);
  return whole.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace trainyard::job
