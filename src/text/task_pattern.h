// Patterns that select tasks: by name, by values of the matrix, by wildcards.
//
//   lr=0.1,seed=2         the task with this id, in any group; without one, all tasks whose matrix
//                         has these values, in any order and among others
//   lr=1e-*               numbers are compared as numbers (1e-3 is 0.001), texts may have * ? [..]
//   data=a/b, data=c,d    a value may have slashes and commas
//   seed-*                ids as a shell matches names of files
//   train/lr=0.1, train/* the same of one group; `train/` and `train` are all of its tasks
//
// Compares names alone, for any number of tasks: the caller knows tasks and runs. Plain values; any
// thread.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace trainyard::text {

/// The names of a task.
struct TaskNames {
  std::string_view group;          ///< For people: "train (2)".
  std::string_view group_in_file;  ///< In its job file: "train".
  std::string_view id;
  std::span<const std::pair<std::string, std::string>> keys;  ///< The keys of its matrix, with the
                                                              ///< values.
};

class TaskPattern {
 public:
  /// An error for what can be no name of a task: empty, or with two slashes outside of a value.
  static Result<TaskPattern> read(std::string_view text);

  /// The pattern as typed.
  [[nodiscard]] const std::string& text() const { return text_; }

  /// The id of the tasks that it may be a name of; empty: it is not a name.
  [[nodiscard]] const std::string& id() const { return id_; }

  /// Whether it is a name of this task: its id, with its group before it or without one.
  [[nodiscard]] bool names(const TaskNames& task) const;

  /// Whether the pattern covers this task, which counts where no task has it as its name.
  [[nodiscard]] bool covers(const TaskNames& task) const;

 private:
  [[nodiscard]] bool is_in_group(const TaskNames& task) const;
  [[nodiscard]] bool has_keys(const TaskNames& task) const;

  std::string text_;
  std::string group_;  ///< Empty: any.
  std::string id_;     ///< Empty: all of the group.
  /// Its matrix keys with their values; none: it does not have this form.
  std::vector<std::pair<std::string, std::string>> keys_;
  bool is_without_group_ = false;  ///< All of it are keys: its first slash may be that of a value.
};

/// For "lr=0.2,seed=1" the values of the first matrix key that does not have such a value: "; the
/// values of lr are 0.1, 1". The keys, if no key has its name: "; the matrix keys are lr, seed".
/// Empty if there are none.
std::string values_instead(std::string_view pattern, std::span<const TaskNames> tasks);

/// The tasks that patterns select: for each pattern the tasks that it names or, if it names none,
/// those that it covers. A task whose group has exactly this name goes before those whose job file
/// has it.
class TaskChoice {
 public:
  /// Calls a function for each task, in order.
  using ForEachTask = std::function<void(const std::function<void(const TaskNames&)>&)>;

  /// Costs O(patterns + tasks), and O(tasks) for each pattern that names no task. Reads the tasks a
  /// second time only for such patterns.
  TaskChoice(std::vector<TaskPattern> patterns, const ForEachTask& for_each_task);

  /// The tasks that one pattern selects, by their place, in order.
  struct Meant {
    std::string text;                ///< The pattern.
    std::vector<std::size_t> tasks;  ///< May be empty.
    bool by_name = false;            ///< The tasks have this name: more than one are in several
                                     ///< groups.
  };
  [[nodiscard]] std::vector<Meant> meant() const;

  /// Whether each task is selected by any pattern. Without patterns all are.
  [[nodiscard]] std::vector<bool> chosen() const;

 private:
  struct Matches {
    TaskPattern pattern;
    std::vector<std::size_t> called;  ///< Tasks whose group has exactly this name.
    std::vector<std::size_t> named;   ///< Tasks that match by name in another way.
    std::vector<std::size_t> covered;
  };
  std::vector<Matches> matches_;
  std::size_t tasks_ = 0;
};

}  // namespace trainyard::text
