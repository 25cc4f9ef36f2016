// Starts the process of one attempt: directory, logs, environment, exec. In the keeper only.
//
// Does not watch it. One thread.
#pragma once

#include <array>
#include <csignal>
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <sys/resource.h>
#include <sys/types.h>

#include "base/result.h"
#include "io/descriptor.h"
#include "io/memory_group.h"
#include "model/launch.h"

namespace trainyard::io {

struct Spawned {
  pid_t pid = 0;      ///< It leads a session and a process group of that number.
  Descriptor pidfd;   ///< Readable when it has ended.
  MemoryGroup group;  ///< That it is in, if it has one of its own.
};

/// What ends the yard does not end the keeper: it goes when the yard has gone, and not before its
/// processes. All other signals do to it what they do by default.
constexpr std::array<int, 5> kIgnoredByKeeper{SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGPIPE};

/// What a process prints into.
struct Logs {
  Descriptor out;
  Descriptor err;
};

/// The descriptors that a process starts with; -1: none, standard input as ours.
struct Streams {
  int in = -1;
  int out = -1;
  int err = -1;
  int third = -1;  ///< Its descriptor 3.
};

class Spawner {
 public:
  /// What tasks find is what this process has now: its environment, and its limit of open files,
  /// which is then raised for our own use. Descriptor 0 must be /dev/null.
  Spawner();

  /// Does all that Keeper::start() promises. The error is one sentence for people that says which
  /// step failed, and why.
  Result<Spawned> start(const Launch& launch);
  /// The same for a launch that is `forked`: its process is a fork of this one, which calls `body`
  /// and ends with the exit code that it returns, and does not outlive this one.
  Result<Spawned> fork(const Launch& launch, const std::function<int()>& body);

  /// The parts of start(): the directory and the logs of a launch, and its process.
  static Result<Logs> prepare(const Launch& launch);
  Result<Spawned> start(const Launch& launch, const Streams& streams);
  /// The group that a launch asks for; none where it asks for none.
  static Result<MemoryGroup> make_group(const Launch& launch);

  /// NAME=value of ours, less those that the launch has, then the launch's, then a null. Points
  /// into both.
  [[nodiscard]] std::vector<char*> environment_of(const Launch& launch) const;

 private:
  Result<pid_t> spawn(const Launch& launch, const Streams& streams, const MemoryGroup& group);
  void become_task(const Launch& launch, const Logs& logs) const;

  std::vector<std::string> environment_;
  std::unordered_map<std::string_view, std::size_t> names_;  ///< Where each is in environment_.
  rlimit files_of_tasks_{};
  rlimit files_of_ours_{};
};

}  // namespace trainyard::io
