#include "job/job_binding.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/fingerprint.h"
#include "job/needs_values.h"
#include "text/python_command.h"
#include "text/shell_reader.h"

namespace trainyard::job {

std::size_t count_tasks(const GroupSpec& group) { return group.matrix.size() * group.tasks.size(); }

TaskOrigin origin_of(const GroupSpec& group, std::size_t index) {
  return {.combination = index / group.tasks.size(), .task = index % group.tasks.size()};
}

void bind_combination(const GroupSpec& group, std::size_t combination, text::Bindings& bindings) {
  const std::size_t keys = group.matrix.keys().size();
  const std::size_t first = first_needs_slot(group);
  // A value of needed tasks stands for itself until it is known (Job::launch()).
  bindings.resize(first + group.needs_values.size());
  for (std::size_t i = 0; i < group.needs_values.size(); ++i) {
    bindings[first + i] = fmt::format("{{{}}}", name_of(group.needs_values[i]));
  }
  if (group.round) bindings[round_slot(group)] = fmt::to_string(*group.round);
  bindings[kGroupSlot] = group.name;
  for (std::size_t key = 0; key < keys; ++key) {
    bindings[kMatrixSlots + key] = group.matrix.value(combination, key);
  }
}

std::string make_id(const GroupSpec& group, TaskOrigin origin, const text::Bindings& bindings) {
  const TaskSpec& task = group.tasks[origin.task];
  if (!task.id && !group.has_matrix) return fmt::format("{}-{}", group.name, origin.task + 1);
  std::string id = task.id ? task.id->text.fill(bindings) : combination_text(group, bindings);
  if (!task.id && group.tasks.size() > 1) id = fmt::format("task={},{}", origin.task + 1, id);
  // Values are often paths. They get '_' and not '-', with which no id may start. A '/' in the
  // text of the id itself is a mistake and stays, so that check_id() finds it.
  if (!task.id || !task.id->text.text().contains('/')) std::ranges::replace(id, '/', '_');
  return id;
}

const Text* said(const GroupSpec& group, const TaskSpec& task, TaskKey key) {
  const Text* const own = task.wants.find(key);
  return own != nullptr ? own : group.wants.find(key);
}

bool uses(const GroupSpec& group, const TaskSpec& task, std::size_t slot) {
  const auto in = [slot](const Text& text) { return text.text.uses(slot); };
  for (const Wants* const wants : {&group.wants, &task.wants}) {
    if (std::ranges::any_of(wants->environment, in, &std::pair<std::string, Text>::second)) {
      return true;
    }
  }
  const Text* const directory = said(group, task, TaskKey::WorkingDirectory);
  if (directory != nullptr && in(*directory)) return true;
  return std::ranges::any_of(task.arguments,
                             [slot](const text::Template& text) { return text.uses(slot); });
}

Variables said_variables(const GroupSpec& group, const TaskSpec& task,
                         const text::Bindings& bindings) {
  Variables variables;
  for (const Wants* wants : {&group.wants, &task.wants}) {
    for (const auto& [name, text] : wants->environment) {
      const auto found =
          std::ranges::find(variables, name, [](const auto& one) { return one.first; });
      if (found == variables.end()) {
        variables.emplace_back(name, text.text.fill(bindings));
      } else {
        found->second = text.text.fill(bindings);
      }
    }
  }
  return variables;
}

std::int64_t command_fingerprint(const GroupSpec& group, const TaskSpec& task,
                                 text::Bindings bindings) {
  for (std::size_t slot = 0; slot < text::kOwnPlaceholders.size(); ++slot) {
    bindings[slot] = fmt::format("{{{}}}", text::kOwnPlaceholders.at(slot));
  }
  for (std::size_t key = 0; key < group.matrix.keys().size(); ++key) {
    // A value that the id does not have may be edited, and the id stays.
    const std::size_t slot = kMatrixSlots + key;
    const bool in_id = !task.id || task.id->text.uses(slot);
    if (in_id) bindings[slot] = fmt::format("{{{}}}", group.matrix.keys()[key]);
  }
  if (group.round) bindings[round_slot(group)] = "{round}";
  Fingerprint print;
  print.add(runner_of(task));
  for (const text::Template& argument : task.arguments) print.add(argument.fill(bindings));
  for (const auto& [name, value] : said_variables(group, task, bindings)) {
    print.add(name);
    print.add(value);
  }
  for (const TaskKeyInfo& info : task_keys()) {
    // The shell is what runs the command.
    if (!info.in_fingerprint || info.key == TaskKey::Shell) continue;
    const Text* const text = said(group, task, info.key);
    print.add(info.name);
    print.add(text != nullptr ? text->text.fill(bindings) : "");
  }
  return static_cast<std::int64_t>(print.value() >> 1U);
}

std::string_view runner_of(const TaskSpec& task) {
  if (!task.in_shell) return "exec";
  return task.in_sh ? "/bin/sh" : "sh";
}

std::vector<std::string> shell_words(const TaskSpec& task, std::string text) {
  // The shell of POSIX has no pipefail.
  if (task.in_sh) return {"/bin/sh", "-c", std::move(text)};
  return text::bash_command(std::move(text), task.arguments.front().traits());
}

std::string first_word(const TaskSpec& task, const text::Bindings& bindings) {
  const std::string word = task.arguments.front().fill(bindings);
  return task.in_shell ? text::program_of_command(word) : word;
}

std::string combination_text(const GroupSpec& group, const text::Bindings& bindings) {
  std::string text;
  for (std::size_t key = 0; key < group.matrix.keys().size(); ++key) {
    const std::optional<std::string>& value = bindings[kMatrixSlots + key];
    if (!value) continue;
    if (!text.empty()) text += ',';
    text += group.matrix.keys()[key];
    text += '=';
    text += *value;
  }
  return text;
}

}  // namespace trainyard::job
