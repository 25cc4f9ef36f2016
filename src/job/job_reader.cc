#include "job/job_reader.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <list>
#include <optional>
#include <ranges>
#include <span>
#include <utility>
#include <vector>

#include <unistd.h>

#include <fmt/format.h>

#include "base/nearest.h"
#include "base/result.h"
#include "job/job_binding.h"
#include "job/keep.h"
#include "job/key_readers.h"
#include "job/matrix.h"
#include "job/matrix_reader.h"
#include "job/misplaced_keys.h"
#include "job/needs_check.h"
#include "job/needs_values.h"
#include "job/repeat_reader.h"
#include "job/task_environment.h"
#include "job/task_keys.h"
#include "job/telling_keys.h"
#include "settings/configuration.h"
#include "settings/setting_value.h"
#include "text/file_name.h"
#include "text/key_reader.h"
#include "text/placeholder.h"
#include "text/plain_values.h"
#include "text/second_reader.h"
#include "text/shell_reader.h"

namespace trainyard::job {
namespace {

/// A single text with placeholders, and without NUL.
std::optional<Text> read_text(const text::Complainer& to, const text::YamlNode& node,
                              std::string_view key, const text::Template::Names& names) {
  const auto single = text::read_single(to, node, key);
  if (!single) return std::nullopt;
  if (single->contains('\0')) {
    to.complain(node, fmt::format("{}: {}", key, text::kNoNul));
    return std::nullopt;
  }
  text::Template::Read read = text::Template::read(*single, names);
  for (const std::string& problem : read.problems) {
    to.complain(node, fmt::format("{}: {}", key, problem));
  }
  if (!read.problems.empty()) return std::nullopt;
  return Text{.text = std::move(read.text), .place = node.place};
}

template <class T, class Parse>
std::optional<T> read_value(const text::Complainer& to, const text::YamlNode& node,
                            std::string_view key, Parse parse) {
  const auto text = text::read_single(to, node, key);
  if (!text) return std::nullopt;
  const Result<T> value = parse(*text);
  if (value) return *value;
  to.complain(node, fmt::format("{}: {}", key, value.error().message));
  return std::nullopt;
}

/// Whether a mapping has a key that only groups have.
bool has_key_of_group(const text::YamlNode& node) {
  return std::ranges::any_of(keys_of_group(), [&node](std::string_view key) {
    return node.find(key) != nullptr &&
           std::ranges::find(keys_of_job(), key) == keys_of_job().end();
  });
}

/// Keys of another part of a job file, with the messages about them.
struct OtherPart {
  std::span<const std::string_view> keys;
  std::string_view place;  ///< "a group, under 'groups'".
};

OtherPart of_job() { return {.keys = keys_of_job(), .place = "the top level of the job file"}; }

/// An environment variable is in capital letters and, unlike many a parameter, has several words.
bool looks_like_variable(std::string_view key) {
  return text::is_identifier(key) && key.contains('_') &&
         std::ranges::none_of(key, [](char byte) { return byte >= 'a' && byte <= 'z'; });
}

/// A key with several values, or one whose placeholder is anywhere in the file.
bool looks_like_parameter(const text::YamlDocument& document, std::string_view key,
                          const text::YamlNode& value) {
  return text::is_identifier(key) &&
         (value.kind == text::YamlKind::List || document.has_written(fmt::format("{{{}}}", key)));
}

/// The setting that a key without 'config' names: "scheduler.max-process" for "max-process", and a
/// key or a section of settings itself.
std::optional<std::string_view> setting_meant_by(std::string_view key) {
  constexpr std::string_view kScheduler = "scheduler.";
  for (const settings::SettingInfo& info : settings::settings()) {
    if (info.key == key || info.key.substr(0, info.key.find('.')) == key) return key;
    if (info.key.starts_with(kScheduler) && info.key.substr(kScheduler.size()) == key) {
      return info.key;
    }
  }
  return std::nullopt;
}

/// The kind of file of another tool that this is; null for another file.
const OtherToolFile* kind_of_other_tool(const text::YamlNode& root) {
  if (root.find("groups") != nullptr || root.find("tasks") != nullptr) return nullptr;
  const auto found = std::ranges::find_if(kOtherToolFiles, [&root](const OtherToolFile& file) {
    int keys = 0;
    for (std::size_t i = 0; i + 1 < root.items.size(); i += 2) {
      if (is_among(root.items[i]->text, file.keys)) ++keys;
    }
    return keys >= file.keys_min;
  });
  return found == kOtherToolFiles.end() ? nullptr : &*found;
}

/// Complains about unknown keys, and says where they belong. `elsewhere` counts before `other`.
void check_keys(const text::Complainer& to, const text::YamlNode& node,
                std::span<const std::string_view> known, std::span<const text::Elsewhere> elsewhere,
                const OtherPart& other) {
  std::list<std::string> messages;
  std::vector<text::Elsewhere> all(elsewhere.begin(), elsewhere.end());
  const auto add = [&](std::string_view key, std::string message) {
    messages.push_back(std::move(message));
    all.push_back({.key = key, .message = messages.back()});
  };
  for (const std::string_view key : other.keys) {
    if (std::ranges::find(known, key) != known.end()) continue;
    add(key, fmt::format("'{}' belongs to {}", key, other.place));
  }
  const bool has_settings = std::ranges::find(known, "config") != known.end();
  for (std::size_t i = 0; i + 1 < node.items.size(); i += 2) {
    const std::string_view key = node.items[i]->text;
    if (std::ranges::find(known, key) != known.end()) continue;
    const auto theirs = std::ranges::find_if(
        kOtherToolKeys, [key](const OtherToolKeys& keys) { return is_among(key, keys.words); });
    const auto setting = setting_meant_by(key);
    if (theirs != kOtherToolKeys.end()) {
      add(key, fmt::format("unknown key '{}'; {}", key, theirs->cure));
    } else if (setting && !called_otherwise(key, other.keys) && !called_otherwise(key, known)) {
      add(key, fmt::format("unknown key '{}'; write it as in 'config: {{{}: ...}}'{}", key,
                           *setting, has_settings ? "" : " at the top level of the job file"));
    } else if (looks_like_variable(key) && !nearest(key, known)) {
      add(key, fmt::format("unknown key '{}'; write a variable under 'env'", key));
    }
  }
  text::check_keys(to, node, known, all, [&to](const text::YamlNode& key, const auto& value) {
    return looks_like_parameter(to.document(), key.text, value) ? kAsParameter : kRemove;
  });
}

/// The value of an unknown key that means `meant`, one of `keys`: it is a mistake already. Null:
/// there is none.
const text::YamlNode* misspelt(const text::YamlNode& node, std::span<const std::string_view> keys,
                               std::string_view meant) {
  for (std::size_t i = 0; i + 1 < node.items.size(); i += 2) {
    const std::string& key = node.items[i]->text;
    if (key != meant && nearest(key, keys) == meant) return node.items[i + 1];
  }
  return nullptr;
}

/// Reads one group and its tasks. Its members are what everything in it is read with.
class GroupReader {
 public:
  /// `repeated` are the names of the groups of its repeat; none: it is in no repeat.
  GroupReader(const text::Complainer& to, JobOrigin& origin, const std::vector<GroupSpec>& before,
              const std::vector<std::string>& repeated)
      : to_(to), origin_(origin), before_(before), repeated_(repeated) {}

