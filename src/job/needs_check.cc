#include "job/needs_check.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "job/job_binding.h"
#include "job/needs_values.h"
#include "job/run_if.h"
#include "job/task_keys.h"
#include "model/ids.h"
#include "model/plan.h"
#include "model/terms.h"

namespace trainyard::job {
namespace {

class NeedsCheck {
 public:
  NeedsCheck(const JobSpec& spec, const PlannedJob& job, const text::YamlDocument& document,
             text::MistakeList& mistakes)
      : spec_(spec), job_(job), document_(document), mistakes_(mistakes) {}

  void run() {
    for (std::size_t i = 0; i < spec_.groups.size(); ++i) {
      for (const TaskSpec& task : spec_.groups[i].tasks) check_task(i, task);
    }
    for (std::size_t i = 0; i < spec_.groups.size(); ++i) {
      const bool matched = !job_.plan.groups[i].needs_by_task.empty();
      if (!matched || !spec_.groups[i].try_first.value_or(false)) continue;
      complain(
          spec_.groups[i].place, spec_.groups[i],
          "try-first: cannot be combined with 'match': each task starts when the tasks that it "
          "needs have finished");
    }
    for (std::size_t i = 0; i < spec_.groups.size(); ++i) check_condition(i);
  }

 private:
  void complain(text::Place place, const GroupSpec& group, const std::string& message) {
    mistakes_.add(document_.mistake(place, fmt::format("group '{}': {}", group.name, message)));
  }

  void check_task(std::size_t number, const TaskSpec& task) {
    const GroupSpec& group = spec_.groups[number];
    const std::size_t first = first_needs_slot(group);
    std::optional<std::size_t> list;
    for (std::size_t i = 0; i < group.needs_values.size(); ++i) {
      const NeedsValue& value = group.needs_values[i];
      if (!uses(group, task, first + i)) continue;
      if (!value.of_round_before && !check_needed(number, task, value)) continue;
      const bool several = value.kind == NeedsValue::Kind::Directories;
      if (several && task.in_shell && stands_as_words(task, first + i)) {
        if (list)
          complain(task.command_place, group, "one list of directories is a command's \"$@\"");
        if (task.arguments.front().traits().changes_parameters) {
          complain(task.command_place, group,
                   fmt::format("'{{{}}}' is the shell's \"$@\", which differs in a function and "
                               "after 'set --' or 'shift'; write the command into a script that "
                               "gets the directories as arguments",
                               name_of(value)));
        }
        list = i;
      }
    }
  }

  /// Values of the round before are checked in job/repeat_check.h. False if the value is of an
  /// unknown group.
  bool check_needed(std::size_t number, const TaskSpec& task, const NeedsValue& value) {
    // Looked at when round 0 was read.
    const auto before = std::ranges::find(spec_.before, value.group, &GroupSpec::name);
    if (before != spec_.before.end()) return true;
    const auto found = std::ranges::find(spec_.groups, value.group, &GroupSpec::name);
    if (found == spec_.groups.end()) {
      complain(task.command_place, spec_.groups[number],
               fmt::format("'{{{}}}': group '{}' is in an earlier job file, so the results "
                           "of its tasks are not available here",
                           name_of(value), value.group));
      return false;
    }
    if (value.kind == NeedsValue::Kind::Directories) return true;
    const auto other = static_cast<std::size_t>(found - spec_.groups.begin());
    check_one(number, task, value, most_needed(number, other));
    return true;
  }

  static bool stands_as_words(const TaskSpec& task, std::size_t slot) {
    const std::vector<std::size_t> words = task.arguments.front().slots_as_words();
    return std::ranges::find(words, slot) != words.end();
  }

  void check_one(std::size_t number, const TaskSpec& task, const NeedsValue& value,
                 std::size_t most) {
    if (most == 1) return;
    complain(task.command_place, spec_.groups[number],
             fmt::format("'{{{0}}}' is of one task, and {1} of group '{2}' are needed; "
                         "'{{needs.{2}.dirs}}' are the directories of all",
                         name_of(value), most, value.group));
  }

  /// The maximum number of tasks of one group that a task of another needs.
  [[nodiscard]] std::size_t most_needed(std::size_t group, std::size_t other) const {
    const auto end_of = [this](std::size_t number) {
      return number + 1 < job_.group_starts.size()
                 ? job_.group_starts[number + 1]
                 : static_cast<std::uint32_t>(job_.plan.tasks.size());
    };
    const std::uint32_t first = job_.group_starts[other];
    const std::vector<model::GroupIndex>& by_task = job_.plan.groups[group].needs_by_task;
    const model::GroupIndex index{static_cast<std::uint32_t>(other)};
    if (std::ranges::find(by_task, index) == by_task.end()) return end_of(other) - first;
    std::size_t most = 0;
    std::size_t count = 0;
    model::TaskIndex last{job_.group_starts[group]};
    for (const model::TaskNeed& need : job_.plan.task_needs) {
      const bool own =
          need.task.value >= job_.group_starts[group] && need.task.value < end_of(group);
      if (!own || need.needed.value < first || need.needed.value >= end_of(other)) continue;
      count = need.task == last ? count + 1 : 1;
      last = need.task;
      most = std::max(most, count);
    }
    return most;
  }

  void check_condition(std::size_t number) {
    const model::PlannedGroup& planned = job_.plan.groups[number];
    if (!planned.needs.empty() || !planned.needs_earlier.empty() ||
        !planned.needs_by_task.empty()) {
      return;
    }
    const GroupSpec& group = spec_.groups[number];
    for (const TaskSpec& task : group.tasks) {
      const Text* const text = said(group, task, TaskKey::If);
      if (text == nullptr || parse_run_if(text->text.text()) != model::RunIf::Failure) continue;
      complain(text->place, group,
               fmt::format("if: failure() cannot be used without {}",
                           document_.has_options() ? "--needs" : "'needs'"));
    }
  }

  const JobSpec& spec_;
  const PlannedJob& job_;
  const text::YamlDocument& document_;
  text::MistakeList& mistakes_;
};

}  // namespace

void check_needs(const JobSpec& spec, const PlannedJob& job, const text::YamlDocument& document,
                 text::MistakeList& mistakes) {
  NeedsCheck(spec, job, document, mistakes).run();
}

}  // namespace trainyard::job
