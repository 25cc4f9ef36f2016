#include "config/job_reader.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/bytes.h"
#include "base/duration_text.h"
#include "base/result.h"
#include "config/early_signal.h"
#include "config/file_name.h"
#include "config/job_spec.h"
#include "config/key_reader.h"
#include "config/launcher_text.h"
#include "config/matrix_reader.h"
#include "config/mistake.h"
#include "config/placeholder.h"
#include "config/python_command.h"
#include "config/setting_value.h"
#include "config/yaml_reader.h"
#include "model/plan.h"

namespace trainyard {
namespace {

constexpr std::array<std::string_view, 4> kJobKeys{"name", "run-dir", "config", "groups"};
constexpr std::array<std::string_view, 22> kGroupKeys{
    "ranks",     "launcher", "memory-limit", "preempt",      "signal",
    "name",      "needs",    "matrix",       "max-parallel", "fail-fast",
    "tasks",     "memory",   "gpu-memory",   "gpus",         "device",
    "cpus",      "duration", "time-limit",   "env",          "working-directory",
    "two-phase", "preload"};
constexpr std::array<std::string_view, 17> kTaskKeys{
    "ranks",  "launcher",          "memory-limit", "preempt", "signal", "id",       "command",
    "memory", "gpu-memory",        "gpus",         "device",  "cpus",   "duration", "time-limit",
    "env",    "working-directory", "two-phase"};

constexpr std::array<Elsewhere, 3> kNotOfJob{{
    {.key = "tasks", .message = "'tasks' belongs to a group, under 'groups'"},
    {.key = "matrix", .message = "'matrix' belongs to a group, under 'groups'"},
    {.key = "command", .message = "'command' belongs to a task, under 'tasks' of a group"},
}};
constexpr std::array<Elsewhere, 2> kNotOfGroup{{
    {.key = "command", .message = "'command' belongs to a task, under 'tasks'"},
    {.key = "id", .message = "'id' belongs to a task, under 'tasks'; a group has a 'name'"},
}};
constexpr std::array<Elsewhere, 6> kNotOfTask{{
    {.key = "name", .message = "unknown key 'name', did you mean 'id'?"},
    {.key = "matrix", .message = "'matrix' belongs to the group, and is for all its tasks"},
    {.key = "needs", .message = "'needs' belongs to the group: tasks of a group run in any order"},
    {.key = "max-parallel", .message = "'max-parallel' belongs to the group"},
    {.key = "fail-fast", .message = "'fail-fast' belongs to the group"},
    {.key = "preload",
     .message = "'preload' belongs to the group, whose tasks share what is imported"},
}};

/// Reads one group and its tasks. Its members are what everything in it is read with.
class GroupReader {
 public:
  GroupReader(const Complainer& to, std::string directory)
      : to_(to), directory_(std::move(directory)) {}

  GroupSpec read(const YamlNode& node, std::string name) {
    GroupSpec group;
    group.place = node.place;
    group.name = std::move(name);
    check_keys(to_, node, kGroupKeys, kNotOfGroup);
    if (const YamlNode* matrix = node.find("matrix")) read_group_matrix(*matrix, group);
    names_.assign(kOwnPlaceholders.begin(), kOwnPlaceholders.end());
    for (const std::string& key : group.matrix.keys()) names_.emplace_back(key);
    if (group.matrix_broken) add_names_of_broken(*node.find("matrix"));

    group.wants = read_wants(to_, node);
    if (const YamlNode* needs = node.find("needs")) group.needs = read_needs(*needs);
    if (const YamlNode* most = node.find("max-parallel")) {
      group.parallel_max = read_value<int>(to_, *most, "max-parallel", parse_count).value_or(0);
    }
    if (const YamlNode* fast = node.find("fail-fast")) {
      group.fail_fast = read_value<bool>(to_, *fast, "fail-fast", parse_flag).value_or(false);
    }
    read_tasks(node, group);
    if (const YamlNode* modules = node.find("preload")) {
      group.preload = read_preload(*modules);
      for (const TaskSpec& task : group.tasks) check_preloaded(task);
    }
    return group;
  }

 private:
  void read_group_matrix(const YamlNode& node, GroupSpec& group) {
    group.has_matrix = true;
    auto matrix = read_matrix(to_.document(), node, {.directory = directory_, .where = to_.where()},
                              to_.mistakes());
    group.matrix_broken = !matrix.has_value();
    if (matrix) group.matrix = std::move(*matrix);
  }

  /// So that its placeholders are not complained about on top of it.
  void add_names_of_broken(const YamlNode& matrix) {
    if (matrix.kind != YamlKind::Mapping) return;
    for (std::size_t i = 0; i + 1 < matrix.items.size(); i += 2) {
      names_.emplace_back(matrix.items[i]->text);
      for (const YamlNode* entry : matrix.items[i + 1]->items) {
        for (std::size_t k = 0; k + 1 < entry->items.size(); k += 2) {
          names_.emplace_back(entry->items[k]->text);
        }
      }
    }
  }