  GroupSpec read(const text::YamlNode& node, std::string name) {
    GroupSpec group;
    group.place = node.place;
    group.name = std::move(name);
    if (!repeated_.empty()) group.round = 0;
    check_keys(to_, node, keys_of_group(), kNotOfGroup, of_job());
    if (const text::YamlNode* needs = node.find("needs")) {
      group.needs = read_needs(to_, *needs, before_);
    }
    if (const text::YamlNode* matrix = node.find("matrix")) read_group_matrix(*matrix, group);
    if (misspelt(node, keys_of_group(), "matrix") != nullptr) group.matrix_broken = true;
    inherit_matrix(node, group);
    set_names(node, group);
    group.wants = read_wants(to_, node);
    if (const text::YamlNode* most = node.find("max-parallel")) {
      group.parallel_max =
          read_value<int>(to_, *most, "max-parallel", settings::parse_count).value_or(0);
    }
    if (const text::YamlNode* fast = node.find("fail-fast")) {
      group.fail_fast =
          read_value<bool>(to_, *fast, "fail-fast", settings::parse_flag).value_or(false);
    }
    if (const text::YamlNode* first = node.find("try-first")) {
      group.try_first = read_value<bool>(to_, *first, "try-first", settings::parse_try_first);
    }
    if (const text::YamlNode* keep = node.find("keep")) group.keep = read_keep(to_, *keep);
    read_tasks(node, group);
    if (const text::YamlNode* modules = node.find("preload")) {
      group.preload = read_preload(to_, *modules);
      for (const TaskSpec& task : group.tasks) check_preloaded(to_, task, names_.size());
    }
    return group;
  }

