#include "job/needs_check.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/nearest.h"
#include "job/job_binding.h"
#include "job/job_needs.h"
#include "job/needs_values.h"
#include "job/task_keys.h"
#include "job/term_text.h"
#include "model/ids.h"
#include "model/plan.h"
#include "model/terms.h"

namespace trainyard::job {
namespace {

constexpr std::string_view kNamesWanted =
    "'needs' must be names of groups, as in [prepare, train], or tasks with the same matrix "
    "values, as in [{group: train, match: matrix}]";

/// The keys that `match` says, all of the other group's for `matrix`. Nothing after a complaint.
std::optional<std::vector<std::string>> read_match(const text::Complainer& to,
                                                   const text::YamlNode& node,
                                                   const GroupSpec& other) {
  const std::vector<std::string>& there = other.matrix.keys();
  if (node.kind == text::YamlKind::Text && node.text == "matrix") return there;
  std::vector<const text::YamlNode*> items;
  if (node.kind == text::YamlKind::Text) items.push_back(&node);
  if (node.kind == text::YamlKind::List) items.assign(node.items.begin(), node.items.end());
  if (items.empty()) {
    to.complain(node, "'match' must be 'matrix' or keys of it, as in [lr, seed]");
    return std::nullopt;
  }
  std::vector<std::string> keys;
  for (const text::YamlNode* const item : items) {
    const bool known = std::ranges::find(there, item->text) != there.end();
    if (!known) {
      const auto near =
          nearest(item->text, std::vector<std::string_view>(there.begin(), there.end()));
      to.complain(*item,
                  fmt::format("match: the matrix of group '{}' has no '{}'{}", other.name,
                              item->text, near ? fmt::format(" (did you mean '{}'?)", *near) : ""));
      return std::nullopt;
    }
    if (std::ranges::find(keys, item->text) == keys.end()) keys.push_back(item->text);
  }
  return keys;
}

std::optional<Need> read_matched(const text::Complainer& to, const text::YamlNode& node,
                                 const std::vector<GroupSpec>& before) {
  constexpr std::array<std::string_view, 2> kKeys{"group", "match"};
  text::check_keys(to, node, kKeys, {});
  const text::YamlNode* const group = node.find("group");
  if (group == nullptr || group->kind != text::YamlKind::Text) {
    to.complain(node, kNamesWanted);
    return std::nullopt;
  }
  Need need{.group = group->text, .place = group->place};
  const text::YamlNode* const match = node.find("match");
  if (match == nullptr) return need;
  const auto other = std::ranges::find(before, need.group, &GroupSpec::name);
  if (other == before.end()) {
    to.complain(*group, fmt::format("match: no group '{}' before this one", need.group));
    return std::nullopt;
  }
  if (other->matrix_broken) return std::nullopt;
  if (!other->has_matrix) {
    to.complain(*match,
                fmt::format("match: group '{0}' has no matrix; 'needs: [{0}]' waits for all "
                            "of it",
                            need.group));
    return std::nullopt;
  }
  need.match = read_match(to, *match, *other);
  if (!need.match) return std::nullopt;
  return need;
}

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

  /// RepeatCheck checks values of the round before. False if the value is of an
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

std::vector<Need> read_needs(const text::Complainer& to, const text::YamlNode& node,
                             const std::vector<GroupSpec>& before) {
  std::vector<Need> needs;
  std::vector<const text::YamlNode*> items;
  if (node.kind == text::YamlKind::List) {
    items.assign(node.items.begin(), node.items.end());
  } else if (node.kind == text::YamlKind::Text || node.kind == text::YamlKind::Mapping) {
    items.push_back(&node);
  } else {
    to.complain(node, fmt::format("{}; [] for none", kNamesWanted));
  }
  for (const text::YamlNode* const item : items) {
    if (item->kind == text::YamlKind::Text) {
      needs.push_back({.group = item->text, .place = item->place});
    } else if (item->kind == text::YamlKind::Mapping) {
      if (auto need = read_matched(to, *item, before)) needs.push_back(std::move(*need));
    } else {
      to.complain(*item, kNamesWanted);
    }
  }
  return needs;
}

void check_needs(const JobSpec& spec, const PlannedJob& job, const text::YamlDocument& document,
                 text::MistakeList& mistakes) {
  NeedsCheck(spec, job, document, mistakes).run();
}

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
