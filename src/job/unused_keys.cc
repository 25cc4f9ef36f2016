#include "job/unused_keys.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/fingerprint.h"
#include "job/job_binding.h"
#include "job/matrix.h"
#include "job/needs_values.h"
#include "job/task_keys.h"
#include "settings/setting_value.h"
#include "text/placeholder.h"

namespace trainyard::job {
namespace {

using Texts = std::vector<const text::Template*>;

/// All texts of a task and its group in which a placeholder may be.
Texts texts_of(const GroupSpec& group, const TaskSpec& task) {
  Texts texts;
  for (const Wants* const wants : {&group.wants, &task.wants}) {
    for (const auto& [key, text] : wants->said) texts.push_back(&text.text);
    for (const auto& [name, text] : wants->environment) texts.push_back(&text.text);
  }
  for (const text::Template& argument : task.arguments) texts.push_back(&argument);
  if (task.id) texts.push_back(&task.id->text);
  return texts;
}

bool any_uses(const Texts& texts, std::size_t slot) {
  return std::ranges::any_of(texts, [slot](const auto* text) { return text->uses(slot); });
}

bool any_contains(const Texts& texts, std::string_view what) {
  return std::ranges::any_of(texts,
                             [what](const auto* text) { return text->text().contains(what); });
}

bool is_two_phase(const GroupSpec& group, const TaskSpec& task) {
  const Text* const text = said(group, task, TaskKey::TwoPhase);
  return text != nullptr && settings::parse_flag(text->text.text()).value_or(false);
}

/// Whether the values of all keys reach the task in another way than by their placeholders.
bool has_all_values(const GroupSpec& group, const TaskSpec& task, const Texts& texts) {
  if (is_two_phase(group, task) || any_contains(texts, "TRAINYARD_SEED")) return true;
  // An id that is not configured has all values.
  const bool names_id = any_uses(texts, kTaskIdSlot) || any_contains(texts, "TRAINYARD_TASK_ID");
  if (names_id && !task.id) return true;
  // The result of the round before is that of the same cell.
  for (std::size_t i = 0; i < group.needs_values.size(); ++i) {
    const bool is_of_cell = group.needs_values[i].of_round_before;
    if (is_of_cell && any_uses(texts, first_needs_slot(group) + i)) return true;
  }
  return false;
}

/// Whether the tasks of the group are matched with those of another by this key.
bool is_matched(const GroupSpec& group, std::string_view key) {
  return group.needs && std::ranges::any_of(*group.needs, [key](const Need& need) {
           return need.match && std::ranges::find(*need.match, key) != need.match->end();
         });
}

bool is_repetition(std::string_view key) {
  constexpr std::array<std::string_view, 3> kRepetitions{"repeat", "run", "trial"};
  return std::ranges::find(kRepetitions, key) != kRepetitions.end();
}

bool is_part_of_name(char byte) {
  return (byte >= '0' && byte <= '9') || (byte >= 'A' && byte <= 'Z') ||
         (byte >= 'a' && byte <= 'z') || byte == '_';
}

constexpr std::string_view kBetweenWords = " \t\n;&|({`";

/// Whether a command for the shell may begin here, after assignments and words like `export`:
/// `lr=1` sets a variable then, and is an argument elsewhere (`train.py lr=1`).
bool may_begin_command(std::string_view before) {
  constexpr std::string_view kBlanks = " \t";
  constexpr std::string_view kBegin = "\n;&|({`";
  constexpr std::array<std::string_view, 11> kWords{"export",  "local", "declare", "readonly",
                                                    "typeset", "env",   "do",      "then",
                                                    "else",    "for",   "read"};
  while (true) {
    const auto last = before.find_last_not_of(kBlanks);
    if (last == std::string_view::npos || kBegin.contains(before[last])) return true;
    before = before.substr(0, last + 1);
    const auto gap = before.find_last_of(kBetweenWords);
    const std::string_view word = gap == std::string_view::npos ? before : before.substr(gap + 1);
    if (std::ranges::find(kWords, word) != kWords.end()) return true;
    const auto equals = word.find('=');
    const bool assigns = equals != std::string_view::npos && equals > 0 &&
                         std::ranges::all_of(word.substr(0, equals), is_part_of_name);
    const bool is_option = word.starts_with('-') && equals == std::string_view::npos;
    if (!assigns && !is_option) return false;
    before.remove_suffix(word.size());
  }
}

/// Whether a command gives the variable a value itself: `lr=1`, `for lr in`, `read lr`.
bool sets_variable(std::string_view command, std::string_view name) {
  for (auto at = command.find(name); at != std::string_view::npos;
       at = command.find(name, at + 1)) {
    const std::string_view before = command.substr(0, at);
    const std::string_view behind = command.substr(at + name.size());
    const bool is_word = behind.empty() || behind.front() == '=' || behind.starts_with("+=") ||
                         std::string_view(" \t\n;").contains(behind.front());
    const bool begins = before.empty() || kBetweenWords.contains(before.back());
    const bool is_named = behind.starts_with('=') || behind.starts_with("+=") ||
                          before.ends_with("for ") || before.contains("read ");
    if (is_word && begins && is_named && may_begin_command(before)) return true;
  }
  return false;
}

/// "${lr}" or "$lr", where a task has one and nothing gives that variable a value.
std::optional<std::string> unset_variable(const GroupSpec& group, const TaskSpec& task,
                                          const Texts& texts, const std::string& key) {
  for (const Wants* const wants : {&group.wants, &task.wants}) {
    for (const auto& [name, text] : wants->environment) {
      if (name == key) return std::nullopt;
    }
  }
  for (const text::Template& argument : task.arguments) {
    if (sets_variable(argument.text(), key)) return std::nullopt;
  }
  std::string in_braces = fmt::format("${{{}}}", key);
  if (any_contains(texts, in_braces)) return in_braces;
  if (!std::ranges::all_of(key, is_part_of_name)) return std::nullopt;
  std::string bare = "$" + key;
  for (const text::Template* const text : texts) {
    const std::string& literal = text->text();
    for (auto at = literal.find(bare); at != std::string::npos; at = literal.find(bare, at + 1)) {
      const std::size_t end = at + bare.size();
      if (end == literal.size() || !is_part_of_name(literal[end])) return bare;
    }
  }
  return std::nullopt;
}

/// "{{lr}}", "{{ lr }}", "{ lr }" or "{lr" of a text, which are literal text. Two braces have
/// become one in a text that was read.
std::optional<std::string> literal_placeholder(const Texts& texts, const std::string& key) {
  struct Form {
    std::string read;
    std::string written;
  };
  const std::array<Form, 3> forms{{
      {.read = fmt::format("{{{}}}", key), .written = fmt::format("{{{{{}}}}}", key)},
      {.read = fmt::format("{{ {} }}}}", key), .written = fmt::format("{{{{ {} }}}}", key)},
      {.read = fmt::format("{{ {} }}", key), .written = fmt::format("{{ {} }}", key)},
  }};
  for (const Form& form : forms) {
    if (any_contains(texts, form.read)) return form.written;
  }
  std::string open = "{" + key;
  for (const text::Template* const text : texts) {
    if (text->text().ends_with(open) || text->text().contains(open + " ")) return open;
  }
  return std::nullopt;
}

/// The placeholder in the commands of `xargs` and GNU parallel; empty: there is none.
std::string_view placeholder_of_others(const Texts& texts) {
  // These commands fill it themselves.
  if (any_contains(texts, "find ") || any_contains(texts, "xargs")) return {};
  for (const std::string_view each : {"{}", ":::"}) {
    if (any_contains(texts, each)) return each;
  }
  return {};
}

/// The largest number of values of a key in combinations that have the same values of all `used`
/// keys: tasks with these compute the same.
std::size_t count_copies(const Matrix& matrix, std::size_t key,
                         const std::vector<std::size_t>& used) {
  if (const auto values = matrix.values_in_product(key)) return *values;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> cells;  // Used values, value of the key.
  cells.reserve(matrix.size());
  const auto add = [&matrix](Fingerprint& print, std::size_t combination, std::size_t each) {
    const std::optional<std::string> value = matrix.value(combination, each);
    print.add(std::int64_t{value.has_value()});
    print.add(value.value_or(""));
  };
  for (std::size_t combination = 0; combination < matrix.size(); ++combination) {
    Fingerprint of_used;
    for (const std::size_t each : used) add(of_used, combination, each);
    Fingerprint of_key;
    add(of_key, combination, key);
    cells.emplace_back(of_used.value(), of_key.value());
  }
  std::ranges::sort(cells);
  const auto again = std::ranges::unique(cells);
  cells.erase(again.begin(), again.end());
  std::size_t most = 0;
  for (auto at = cells.begin(); at != cells.end();) {
    const auto end =
        std::find_if(at, cells.end(), [at](const auto& cell) { return cell.first != at->first; });
    most = std::max(most, static_cast<std::size_t>(end - at));
    at = end;
  }
  return most;
}

/// The keys of a group, and which of its tasks do not use them.
class GroupLook {
 public:
  explicit GroupLook(const GroupSpec& group) : group_(group), keys_(group.matrix.keys()) {
    for (const TaskSpec& task : group.tasks) {
      TaskLook look{.task = &task, .texts = texts_of(group, task)};
      look.has_all = has_all_values(group, task, look.texts);
      for (std::size_t key = 0; key < keys_.size(); ++key) {
        const bool is_used = look.has_all || is_matched(group, keys_[key]) ||
                             any_uses(look.texts, kMatrixSlots + key);
        if (is_used) look.used.push_back(key);
      }
      tasks_.push_back(std::move(look));
    }
  }