 private:
  void read_group_matrix(const text::YamlNode& node, GroupSpec& group) {
    group.has_matrix = true;
    const MatrixOrigin origin{.directory = origin_.directory,
                              .where = to_.where(),
                              .files = origin_.files,
                              .warnings = group.matrix_warnings};
    auto matrix = read_matrix(to_.document(), node, origin, to_.mistakes());
    group.matrix_broken = !matrix.has_value();
    if (matrix) group.matrix = std::move(*matrix);
  }

  /// So that its placeholders are not complained about on top of it.
  void add_names_of_broken(const text::YamlNode& matrix) {
    if (matrix.kind != text::YamlKind::Mapping) {
      add_names_in(matrix.text);
      for (const text::YamlNode* const item : matrix.items) add_names_of_broken(*item);
      return;
    }
    for (std::size_t i = 0; i + 1 < matrix.items.size(); i += 2) {
      add_names_in(matrix.items[i]->text);
      for (const text::YamlNode* entry : matrix.items[i + 1]->items) {
        for (std::size_t k = 0; k + 1 < entry->items.size(); k += 2) {
          add_names_in(entry->items[k]->text);
        }
      }
    }
  }

  /// The keys that a text was probably meant to have: "lr" and "seed" of "lr=0.1 seed=1".
  void add_names_in(std::string_view text) {
    for (const auto part : std::views::split(text, ' ')) {
      const std::string_view word(part);
      const std::string_view name = word.substr(0, word.find('='));
      if (text::is_identifier(name)) names_.push_back(name);
    }
  }

  /// The cells of the groups that its tasks are matched with are its own.
  void inherit_matrix(const text::YamlNode& node, GroupSpec& group) {
    const auto is_matched = [](const Need& need) { return need.match.has_value(); };
    if (!group.needs || std::ranges::none_of(*group.needs, is_matched)) return;
    if (group.matrix_broken) return;
    Result<Matrix> matrix =
        inherit(group.has_matrix ? &group.matrix : nullptr, *group.needs, before_);
    group.has_matrix = true;
    group.matrix_broken = !matrix;
    if (matrix) {
      group.matrix = std::move(*matrix);
      return;
    }
    const text::YamlNode* const own = node.find("matrix");
    to_.complain(own != nullptr ? *own : *node.find("needs"),
                 fmt::format("the matrix {}", matrix.error().message));
  }

  void add_round(const text::YamlNode* matrix, const GroupSpec& group) {
    const std::vector<std::string>& keys = group.matrix.keys();
    if (matrix != nullptr && std::ranges::find(keys, "round") != keys.end()) {
      to_.complain(*matrix,
                   "matrix: 'round' is the number of the round; give the key another name");
    }
    names_.emplace_back("round");
  }

  /// Sets the names that its placeholders may use.
  void set_names(const text::YamlNode& node, GroupSpec& group) {
    names_.assign(text::kOwnPlaceholders.begin(), text::kOwnPlaceholders.end());
    for (const std::string& key : group.matrix.keys()) names_.emplace_back(key);
    const text::YamlNode* matrix = node.find("matrix");
    if (matrix == nullptr) matrix = misspelt(node, keys_of_group(), "matrix");
    if (group.matrix_broken && matrix != nullptr) add_names_of_broken(*matrix);
    matrix_names_ = names_.size() - text::kOwnPlaceholders.size();
    if (group.round) add_round(matrix, group);
    names_before_start_ = names_.size();
    std::vector<std::string> needed;
    if (group.needs) std::ranges::transform(*group.needs, std::back_inserter(needed), &Need::group);
    if (!group.needs && !before_.empty()) needed.push_back(before_.back().name);
    group.needs_values = needs_values(node, {.needed = std::move(needed), .repeated = repeated_});
    needs_names_.clear();
    for (const NeedsValue& value : group.needs_values) needs_names_.push_back(name_of(value));
    for (const std::string& name : needs_names_) names_.emplace_back(name);
  }

