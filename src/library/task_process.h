// The life of a task in its own process: says how far it is, waits for its device, trains, leaves
// its result.
//
// Lives in a fork of the keeper, which begins with one thread. The other end is link/task_server.h.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "model/launch.h"
#include "trainyard/task.h"

namespace trainyard::library {

class TaskProcess {
 public:
  /// Leads `task` through its life, and returns the exit code of its process.
  static int run(Task& task, const model::Launch& launch);

  TaskProcess(TaskProcess&&) = delete;
  TaskProcess& operator=(TaskProcess&&) = delete;
  ~TaskProcess();

  // Messages of the task itself (Task::progress, report, send). Any of its threads.
  void progress(double fraction, const Json& values);
  void report(const std::string& key, const Json& value);
  Result<void> send(const std::string& command, const Json& data,
                    std::span<const std::byte> buffer);
  [[nodiscard]] int rank() const;
  [[nodiscard]] int ranks() const;

 private:
  struct State;
  explicit TaskProcess(std::unique_ptr<State> state);

  std::unique_ptr<State> state_;
};

}  // namespace trainyard::library