  [[nodiscard]] std::size_t keys() const { return keys_.size(); }

  /// Whether warning() may be worth its cost.
  [[nodiscard]] bool may_warn(std::size_t key) const {
    return std::ranges::any_of(tasks_, [&](const TaskLook& task) {
      return is_unused(task, key) || has_unset_variable(task, key);
    });
  }

  /// The warning about the key, which names the first of the tasks that do not use it.
  [[nodiscard]] std::optional<std::string> warning(std::size_t key) const {
    const std::string& name = keys_[key];
    std::size_t unused = 0;
    for (const TaskLook& task : tasks_) unused += is_unused(task, key) ? 1U : 0U;
    for (std::size_t i = 0; i < tasks_.size(); ++i) {
      const TaskLook& task = tasks_[i];
      const bool is_of_all = tasks_.size() == 1 || unused == tasks_.size();
      const std::string whose = is_of_all ? fmt::format("group '{}'", group_.name)
                                          : fmt::format("group '{}': task {}", group_.name, i + 1);
      const auto variable = unset_variable(group_, *task.task, task.texts, name);
      if (is_unused(task, key)) {
        const std::size_t copies = count_copies(group_.matrix, key, task.used);
        if (copies < 2) continue;
        const bool is_of_several = is_of_all && tasks_.size() > 1;
        const bool all_are_identical = !is_of_several && copies == group_.matrix.size();
        const auto written = variable ? variable : literal_placeholder(task.texts, name);
        const std::string_view instead =
            written ? std::string_view(*written) : placeholder_of_others(task.texts);
        return fmt::format(
            "{}: matrix key '{}' is not used in command, id or env: {} are identical; write "
            "'{{{}}}' {}",
            whose, name,
            all_are_identical ? fmt::format("its {} tasks", copies)
                              : fmt::format("tasks that differ only in '{}'", name),
            name,
            instead.empty() ? std::string("in the command")
                            : fmt::format("instead of '{}'", instead));
      }
      if (variable && has_unset_variable(task, key)) {
        return fmt::format(
            "{}: '{}' is a variable of the shell, and not the matrix key '{}'; write '{{{}}}'",
            whose, *variable, name, name);
      }
    }
    return std::nullopt;
  }