  void read_tasks(const text::YamlNode& node, GroupSpec& group) {
    const text::YamlNode* const tasks = node.find("tasks");
    if (tasks == nullptr) {
      to_.complain(node, "has no 'tasks'");
      return;
    }
    if (tasks->kind == text::YamlKind::List && tasks->items.empty()) {
      to_.complain(*tasks, "'tasks' is empty");
      return;
    }
    if (tasks->kind != text::YamlKind::List) {
      to_.complain(*tasks,
                   "'tasks' must be a list, each with a 'command', as in [{command: ./train}]");
      return;
    }
    for (std::size_t i = 0; i < tasks->items.size(); ++i) {
      if (auto task = read_task(*tasks->items[i], group, i + 1))
        group.tasks.push_back(std::move(*task));
    }
  }

  std::optional<TaskSpec> read_task(const text::YamlNode& node, const GroupSpec& group,
                                    std::size_t number) {
    if (node.kind != text::YamlKind::Mapping) {
      // Other text may need quotes behind a key.
      const bool is_command = node.kind == text::YamlKind::Text && !node.text.contains(": ") &&
                              node.text.find_first_of("#\n\"'") == std::string::npos;
      to_.complain(node, fmt::format("task {}: a task must have keys: write '- command: {}'",
                                     number, is_command ? node.text : "./train"));
      return std::nullopt;
    }
    const text::YamlNode* const id = node.find("id");
    const bool has_id = id != nullptr && id->kind == text::YamlKind::Text;
    const text::Complainer to =
        to_.within(has_id ? fmt::format("task '{}'", id->text) : fmt::format("task {}", number));
    check_keys(to, node, keys_of_task(), kNotOfTask, of_job());
    TaskSpec task;
    task.place = node.place;
    if (id != nullptr) task.id = read_id(to, *id);
    task.wants = read_wants(to, node);
    if (const text::YamlNode* command = node.find("command")) {
      task.in_shell = command->kind == text::YamlKind::Text;
      const Text* const shell = said(group, task, TaskKey::Shell);
      task.in_sh = task.in_shell && shell != nullptr && shell->text.text() == "sh";
      read_command(to, *command, task);
    } else if (misspelt(node, keys_of_task(), "command") == nullptr) {
      to.complain(node, "has no 'command'");
    }
    return task;
  }

  /// The id is part of {task_id} and {task_dir}, so it cannot use them.
  std::optional<Text> read_id(const text::Complainer& to, const text::YamlNode& node) {
    auto id = read_text(to, node, "id", names_before_start());
    if (!id) return std::nullopt;
    for (const std::size_t slot : {kTaskDirSlot, kRunDirSlot, kTaskIdSlot}) {
      if (!id->text.uses(slot)) continue;
      to.complain(node, fmt::format("id: '{{{}}}' cannot be a part of the id",
                                    text::kOwnPlaceholders.at(slot)));
      return std::nullopt;
    }
    return id;
  }

  void read_command(const text::Complainer& to, const text::YamlNode& node, TaskSpec& task) {
    task.command_place = node.place;
    if (task.in_shell) {
      if (node.text.find_first_not_of(" \t\r\n") == std::string::npos) {
        to.complain(node, "'command' is empty");
      } else if (auto text = read_text(to, node, "command", names(true))) {
        check_text(to, node, text->text.traits(), task.in_sh);
        task.evaluates = text::evaluating_place(text->text.text());
        task.arguments.push_back(std::move(text->text));
      }
      return;
    }
    if (node.kind == text::YamlKind::List && node.items.empty()) {
      to.complain(node, "'command' is empty");
      return;
    }
    if (node.kind != text::YamlKind::List) {
      to.complain(node,
                  "'command' must be text for the shell, or a list as in [python3, train.py]");
      return;
    }
    text::SecondReader reader;
    for (std::size_t i = 0; i < node.items.size(); ++i) {
      const text::YamlNode* item = node.items[i];
      // `null` as a word of a command is a word, as it is everywhere but in YAML.
      text::YamlNode word;
      if (item->kind == text::YamlKind::Null && !item->text.empty()) {
        word = *item;
        word.kind = text::YamlKind::Text;
        item = &word;
      }
      const std::string key = item->kind == text::YamlKind::Text
                                  ? std::string("command")
                                  : fmt::format("command: item {}", i + 1);
      if (auto text = read_text(to, *item, key, names(false))) {
        if (reader.takes_shell_command()) check_shell_command(to, *item, text->text, task);
        reader.take(text->text.text());
        task.arguments.push_back(std::move(text->text));
      }
    }
    if (node.items.front()->kind == text::YamlKind::Text && node.items.front()->text.empty()) {
      to.complain(*node.items.front(), "the program of 'command' is empty");
    }
  }

