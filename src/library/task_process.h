// The life of a task in its own process: says how far it is, waits for its device, trains, leaves
// its result.
//
// Lives in a fork of the keeper, which begins with one thread. The other end is link/task_server.h.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <sys/stat.h>

#include "base/result.h"
#include "model/launch.h"
#include "sys/descriptor.h"
#include "trainyard/task.h"

namespace trainyard::library {

/// The file in which a task leaves its result, the text of a JSON object: replaced as a whole, or
/// extended by a member at the cost of that member.
///
/// When this process is killed, at any instant, the file contains the object before a change or
/// after it. A process that reads it while a member is added may find neither. One thread at a time.
class ResultFile {
 public:
  explicit ResultFile(std::string path) : path_(std::move(path)) {}

  /// Puts `text` in the place of whatever is there.
  Result<void> replace(std::string_view text);

  /// Adds a member that the object has not: `object` is the text of an object with this member
  /// alone. False: the file is as it was, and its object must be replaced to have the member. That
  /// is so about once a page, and where the file is not as replace() and add() have left it.
  bool add(std::string_view object);

 private:
  [[nodiscard]] bool is_as_it_was() const;

  std::string path_;
  sys::Descriptor file_;  ///< Closed: there is no object to which a member could be added.
  struct stat facts_{};   ///< Of the file, when it was replaced.
  std::size_t size_ = 0;
};

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