  template <class T, class Parse>
  std::optional<T> read_value(const Complainer& to, const YamlNode& node, std::string_view key,
                              Parse parse) {
    const auto text = read_single(to, node, key);
    if (!text) return std::nullopt;
    const Result<T> value = parse(*text);
    if (value) return *value;
    to.complain(node, fmt::format("{}: {}", key, value.error().message));
    return std::nullopt;
  }

  std::vector<std::pair<std::string, Place>> read_needs(const YamlNode& node) {
    std::vector<std::pair<std::string, Place>> needs;
    if (node.kind == YamlKind::Text) {
      needs.emplace_back(node.text, node.place);
      return needs;
    }
    if (node.kind != YamlKind::List) {
      to_.complain(node, "'needs' wants names of groups, as in [prepare, train]; [] for none");
      return needs;
    }
    for (const YamlNode* item : node.items) {
      if (item->kind == YamlKind::Text) {
        needs.emplace_back(item->text, item->place);
      } else {
        to_.complain(*item, "'needs' wants names of groups, as in [prepare, train]");
      }
    }
    return needs;
  }

  std::vector<std::string> read_preload(const YamlNode& node) {
    std::vector<std::string> modules;
    const auto add = [&](const YamlNode& item) {
      if (item.kind == YamlKind::Text && is_python_module(item.text)) {
        modules.push_back(item.text);
      } else if (item.kind == YamlKind::Text) {
        to_.complain(item, fmt::format("preload: '{}' is no name of a Python module", item.text));
      } else {
        to_.complain(item, "'preload' wants names of Python modules, as in [numpy, mydata]");
      }
    };
    if (node.kind != YamlKind::List) {
      add(node);
    } else {
      for (const YamlNode* item : node.items) add(*item);
    }
    return modules;
  }

  /// What the values of its placeholders are does not matter: they come as one word each.
  void check_preloaded(const TaskSpec& task) {
    const Bindings values(names_.size(), "python");
    std::vector<std::string> arguments;
    arguments.reserve(task.arguments.size());
    for (const Template& text : task.arguments) arguments.push_back(text.fill(values));
    const Result<PythonCommand> python = task.in_shell && !arguments.empty()
                                             ? read_python_command(arguments.front())
                                             : read_python_command(std::move(arguments));
    if (python) return;
    to_.mistakes().add(to_.document().mistake(
        task.command_place, fmt::format("{}'preload' is for commands like 'python3 train.py', and "
                                        "this one {}",
                                        to_.where(), python.error().message)));
  }

  void read_tasks(const YamlNode& node, GroupSpec& group) {
    const YamlNode* const tasks = node.find("tasks");
    if (tasks == nullptr) {
      to_.complain(node, "has no 'tasks'");
      return;
    }
    if (tasks->kind == YamlKind::List && tasks->items.empty()) {
      to_.complain(*tasks, "'tasks' has no task");
      return;
    }
    if (tasks->kind != YamlKind::List) {
      to_.complain(*tasks,
                   "'tasks' wants a list, each with a 'command', as in [{command: ./train}]");
      return;
    }
    for (std::size_t i = 0; i < tasks->items.size(); ++i) {
      if (auto task = read_task(*tasks->items[i], i + 1)) group.tasks.push_back(std::move(*task));
    }
  }

  std::optional<TaskSpec> read_task(const YamlNode& node, std::size_t number) {
    if (node.kind != YamlKind::Mapping) {
      to_.complain(node, fmt::format("task {}: a task is keys with values, as in {{command: "
                                     "./train}}",
                                     number));
      return std::nullopt;
    }
    const YamlNode* const id = node.find("id");
    const bool has_id = id != nullptr && id->kind == YamlKind::Text;
    const Complainer to =
        to_.within(has_id ? fmt::format("task '{}'", id->text) : fmt::format("task {}", number));
    check_keys(to, node, kTaskKeys, kNotOfTask);
    TaskSpec task;
    task.place = node.place;
    if (id != nullptr) task.id = read_id(to, *id);
    task.wants = read_wants(to, node);
    if (const YamlNode* command = node.find("command")) {
      read_command(to, *command, task);
    } else {
      to.complain(node, "has no 'command'");
    }
    return task;
  }

  /// The id is part of {task_id} and {task_dir}, so it cannot use them.
  std::optional<Text> read_id(const Complainer& to, const YamlNode& node) {
    auto id = read_text(to, node, "id", names(false));
    if (!id) return std::nullopt;
    for (const std::size_t slot : {kTaskDirSlot, kRunDirSlot, kTaskIdSlot}) {
      if (!id->text.uses(slot)) continue;
      to.complain(
          node, fmt::format("id: '{{{}}}' cannot be a part of the id", kOwnPlaceholders.at(slot)));
      return std::nullopt;
    }
    return id;
  }