  /// Checks a list that has a shell read a command, as in `[sh, -c, 'train "$1"', sh, "{lr}"]`.
  void check_shell_command(const text::Complainer& to, const text::YamlNode& node,
                           const text::Template& command, TaskSpec& task) {
    task.evaluates = text::evaluating_place(command.text());
    for (std::size_t slot = 0; slot < names_.size(); ++slot) {
      if (!command.uses(slot)) continue;
      to.complain(node, fmt::format("command: '{{{0}}}' cannot be used in the text that 'sh -c' "
                                    "reads as a command; pass it as an argument: [sh, -c, '... "
                                    "\"$1\"', sh, \"{{{0}}}\"]",
                                    names_[slot]));
      return;
    }
  }

  static void check_text(const text::Complainer& to, const text::YamlNode& node,
                         const text::ShellTraits& traits, bool in_sh) {
    if (!in_sh && ::access(text::kBash, X_OK) != 0) {
      to.complain(node,
                  fmt::format("command: a text needs bash, and '{}' was not found; "
                              "install bash, set 'shell: sh', or write the command as a list, "
                              "as in [sh, -c, 'train \"$1\"', sh, \"{{lr}}\"]",
                              text::kBash));
    }
    // To sh, `train &> log` is `train &` and `> log`: the task would succeed at once.
    if (in_sh && traits.has_bash_operator) {
      to.complain(node,
                  "command: '&>', '&>>' and '|&' work only in bash; with 'shell: sh', write "
                  "'> log 2>&1', '>> log 2>&1' or '2>&1 |'");
    }
    if (traits.ends_in_background) {
      to.complain(node,
                  "command: the last command runs in the background, so the task would end at once "
                  "and stop it; remove '&' or 'coproc', or end with 'wait $!'");
    }
  }

  [[nodiscard]] text::Template::Names names(bool in_shell) const {
    return {.names = names_, .in_shell = in_shell, .matrix = matrix_names()};
  }
  /// For keys that count before a task starts: the tasks that it needs have not ended then.
  [[nodiscard]] text::Template::Names names_before_start() const {
    return {.names = std::span(names_).first(names_before_start_), .matrix = matrix_names()};
  }
  [[nodiscard]] std::span<const std::string_view> matrix_names() const {
    return std::span(names_).subspan(text::kOwnPlaceholders.size(), matrix_names_);
  }

  /// The text of a key. When it has no placeholder, its value is checked here, once and at its
  /// place.
  std::optional<Text> read_said(const text::Complainer& to, const text::YamlNode& node,
                                const TaskKeyInfo& info) {
    std::optional<Text> text;
    if (info.list && node.kind == text::YamlKind::List) {
      text = read_words(to, node, info);
    } else if (info.placeholders) {
      text = read_text(to, node, info.name,
                       info.take == nullptr ? names(false) : names_before_start());
    } else if (auto single = text::read_single(to, node, info.name)) {
      text = Text{.text = text::Template::plain(std::move(*single)), .place = node.place};
    }
    if (!text || text->text.uses_any() || info.take == nullptr) return text;
    Asked ignored;
    const Result<void> taken = info.take(text->text.text(), ignored);
    if (taken) return text;
    to.complain(node, fmt::format("{}: {}", info.name, taken.error().message));
    return std::nullopt;
  }

  static std::optional<Text> read_words(const text::Complainer& to, const text::YamlNode& node,
                                        const TaskKeyInfo& info) {
    std::string words;
    for (const text::YamlNode* const item : node.items) {
      const auto word = text::read_single(to, *item, info.name);
      if (!word) return std::nullopt;
      words += (words.empty() ? "" : ",") + *word;
    }
    return Text{.text = text::Template::plain(std::move(words)), .place = node.place};
  }

  /// Reads a value that may be keys with values.
  std::optional<Text> read_keyed(const text::Complainer& to, const text::YamlNode& node,
                                 const TaskKeyInfo& info) {
    const auto text =
        info.key == TaskKey::Where ? where_as_text(to, node) : workers_as_text(to, node);
    return text ? read_said(to, *text, info) : std::nullopt;
  }