 private:
  struct TaskLook {
    const TaskSpec* task = nullptr;
    Texts texts;
    bool has_all = false;
    std::vector<std::size_t> used;  ///< Keys, ascending.
  };

  [[nodiscard]] bool is_unused(const TaskLook& task, std::size_t key) const {
    return !is_repetition(keys_[key]) && !std::ranges::binary_search(task.used, key);
  }
  /// "$lr" alone may be meant for another program, as awk, where the key is used.
  [[nodiscard]] bool has_unset_variable(const TaskLook& task, std::size_t key) const {
    const auto variable = unset_variable(group_, *task.task, task.texts, keys_[key]);
    return variable && variable->starts_with("${");
  }

  const GroupSpec& group_;
  const std::vector<std::string>& keys_;
  std::vector<TaskLook> tasks_;
};

}  // namespace

std::vector<std::string> unused_key_warnings(const JobSpec& spec) {
  std::vector<std::string> warnings;
  std::size_t more = 0;
  for (const GroupSpec& group : spec.groups) {
    if (!group.has_matrix) continue;
    const GroupLook look(group);
    for (std::size_t key = 0; key < look.keys(); ++key) {
      if (!look.may_warn(key)) continue;
      if (warnings.size() == kUnusedKeysShown) {
        ++more;
        continue;
      }
      if (auto warning = look.warning(key)) warnings.push_back(std::move(*warning));
    }
  }
  if (more > 0) warnings.push_back(fmt::format("and up to {} more matrix keys", more));
  return warnings;
}

}  // namespace trainyard::job