  void read_command(const Complainer& to, const YamlNode& node, TaskSpec& task) {
    task.command_place = node.place;
    task.in_shell = node.kind == YamlKind::Text;
    if (node.kind == YamlKind::Text) {
      if (node.text.find_first_not_of(" \t\r\n") == std::string::npos) {
        to.complain(node, "'command' is empty");
      } else if (auto text = read_text(to, node, "command", names(true))) {
        task.arguments.push_back(std::move(text->text));
      }
      return;
    }
    if (node.kind != YamlKind::List || node.items.empty()) {
      to.complain(node, "'command' wants a text for the shell, or a list: [python, train.py]");
      return;
    }
    for (const YamlNode* item : node.items) {
      // `null` as a word of a command is a word, as it is everywhere but in YAML.
      YamlNode word;
      if (item->kind == YamlKind::Null && !item->text.empty()) {
        word = *item;
        word.kind = YamlKind::Text;
        item = &word;
      }
      if (auto text = read_text(to, *item, "command", names(false))) {
        task.arguments.push_back(std::move(text->text));
      }
    }
    if (node.items.front()->kind == YamlKind::Text && node.items.front()->text.empty()) {
      to.complain(*node.items.front(), "the program of 'command' is empty");
    }
  }

  [[nodiscard]] Template::Names names(bool in_shell) const {
    return {.names = names_, .in_shell = in_shell};
  }

  /// Text with placeholders; when it has none, its value is checked here, once and at its place.
  template <class Parse>
  std::optional<Text> read_checked(const Complainer& to, const YamlNode& mapping,
                                   std::string_view key, Parse parse) {
    const YamlNode* const node = mapping.find(key);
    if (node == nullptr) return std::nullopt;
    auto text = read_text(to, *node, key, names(false));
    if (!text || text->text.uses_any()) return text;
    const auto value = parse(text->text.text());
    if (value) return text;
    to.complain(*node, fmt::format("{}: {}", key, value.error().message));
    return std::nullopt;
  }

  Wants read_wants(const Complainer& to, const YamlNode& node) {
    Wants wants;
    wants.memory = read_checked(to, node, "memory", parse_bytes);
    wants.gpu_memory = read_checked(to, node, "gpu-memory", parse_gpu_memory);
    wants.gpus = read_checked(to, node, "gpus", parse_count);
    wants.device = read_checked(to, node, "device", parse_device);
    wants.cpus = read_checked(to, node, "cpus", parse_cpus);
    wants.duration = read_checked(to, node, "duration", parse_duration);
    wants.time_limit = read_checked(to, node, "time-limit", parse_duration);
    if (const YamlNode* directory = node.find("working-directory")) {
      wants.working_directory = read_text(to, *directory, "working-directory", names(false));
    }
    wants.ranks = read_checked(to, node, "ranks", parse_ranks);
    if (const YamlNode* launcher = node.find("launcher")) {
      wants.launcher = read_launcher(to, *launcher);
    }
    if (const YamlNode* phases = node.find("two-phase")) {
      wants.two_phase = read_value<bool>(to, *phases, "two-phase", parse_flag);
    }
    if (const YamlNode* preempt = node.find("preempt")) {
      wants.preempt = read_value<bool>(to, *preempt, "preempt", parse_flag);
    }
    if (const YamlNode* signal = node.find("signal")) {
      wants.early_signal = read_value<EarlySignal>(to, *signal, "signal", parse_early_signal);
    }
    if (const YamlNode* limit = node.find("memory-limit")) {
      wants.memory_hard = read_value<bool>(to, *limit, "memory-limit", parse_memory_limit);
    }
    if (const YamlNode* env = node.find("env")) wants.environment = read_environment(to, *env);
    return wants;
  }

  /// A name, or a list; as text that parse_launcher() reads.
  static std::optional<std::string> read_launcher(const Complainer& to, const YamlNode& node) {
    std::string text = node.text;
    if (node.kind == YamlKind::List) {
      nlohmann::json list = nlohmann::json::array();
      for (const YamlNode* const item : node.items) list.push_back(item->text);
      text = list.dump();
    }
    const auto launcher = parse_launcher(text);
    if (launcher) return text;
    to.complain(node, fmt::format("launcher: {}", launcher.error().message));
    return std::nullopt;
  }