  Wants read_wants(const text::Complainer& to, const text::YamlNode& node) {
    Wants wants;
    for (const TaskKeyInfo& info : task_keys()) {
      const text::YamlNode* const value = node.find(info.name);
      if (value == nullptr) continue;
      if (info.key == TaskKey::Environment) {
        wants.environment = read_environment(to, *value);
        continue;
      }
      auto said = info.key == TaskKey::Launcher  ? read_launcher(to, *value)
                  : info.key == TaskKey::Metrics ? read_metrics(to, *value)
                  : info.key == TaskKey::Workers || info.key == TaskKey::Where
                      ? read_keyed(to, *value, info)
                      : read_said(to, *value, info);
      if (said) wants.said.emplace_back(info.key, std::move(*said));
    }
    return wants;
  }

  std::vector<std::pair<std::string, Text>> read_environment(const text::Complainer& to,
                                                             const text::YamlNode& node) {
    std::vector<std::pair<std::string, Text>> environment;
    if (node.kind == text::YamlKind::Null) return environment;
    if (node.kind != text::YamlKind::Mapping) {
      to.complain(node, "'env' must be names with values, as in {CUDA_LAUNCH_BLOCKING: 1}");
      return environment;
    }
    for (std::size_t i = 0; i + 1 < node.items.size(); i += 2) {
      const text::YamlNode& name = *node.items[i];
      const text::YamlNode& value = *node.items[i + 1];
      if (const auto why = why_not_to_set(name.text)) {
        to.complain(name, fmt::format("env: '{}' {}", name.text, *why));
      } else if (value.kind == text::YamlKind::Null) {
        to.complain(value,
                    fmt::format("env: '{}' has no value; write \"\" for an empty one", name.text));
      } else if (auto text = read_text(to.within("env"), value, name.text, names(false))) {
        environment.emplace_back(name.text, std::move(*text));
      }
    }
    return environment;
  }

  const text::Complainer& to_;
  JobOrigin& origin_;
  const std::vector<GroupSpec>& before_;
  const std::vector<std::string>& repeated_;
  std::vector<std::string_view> names_;  ///< By slot.
  std::size_t matrix_names_ = 0;         ///< The number of them that are keys of the matrix.
  std::size_t names_before_start_ = 0;   ///< The number of them that are known before a task
                                         ///< starts.
  std::vector<std::string> needs_names_;
};

class JobReader {
 public:
  JobReader(const text::YamlDocument& document, JobOrigin origin, text::MistakeList& mistakes)
      : to_(document, mistakes, ""), origin_(std::move(origin)) {}

  JobSpec read(const text::YamlNode& root) {
    JobSpec job;
    if (root.kind != text::YamlKind::Mapping) {
      to_.complain(root,
                   "a job file must have the key 'groups:', with the list of groups below it");
      return job;
    }
    // Its keys would be many mistakes, none of which says this.
    if (const OtherToolFile* const other = kind_of_other_tool(root)) {
      to_.complain(root, fmt::format("this is {}, not a job file; {}", other->name, other->cure));
      return job;
    }
    check_keys(to_, root, keys_of_job(), kNotOfJob,
               {.keys = keys_of_group(), .place = "a group, under 'groups'"});
    if (const text::YamlNode* name = root.find("name")) job.name = read_job_name(*name);
    if (const text::YamlNode* run_dir = root.find("run-dir"))
      job.run_directory = read_run_dir(*run_dir);
    if (const text::YamlNode* first = root.find("try-first")) {
      job.try_first =
          read_value<bool>(to_, *first, "try-first", settings::parse_try_first).value_or(false);
    }
    job.telling = read_telling(to_, root);
    const text::YamlNode* const groups = root.find("groups");
    if (groups == nullptr) {
      // A misplaced key of a group, such as 'tasks', or a misspelt 'groups' is the same mistake,
      // and was reported.
      const bool is_misspelt = misspelt(root, keys_of_job(), "groups") != nullptr;
      if (!is_misspelt && !has_key_of_group(root)) to_.complain(root, "has no 'groups'");
    } else if (groups->kind == text::YamlKind::List && groups->items.empty()) {
      to_.complain(*groups, "'groups' is empty");
    } else if (groups->kind != text::YamlKind::List) {
      to_.complain(
          *groups,
          "'groups' must be a list of groups, each with 'tasks'; begin each group with '- name:'");
    } else {
      read_groups(*groups, job);
    }
    job.files = std::move(origin_.files);
    return job;
  }

