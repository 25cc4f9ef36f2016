// Starts the processes of attempts, with the environment and the limits that all tasks have. In the
// keeper only.
//
// Does not watch it. One thread.
#pragma once

#include <algorithm>
#include <array>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <sys/resource.h>
#include <sys/types.h>

#include "base/result.h"
#include "model/launch.h"
#include "process/memory_group.h"
#include "process/start.h"
#include "sys/descriptor.h"

namespace trainyard::process {

struct Spawned {
  sys::Descriptor pidfd;         ///< Readable when it has ended.
  MemoryGroup group;             ///< The group that it is in, if it has one of its own.
  std::unique_ptr<Start> start;  ///< Its way to the program; then it leads a session and a group.
};

/// Things of a process beside its logs, for Spawner::start().
struct Extra {
  int in = -1;     ///< Its standard input; -1: as ours.
  int third = -1;  ///< Its descriptor 3; -1: none.
  bool adds_to_logs = false;
};

class Spawner {
 public:
  /// Tasks find what this process has now: its environment, and its limit of open files, which is
  /// then raised for our own use. Descriptor 0 must be /dev/null. `inherited` are the descriptors
  /// that forked launches keep.
  explicit Spawner(std::vector<int> inherited = {});

  /// Begins all that Keeper::start() promises, and waits for none of it. The error is one sentence
  /// for people.
  Result<Spawned> start(model::Launch launch, const Extra& extra = {});
  /// Starts a launch, as start() does, in the control group of another process, if that has one.
  Result<Spawned> start_in(const MemoryGroup& group, model::Launch launch, const Extra& extra = {});
  /// Starts a launch that is `forked`. Its process is a fork of this one that calls `body` and
  /// exits with the code that it returns. It does not outlive this process.
  Result<Spawned> fork(model::Launch launch, const std::function<int(const model::Launch&)>& body);

  /// Closes what forked launches would inherit, when no more are started.
  void close_inherited();

  /// The maximum number of descriptors of this process beside those that forked launches inherit.
  [[nodiscard]] std::uint64_t files_max() const {
    return files_of_ours_.rlim_cur - std::min<rlim_t>(files_of_ours_.rlim_cur, inherited_.size());
  }

  /// The group that a launch asks for; none where it asks for none.
  static Result<MemoryGroup> make_group(const model::Launch& launch);

  /// NAME=value of ours or what the launch inherits instead, less those that the launch has, then
  /// the launch's, then a null. Points into both. Variables that the launch only names are not in
  /// it.
  [[nodiscard]] std::vector<char*> environment_of(const model::Launch& launch) const;

  /// Adds TRAINYARD_SET to the environment of the launch, by which a run that the task starts finds
  /// what this process was started with. Once, when nothing else is added any more.
  void mark_variables(model::Launch& launch) const;

 private:
  static Result<Spawned> watch(std::unique_ptr<Start> start);
  void become_task(const model::Launch& launch, sys::Descriptor status) const;

  std::vector<int> inherited_;
  std::vector<std::string> environment_;
  /// For a run in a task: environment_ without the variables set for a task that we are in.
  std::vector<std::string> own_environment_;
  std::unordered_map<std::string_view, std::size_t> names_;  ///< The index of each in environment_.
  rlimit files_of_tasks_{};
  rlimit files_of_ours_{};
};

}  // namespace trainyard::process
