#include "wire/plan_check.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "model/ids.h"

namespace trainyard::wire {
namespace {

/// Checks the parts of a plan, one after the other, and keeps the first fault. Later checks rely on
/// earlier ones.
class PlanCheck {
 public:
  explicit PlanCheck(const model::Plan& plan) : plan_(plan) {}

  std::optional<Error> fault() && {
    look_at_groups();
    for (std::size_t i = 0; i < plan_.shapes.size() && !fault_; ++i) {
      needs_group(plan_.shapes[i].group, [&] { return fmt::format("shapes[{}].group", i); });
    }
    look_at_tasks();
    if (!fault_) look_at_needs_of_tasks();
    look_at_lists_of_tasks();
    for (std::size_t i = 0; i < plan_.sharing.size() && !fault_; ++i) {
      needs_shape(plan_.sharing[i].shape, [&] { return fmt::format("sharing[{}].shape", i); });
    }
    return std::move(fault_);
  }

 private:
  void fail(const std::string& place, std::string what) {
    if (!fault_) fault_ = Error{std::move(what)}.in(place);
  }

  /// A number that something else has: `place` says where it is said, once that is asked.
  template <class Place>
  void needs(std::uint32_t number, std::size_t count, std::string_view noun, const Place& place) {
    if (number < count) return;
    fail(place(), fmt::format("there is no {} {}, only {}", noun, number, count));
  }
  template <class Place>
  void needs_group(model::GroupIndex group, const Place& place) {
    needs(group.value, plan_.groups.size(), "group", place);
  }
  template <class Place>
  void needs_shape(model::ShapeIndex shape, const Place& place) {
    needs(shape.value, plan_.shapes.size(), "shape", place);
  }
  template <class Place>
  void needs_task(model::TaskIndex task, const Place& place) {
    needs(task.value, plan_.tasks.size(), "task", place);
  }

  void look_at_groups() {
    for (std::size_t i = 0; i < plan_.groups.size() && !fault_; ++i) {
      look_at_list(i, "needs", plan_.groups[i].needs);
      look_at_list(i, "needs_by_task", plan_.groups[i].needs_by_task);
    }
    if (!fault_) look_for_circle();
  }

  void look_at_list(std::size_t group, std::string_view name,
                    const std::vector<model::GroupIndex>& needed) {
    for (std::size_t i = 0; i < needed.size(); ++i) {
      needs_group(needed[i], [&] { return fmt::format("groups[{}].{}[{}]", group, name, i); });
    }
  }

  /// Takes away every group that nothing needs which is still there: those that stay wait for each
  /// other, and for each other's tasks.
  void look_for_circle() {
    std::vector<std::size_t> needing(plan_.groups.size(), 0);
    for (const model::PlannedGroup& group : plan_.groups) {
      for_all_needs(group, [&](model::GroupIndex needed) { ++needing[needed.value]; });
    }
    std::vector<std::size_t> free;
    for (std::size_t i = 0; i < needing.size(); ++i) {
      if (needing[i] == 0) free.push_back(i);
    }
    std::size_t taken = 0;
    for (; !free.empty(); ++taken) {
      const model::PlannedGroup& group = plan_.groups[free.back()];
      free.pop_back();
      for_all_needs(group, [&](model::GroupIndex needed) {
        if (--needing[needed.value] == 0) free.push_back(needed.value);
      });
    }
    if (taken == plan_.groups.size()) return;
    const auto first = std::ranges::find_if(needing, [](std::size_t count) { return count > 0; });
    fail(fmt::format("groups[{}]", first - needing.begin()), "groups need each other in a circle");
  }

  template <class Each>
  static void for_all_needs(const model::PlannedGroup& group, const Each& each) {
    std::ranges::for_each(group.needs, each);
    std::ranges::for_each(group.needs_by_task, each);
  }

  void look_at_tasks() {
    std::uint32_t last = 0;
    for (std::size_t i = 0; i < plan_.tasks.size() && !fault_; ++i) {
      const model::ShapeIndex shape = plan_.tasks[i].shape;
      needs_shape(shape, [&] { return fmt::format("tasks[{}].shape", i); });
      if (fault_) return;
      const std::uint32_t group = plan_.shapes[shape.value].group.value;
      if (group < last) {
        fail(fmt::format("tasks[{}].shape", i),
             fmt::format("a task of group {} behind one of group {}", group, last));
      }
      last = group;
    }
  }

  void look_at_needs_of_tasks() {
    for (std::size_t i = 0; i < plan_.task_needs.size() && !fault_; ++i) {
      const auto& [task, needed] = plan_.task_needs[i];
      const auto place = [i] { return fmt::format("task_needs[{}]", i); };
      needs_task(task, [&] { return place() + ".task"; });
      needs_task(needed, [&] { return place() + ".needed"; });
      if (fault_) return;
      if (i > 0 && !(plan_.task_needs[i - 1] < plan_.task_needs[i])) {
        return fail(place(), "must come in the order of tasks and of what they need, each once");
      }
      const auto& groups = plan_.groups[plan_.shape_of(task).group.value].needs_by_task;
      const model::GroupIndex group = plan_.shape_of(needed).group;
      if (std::ranges::find(groups, group) == groups.end()) {
        fail(place() + ".needed", fmt::format("a task of group {}, which is not among needs_by_task"
                                              " of the group of task {}",
                                              group.value, task.value));
      }
    }
  }

  void look_at_lists_of_tasks() {
    look_at_tasks_in("reached", plan_.reached);
    look_at_tasks_in("taken", plan_.taken);
    look_at_tasks_in("said", plan_.said);
  }

  template <class Said>
  void look_at_tasks_in(std::string_view name, const std::vector<Said>& list) {
    for (std::size_t i = 0; i < list.size() && !fault_; ++i) {
      needs_task(list[i].task, [&] { return fmt::format("{}[{}].task", name, i); });
    }
  }

  const model::Plan& plan_;
  std::optional<Error> fault_;
};

}  // namespace

std::optional<Error> fault_of(const model::Plan& plan) { return PlanCheck(plan).fault(); }

}  // namespace trainyard::wire