 private:
  std::string read_job_name(const text::YamlNode& node) {
    const auto name = text::read_single(to_, node, "name");
    if (!name) return "";
    if (const auto why = text::why_no_run_name(*name)) {
      to_.complain(node, fmt::format("the name '{}' {}", *name, *why));
      return "";
    }
    return *name;
  }

  static std::string read_group_name(const text::Complainer& to, const text::YamlNode& node) {
    const auto name = text::read_single(to, node, "name");
    if (!name) return "";
    if (const auto why = text::why_unsafe(*name)) {
      to.complain(node, fmt::format("the group name '{}' {}; it must be a valid directory name",
                                    *name, *why));
      return "";
    }
    return *name;
  }

  std::string read_run_dir(const text::YamlNode& node) {
    const auto path = read_text(to_, node, "run-dir", {});
    if (!path) return "";
    if (path->text.text().empty()) to_.complain(node, "'run-dir' is empty");
    return path->text.text();
  }

  void read_groups(const text::YamlNode& groups, JobSpec& job) {
    for (std::size_t i = 0; i < groups.items.size(); ++i) {
      const text::YamlNode& node = *groups.items[i];
      if (is_repeat(node)) {
        read_repeated(node, i + 1 == groups.items.size(), job);
      } else {
        read_group(node, fmt::format("group-{}", i + 1), {}, job);
      }
    }
  }

  void read_repeated(const text::YamlNode& node, bool is_last, JobSpec& job) {
    const text::Complainer to = to_.within("repeat");
    if (!is_last) {
      to.complain(node,
                  "'repeat' must be the last group; to run more after the last round, submit it to "
                  "the run or start it after the run");
    }
    const std::vector<const text::YamlNode*> groups = groups_of_repeat(to, node);
    std::vector<std::string> fallbacks;
    std::vector<std::string> names;
    for (const text::YamlNode* const group : groups) {
      fallbacks.push_back(fmt::format("group-{}", job.groups.size() + fallbacks.size() + 1));
      const text::YamlNode* const name =
          group->kind == text::YamlKind::Mapping ? group->find("name") : nullptr;
      names.push_back(name != nullptr ? name->text : fallbacks.back());
    }
    job.repeat = read_repeat(to, node, names);
    for (std::size_t i = 0; i < groups.size(); ++i) {
      read_group(*groups[i], fallbacks[i], names, job);
    }
  }

  void read_group(const text::YamlNode& node, const std::string& fallback,
                  const std::vector<std::string>& repeated, JobSpec& job) {
    if (node.kind != text::YamlKind::Mapping) {
      to_.complain(node,
                   fmt::format("{}: a group must be keys with values: name, tasks, ...", fallback));
      return;
    }
    const text::YamlNode* const name_node = node.find("name");
    std::string name;
    if (name_node != nullptr) name = read_group_name(to_, *name_node);
    // Further mistakes of a group with an invalid name are found by the name in the file.
    const bool is_named = name_node != nullptr && !name_node->text.empty();
    const std::string shown = name.empty() && is_named ? name_node->text : name;
    if (name.empty()) name = fallback;
    const text::YamlNode& named = name_node != nullptr ? *name_node : node;
    const auto first = std::ranges::find(seen_, name, [](const auto& one) { return one.first; });
    if (first != seen_.end()) {
      to_.complain(named, fmt::format("duplicate group name '{}'; the first is in line {}", name,
                                      first->second->place.line));
    }
    seen_.emplace_back(name, &named);
    const text::Complainer to =
        to_.within(fmt::format("group '{}'", shown.empty() ? fallback : shown));
    job.groups.push_back(GroupReader(to, origin_, job.groups, repeated).read(node, name));
    job.groups.back().name_place = named.place;
  }

  text::Complainer to_;
  JobOrigin origin_;
  std::vector<std::pair<std::string, const text::YamlNode*>> seen_;  ///< Names, and where.
};

}  // namespace

JobSpec read_job(const text::YamlDocument& document, JobOrigin origin,
                 text::MistakeList& mistakes) {
  if (document.root() == nullptr) {
    if (document.mistakes().empty()) {
      mistakes.add({.file = document.file(), .message = std::string(kEmptyJobFile)});
    }
    return {};
  }
  return JobReader(document, std::move(origin), mistakes).read(*document.root());
}

}  // namespace trainyard::job
