// Tasks that may run in any order, and what those ask for that do not say it themselves (fedflow
// `TaskGroup`). Owns its tasks; is neither copied nor moved. One thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <ranges>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "trainyard/task.h"

namespace trainyard {

struct GroupOptions {
  int parallel_max = 0;    ///< How many at once; 0: as many as there is room for.
  bool fail_fast = false;  ///< The first failure ends the group.
  /// One of its tasks, the largest, has to live two minutes, end well or say how far it is before
  /// the others start.
  bool try_first = false;
};

class TaskGroup {
 public:
  /// The name is that of a directory, too. Empty: group-1, group-2, ... in order of adding.
  /// `defaults` are for its tasks: what these do not say themselves. They have no id.
  explicit TaskGroup(std::string name = {}, TaskOptions defaults = {}, GroupOptions options = {});
  // Yard::add() keeps the address.
  TaskGroup(TaskGroup&&) = delete;
  TaskGroup& operator=(TaskGroup&&) = delete;
  ~TaskGroup() = default;

  /// Makes a task and keeps it. The reference stays valid as long as the group.
  template <class T, class... Arguments>
  T& add(Arguments&&... arguments) {
    auto task = std::make_unique<T>(std::forward<Arguments>(arguments)...);
    T& added = *task;
    add(std::move(task));
    return added;
  }
  /// The same for a task that is there already, which must not be null: that ends the program.
  void add(std::unique_ptr<Task> task);
  void add(std::nullptr_t) = delete;

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] const TaskOptions& defaults() const { return defaults_; }
  [[nodiscard]] const GroupOptions& options() const { return options_; }

  /// In the order in which they were added.
  [[nodiscard]] auto tasks() const {
    return tasks_ | std::views::transform([](const auto& task) -> Task& { return *task; });
  }
  /// Nothing when there is none with that id.
  [[nodiscard]] Task* find(std::string_view id) const;

  /// (`numbers`) Waiting counts AVAILABLE, LOADING and WAITING; processes are those and the
  /// training.
  struct Numbers {
    int processes = 0;
    int waiting = 0;
    int training = 0;
    int finished = 0;
    int failed = 0;
    int skipped = 0;
    int stopped = 0;
  };
  [[nodiscard]] Numbers numbers() const;
  /// Every task has ended, well or not.
  [[nodiscard]] bool finished() const;

 private:
  friend class Yard;
  std::string name_;
  TaskOptions defaults_;
  GroupOptions options_;
  std::vector<std::unique_ptr<Task>> tasks_;
  std::uint64_t run_by_ = 0;  ///< The last yard that has run it.
};

}  // namespace trainyard
