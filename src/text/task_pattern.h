// Which tasks somebody means: by name, by values of the matrix, by a pattern.
//
//   lr=0.1,seed=2         the task with this id, in any group; without one, all tasks whose matrix
//                         has these values, in any order and among others
//   lr=1e-*               numbers are compared as numbers (1e-3 is 0.001), texts may have * ? [..]
//   seed-*                ids as a shell matches names of files
//   train/lr=0.1, train/* the same of one group; `train/` and `train` are all of its tasks
//
// Looks at names alone, of as many tasks as there are: what is a task and what a run is the
// caller's business. Plain values; any thread.
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

/// What a task is called.
struct TaskNames {
  std::string_view group;          ///< As people read it: "train (2)".
  std::string_view group_in_file;  ///< As its job file has it: "train".
  std::string_view id;
  std::span<const std::pair<std::string, std::string>> keys;  ///< Of its matrix, with the values.
};

class TaskPattern {
 public:
  /// An error for what can be no name of a task: empty, or with two slashes.
  static Result<TaskPattern> read(std::string_view text);

  /// As it was written.
  [[nodiscard]] const std::string& text() const { return text_; }

  /// The id of the tasks that it may be a name of; empty: it is none.
  [[nodiscard]] const std::string& id() const { return id_; }

  /// Whether it is a name of this task: its id, with its group before it or without one.
  [[nodiscard]] bool names(const TaskNames& task) const;

  /// Whether it is one of those that are meant where no task is called so.
  [[nodiscard]] bool covers(const TaskNames& task) const;

 private:
  struct Key {
    std::string name;
    std::string value;
  };

  [[nodiscard]] bool is_in_group(const TaskNames& task) const;
  [[nodiscard]] bool has_keys(const TaskNames& task) const;

  std::string text_;
  std::string group_;      ///< Empty: any.
  std::string id_;         ///< Empty: all of the group.
  std::vector<Key> keys_;  ///< What it says of the matrix; none: it is not written so.
};

/// For "lr=0.2,seed=1" the values of the first matrix key that has no such value: "; the values of
/// lr are 0.1, 1". The keys, where no key has its name: "; the matrix keys are lr, seed". Empty
/// when there is none.
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

  /// What one pattern means: the places of the tasks, in order.
  struct Meant {
    std::string text;                ///< The pattern.
    std::vector<std::size_t> tasks;  ///< May be empty.
    bool by_name = false;            ///< They are called so: more than one are in several groups.
  };
  [[nodiscard]] std::vector<Meant> meant() const;

  /// Whether each task is meant by any. Without patterns all are.
  [[nodiscard]] std::vector<bool> chosen() const;

 private:
  struct Matches {
    TaskPattern pattern;
    std::vector<std::size_t> called;  ///< Those whose group is called as it is written.
    std::vector<std::size_t> named;   ///< Those that are named otherwise.
    std::vector<std::size_t> covered;
  };
  std::vector<Matches> matches_;
  std::size_t tasks_ = 0;
};

}  // namespace trainyard::text