  std::vector<std::pair<std::string, Text>> read_environment(const Complainer& to,
                                                             const YamlNode& node) {
    std::vector<std::pair<std::string, Text>> environment;
    if (node.kind == YamlKind::Null) return environment;
    if (node.kind != YamlKind::Mapping) {
      to.complain(node, "'env' wants names with values, as in {CUDA_LAUNCH_BLOCKING: 1}");
      return environment;
    }
    for (std::size_t i = 0; i + 1 < node.items.size(); i += 2) {
      const YamlNode& name = *node.items[i];
      const YamlNode& value = *node.items[i + 1];
      if (!is_identifier(name.text) || name.text.find('-') != std::string::npos) {
        to.complain(name, fmt::format("env: '{}' is no name of a variable", name.text));
      } else if (name.text.starts_with("TRAINYARD_")) {
        to.complain(name, fmt::format("env: '{}' is trainyard's own to set", name.text));
      } else if (value.kind == YamlKind::Null) {
        to.complain(value,
                    fmt::format("env: '{}' has no value; write \"\" for an empty one", name.text));
      } else if (auto text = read_text(to.within("env"), value, name.text, names(false))) {
        environment.emplace_back(name.text, std::move(*text));
      }
    }
    return environment;
  }

  const Complainer& to_;
  std::string directory_;
  std::vector<std::string_view> names_;
};

class JobReader {
 public:
  JobReader(const YamlDocument& document, const std::string& directory, MistakeList& mistakes)
      : to_(document, mistakes, ""), directory_(directory) {}

  JobSpec read(const YamlNode& root) {
    JobSpec job;
    if (root.kind != YamlKind::Mapping) {
      to_.complain(root, "a job file is keys with values: name, run-dir, config, groups");
      return job;
    }
    check_keys(to_, root, kJobKeys, kNotOfJob);
    if (const YamlNode* name = root.find("name")) job.name = read_name(to_, *name);
    if (const YamlNode* run_dir = root.find("run-dir")) job.run_directory = read_run_dir(*run_dir);
    const YamlNode* const groups = root.find("groups");
    if (groups == nullptr) {
      to_.complain(root, "has no 'groups'");
    } else if (groups->kind == YamlKind::List && groups->items.empty()) {
      to_.complain(*groups, "'groups' has no group");
    } else if (groups->kind != YamlKind::List) {
      to_.complain(*groups, "'groups' wants a list of groups, each with 'tasks'");
    } else {
      read_groups(*groups, job);
    }
    return job;
  }

 private:
  static std::string read_name(const Complainer& to, const YamlNode& node) {
    const auto name = read_single(to, node, "name");
    if (!name) return "";
    if (const auto why = why_unsafe(*name)) {
      to.complain(
          node, fmt::format("the name '{}' {}; it is to be the name of a directory", *name, *why));
      return "";
    }
    return *name;
  }

  std::string read_run_dir(const YamlNode& node) {
    const auto path = read_text(to_, node, "run-dir", {.names = {}});
    if (!path) return "";
    if (path->text.text().empty()) to_.complain(node, "'run-dir' is empty");
    return path->text.text();
  }

  void read_groups(const YamlNode& groups, JobSpec& job) {
    std::vector<std::pair<std::string, const YamlNode*>> seen;
    for (std::size_t i = 0; i < groups.items.size(); ++i) {
      const YamlNode& node = *groups.items[i];
      const std::string fallback = fmt::format("group-{}", i + 1);
      if (node.kind != YamlKind::Mapping) {
        to_.complain(node,
                     fmt::format("{}: a group is keys with values: name, tasks, ...", fallback));
        continue;
      }
      const YamlNode* const name_node = node.find("name");
      std::string name;
      if (name_node != nullptr) name = read_name(to_.within(fallback), *name_node);
      if (name.empty()) name = fallback;
      const YamlNode& named = name_node != nullptr ? *name_node : node;
      const auto first = std::ranges::find(seen, name, [](const auto& one) { return one.first; });
      if (first != seen.end()) {
        to_.complain(named, fmt::format("two groups are called '{}'; the other is in line {}", name,
                                        first->second->place.line));
      }
      seen.emplace_back(name, &named);
      const Complainer to = to_.within(fmt::format("group '{}'", name));
      job.groups.push_back(GroupReader(to, directory_).read(node, name));
      job.groups.back().name_place = named.place;
    }
  }

  Complainer to_;
  const std::string& directory_;
};

}  // namespace

JobSpec read_job(const YamlDocument& document, const std::string& directory,
                 MistakeList& mistakes) {
  if (document.root() == nullptr) {
    if (document.mistakes().empty()) {
      mistakes.add({.file = document.file(), .message = "is empty; it wants 'groups'"});
    }
    return {};
  }
  return JobReader(document, directory, mistakes).read(*document.root());
}

std::span<const std::string_view> keys_of_job() { return kJobKeys; }
std::span<const std::string_view> keys_of_group() { return kGroupKeys; }
std::span<const std::string_view> keys_of_task() { return kTaskKeys; }

}  // namespace trainyard
