#include "job/repeat_check.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "base/nearest.h"
#include "job/group_names.h"
#include "job/job_binding.h"
#include "job/needs_values.h"

namespace trainyard::job {
namespace {

class RepeatCheck {
 public:
  RepeatCheck(const JobSpec& spec, const RepeatSpec& repeat, const text::YamlDocument& document,
              text::MistakeList& mistakes)
      : spec_(spec), repeat_(repeat), document_(document), mistakes_(mistakes) {}

  void run() {
    check_until();
    for (const InitialSpec& initial : repeat_.initial) check_initial(initial);
    for (const GroupSpec& group : spec_.groups) {
      check_needs_of(group);
      if (!group.round) {
        check_name(group);
        continue;
      }
      for (const TaskSpec& task : group.tasks) check_task(group, task);
    }
  }

 private:
  void complain(text::Place place, std::string_view message) {
    mistakes_.add(document_.mistake(place, std::string(message)));
  }
  void complain(text::Place place, const GroupSpec& group, std::string_view message) {
    complain(place, fmt::format("group '{}': {}", group.name, message));
  }

  /// Nothing if there is no group of that name.
  [[nodiscard]] const GroupSpec* find(std::string_view name) const {
    const auto found = std::ranges::find(spec_.groups, name, &GroupSpec::name);
    return found == spec_.groups.end() ? nullptr : &*found;
  }

  void check_until() {
    const std::optional<Until>& until = repeat_.until;
    if (!until) return;
    const GroupSpec* const group = find(until->group);
    if (group == nullptr || count_tasks(*group) == 1) return;
    complain(until->place, fmt::format("repeat: until: '{}' is of one task, and group '{}' has {}",
                                       until->text, group->name, count_tasks(*group)));
  }

  void check_initial(const InitialSpec& initial) {
    if (initial.group.empty()) return;
    const GroupSpec* const group = find(initial.group);
    if (group != nullptr && !group->round) return;
    if (group != nullptr) {
      complain(
          initial.place,
          fmt::format("repeat: initial: '{}' is itself repeated; name a group before the repeat",
                      initial.group));
      return;
    }
    std::vector<std::string_view> names;
    for (const GroupSpec& each : spec_.groups) {
      if (!each.round) names.emplace_back(each.name);
    }
    const auto near = nearest(initial.group, names);
    complain(initial.place,
             fmt::format("repeat: initial: no group '{}' before the repeat{}; '{}' in round 0 can "
                         "also be text: '{}.dir: models/first'",
                         initial.group, near ? fmt::format(" (did you mean '{}'?)", *near) : "",
                         initial.of.group, initial.of.group));
  }

  void check_name(const GroupSpec& group) {
    const auto of = read_name_in_round(group.name);
    if (!of) return;
    const GroupSpec* const other = find(of->group);
    if (other == nullptr || !other->round || of->round >= repeat_.rounds_max) return;
    complain(group.name_place, group,
             fmt::format("so group '{}' is called in round {}: give one of them another name",
                         other->name, of->round));
  }

  void check_needs_of(const GroupSpec& group) {
    if (!group.needs) return;
    for (const Need& need : *group.needs) {
      const GroupSpec* const other = find(need.group);
      if (other == nullptr) continue;
      if (other->round && !group.round) {
        complain(need.place, group,
                 fmt::format("needs: '{}' is repeated, and starts after this group; a group cannot "
                             "need a later one",
                             need.group));
      } else if (need.match && group.round && !other->round) {
        complain(need.place, group,
                 fmt::format("needs: match: '{0}' is not repeated, so it has ended before the "
                             "later rounds; use 'needs: [{0}]', and '{{run_dir}}/{0}/...' for "
                             "its files",
                             need.group));
      }
    }
  }

  void check_task(const GroupSpec& group, const TaskSpec& task) {
    for (std::size_t i = 0; i < group.needs_values.size(); ++i) {
      const NeedsValue& value = group.needs_values[i];
      if (!value.of_round_before || !uses(group, task, first_needs_slot(group) + i)) continue;
      const GroupSpec* const other = find(value.group);
      if (other == nullptr) continue;
      const bool of_one = value.kind != NeedsValue::Kind::Directories;
      if (of_one && other != &group && count_tasks(*other) != 1) {
        complain(task.command_place, group,
                 fmt::format("'{{{0}}}' is of one task, and group '{1}' has {2}; "
                             "'{{prev.{1}.dirs}}' are the directories of all",
                             name_of(value), value.group, count_tasks(*other)));
        continue;
      }
      check_round_0(group, task, value);
    }
  }

  void check_round_0(const GroupSpec& group, const TaskSpec& task, const NeedsValue& value) {
    for (const InitialSpec& initial : repeat_.initial) {
      if (initial.group.empty() && initial.of == value) return;
      if (initial.group.empty() || initial.of.group != value.group) continue;
      const GroupSpec* const stands = find(initial.group);
      const bool of_one = value.kind != NeedsValue::Kind::Directories;
      if (stands != nullptr && of_one && count_tasks(*stands) != 1) {
        complain(initial.place,
                 fmt::format("repeat: initial: '{{{}}}' is of one task, but group '{}', which "
                             "replaces it in round 0, has {}",
                             name_of(value), initial.group, count_tasks(*stands)));
      }
      return;
    }
    const std::string name = name_of(value).substr(std::string_view("prev.").size());
    complain(task.command_place, group,
             fmt::format("'{{{}}}' has no value in round 0; set one next to 'repeat', as "
                         "in 'initial: {{{}: \"\"}}'",
                         name_of(value), name));
  }

  const JobSpec& spec_;
  const RepeatSpec& repeat_;
  const text::YamlDocument& document_;
  text::MistakeList& mistakes_;
};

}  // namespace

void check_repeat(const JobSpec& spec, const text::YamlDocument& document,
                  text::MistakeList& mistakes) {
  if (!spec.repeat || spec.groups.empty() || spec.groups.back().round.value_or(0) > 0) return;
  RepeatCheck(spec, *spec.repeat, document, mistakes).run();
}

}  // namespace trainyard::job
