// Where each task stands: the only place where a status changes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "model/ids.h"
#include "model/plan.h"
#include "model/status.h"

namespace trainyard {

class TaskTable {
 public:
  /// Nobody tries a stage of a task more often, whatever the limits say.
  static constexpr int kTriesMax = 255;

  struct Task {
    ShapeIndex shape;
    std::uint32_t attempt = 0;        ///< The one it is in or was in last; 0 before its first here.
    std::uint32_t first_attempt = 1;  ///< What its first attempt here is numbered.
    std::uint8_t load_tries = 0;      ///< How often each stage was begun (fedflow `load_numbers`).
    std::uint8_t train_tries = 0;
    Status status = Status::Init;
    Verdict verdict = Verdict::None;
  };

  explicit TaskTable(const std::vector<PlannedTask>& planned);

  [[nodiscard]] const Task& operator[](TaskIndex task) const { return tasks_[task.value]; }
  [[nodiscard]] std::size_t count() const { return tasks_.size(); }
  [[nodiscard]] bool knows(TaskIndex task) const { return task.value < tasks_.size(); }
  /// How many have no verdict yet.
  [[nodiscard]] std::uint32_t open() const { return open_; }

  /// Follows one arrow of the picture in trainyard/status.h. A wrong one is a bug.
  void enter(TaskIndex task, Status next);

  /// Begins the next attempt; returns its number.
  std::uint32_t begin_attempt(TaskIndex task);
  void count_try(TaskIndex task, Stage stage);
  /// The last try to train does not count.
  void take_back_try(TaskIndex task);

  /// Ends a task. Exactly once.
  void conclude(TaskIndex task, Verdict verdict);

 private:
  std::vector<Task> tasks_;
  std::uint32_t open_ = 0;
};

}  // namespace trainyard
