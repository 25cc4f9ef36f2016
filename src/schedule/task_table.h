// The status of each task: the only place where a status changes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "model/ids.h"
#include "model/plan.h"
#include "model/status.h"
#include "schedule/another_try.h"

namespace trainyard::schedule {

class TaskTable {
 public:
  struct Task {
    model::ShapeIndex shape;
    std::uint32_t attempt = 0;        ///< Its present or last attempt; 0 before its first here.
    std::uint32_t first_attempt = 1;  ///< The number of its first attempt here.
    Tries tries;                      ///< Number of times that each setback has happened to it.
    Status status = Status::Init;
    model::Verdict verdict = model::Verdict::None;

    /// Whether it has had an attempt, also in an earlier execution or before it started over.
    [[nodiscard]] bool has_run() const { return attempt > 0 || first_attempt > 1; }
  };

  /// Adds a task, whose shape is numbered over the whole run.
  void add(const model::PlannedTask& planned);
  void reserve(std::size_t more) { tasks_.reserve(tasks_.size() + more); }

  [[nodiscard]] const Task& operator[](model::TaskIndex task) const { return tasks_[task.value]; }
  [[nodiscard]] std::size_t count() const { return tasks_.size(); }
  [[nodiscard]] bool knows(model::TaskIndex task) const { return task.value < tasks_.size(); }
  /// Number of tasks without a verdict.
  [[nodiscard]] std::uint32_t open() const { return open_; }

  /// Follows one arrow of the picture in trainyard/status.h. A wrong one is a bug.
  void enter(model::TaskIndex task, Status next);

  /// Begins the next attempt; returns its number.
  std::uint32_t begin_attempt(model::TaskIndex task);
  /// That attempt was not begun after all, and the task has its status of before.
  void take_back_attempt(model::TaskIndex task, Status before);
  /// The training of an attempt was not begun after all: the task has loaded, and waits to train.
  void take_back_training(model::TaskIndex task);
  void count(model::TaskIndex task, Setback setback, Stage stage);
  /// Takes over how many times each setback has happened to a task in earlier executions. The task
  /// has not begun in this one.
  void take_over(model::TaskIndex task, const Tries& tries) { tasks_[task.value].tries = tries; }

  /// Ends a task. Exactly once, unless it starts over.
  void conclude(model::TaskIndex task, model::Verdict verdict);

  /// A task that has ended is as before its first attempt, with all its tries; only the number of
  /// its attempts counts on.
  void reopen(model::TaskIndex task);

 private:
  std::vector<Task> tasks_;
  std::uint32_t open_ = 0;
};

}  // namespace trainyard::schedule
