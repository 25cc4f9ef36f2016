// Checks the values of a task for a command that has bash evaluate them.
#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "job/job_state.h"
#include "job/needs_values.h"
#include "text/plain_values.h"

namespace trainyard::job {
namespace {

std::string name_of_slot(const GroupSpec& group, std::size_t slot) {
  if (slot < kMatrixSlots) return std::string(text::kOwnPlaceholders.at(slot));
  const std::size_t key = slot - kMatrixSlots;
  if (key < group.matrix.keys().size()) return group.matrix.keys()[key];
  const std::size_t first = first_needs_slot(group);
  return slot < first ? "round" : name_of(group.needs_values.at(slot - first));
}

/// The variables of a task that have its id, which has values of the matrix.
constexpr std::array<std::string_view, 4> kHaveTheId{
    "TRAINYARD_TASK_ID", "TRAINYARD_TASK_DIR", "TRAINYARD_CHECKPOINT_DIR", "TRAINYARD_RESULT"};

/// The first of them that the command names, if the id has what starts a command. The id need not
/// be plain: `[[ -e $TRAINYARD_TASK_DIR/last.pt ]]` is harmless with a space in it.
std::optional<std::string_view> variable_with_harmful_id(const TaskSpec& task,
                                                         std::string_view id) {
  if (id.find_first_of("$`") == std::string_view::npos) return std::nullopt;
  const auto* const found = std::ranges::find_if(kHaveTheId, [&](std::string_view variable) {
    return std::ranges::any_of(task.arguments, [variable](const text::Template& argument) {
      return argument.text().contains(variable);
    });
  });
  return found == kHaveTheId.end() ? std::nullopt : std::optional(*found);
}

bool is_set_in(const Wants& wants, std::string_view variable) {
  return std::ranges::find(wants.environment, variable, &std::pair<std::string, Text>::first) !=
         wants.environment.end();
}

}  // namespace

std::optional<std::string> Job::State::why_not_plain(const Bound& bound) const {
  const GroupSpec& group = *bound.group;
  const TaskSpec& task = *bound.task;
  if (!task.evaluates) return std::nullopt;
  const auto is_variable = [&](std::string_view variable) {
    return variable.starts_with("TRAINYARD_") || variable_names.contains(variable) ||
           is_set_in(group.wants, variable) || is_set_in(task.wants, variable);
  };
  const std::string place =
      fmt::format("{}, which evaluates values; {}", task.evaluates->what, task.evaluates->cure);
  if (const auto variable = variable_with_harmful_id(task, bound.id)) {
    return fmt::format(
        "the id '{}', which {} contains, must have no '$' or '`', as the command has {}", bound.id,
        *variable, place);
  }
  const auto why = [&](std::size_t slot, const std::string& value) -> std::optional<std::string> {
    const std::string of_what =
        fmt::format("the value '{}' of '{{{}}}'", value, name_of_slot(group, slot));
    if (!text::is_plain(value)) {
      return fmt::format("{} must be plain ({}), as the command has {}", of_what, text::kPlain,
                         place);
    }
    if (const auto variable = text::variable_in(value, is_variable)) {
      return fmt::format("{} has the name of a variable, '{}', and the command has {}", of_what,
                         *variable, place);
    }
    return std::nullopt;
  };
  for (std::size_t slot = 0; slot < bound.bindings.size(); ++slot) {
    const std::optional<std::string>& value = bound.bindings[slot];
    if (!value || !uses(group, task, slot)) continue;
    if (auto found = why(slot, *value)) return found;
  }
  for (const auto& [slot, values] : bound.lists) {
    for (const std::string& value : values) {
      if (auto found = why(slot, value)) return found;
    }
  }
  return std::nullopt;
}

void Job::State::check_values(const text::YamlDocument& document,
                              text::MistakeList& mistakes) const {
  std::vector<const TaskSpec*> known;  // One mistake for each task of the file is enough.
  for (std::uint32_t i = 0; i < plan->tasks.size(); ++i) {
    const GroupSpec& of = spec.groups[plan->shape_of({i}).group.value];
    const bool evaluates = std::ranges::any_of(
        of.tasks, [](const TaskSpec& task) { return task.evaluates.has_value(); });
    if (!evaluates || !plan->tasks[i].is_open()) continue;
    Bound bound = bind({i});
    bound.bindings[kTaskDirSlot] = directory_of(bound);
    bound.bindings[kRunDirSlot] = paths.run_directory;
    if (std::ranges::find(known, bound.task) != known.end()) continue;
    const auto why = why_not_plain(bound);
    if (!why) continue;
    known.push_back(bound.task);
    mistakes.add(document.mistake(bound.task->command_place,
                                  fmt::format("group '{}': command: {}", of.name, *why)));
  }
}

}  // namespace trainyard::job
