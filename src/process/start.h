// A process on its way from its birth to its program: it makes its directory, opens its logs, and
// becomes its program, and the process that started it waits for none of that. A disk that does not
// answer, a named pipe in the place of a log, delays that process alone.
//
// In the keeper only, one thread.
#pragma once

#include <array>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include <sys/resource.h>
#include <sys/types.h>

#include "base/result.h"
#include "model/launch.h"
#include "sys/descriptor.h"

namespace trainyard::process {

/// Signals that end the yard do not end the keeper, nor the guard behind it: they go when the yard
/// has gone, and not before its processes. If a task has a keeper of its own, as a parallel run,
/// the signal that comes to each process of a task before TERM is for those that save something. A
/// file that reaches its size limit ends them as little as the yard. All other signals have their
/// default action.
constexpr std::array<int, 8> kIgnoredByKeeper{SIGINT,  SIGQUIT, SIGTERM, SIGHUP,
                                              SIGPIPE, SIGUSR1, SIGUSR2, SIGXFSZ};

/// The steps of a process before its program runs, in this order. preload_server.py has the same
/// numbers.
enum class StartStep : std::int32_t {
  Process = 0,    ///< There is none.
  Group = 1,      ///< Joins the control group that it is to be in.
  Directory = 2,  ///< Makes the task's directory and those above it.
  OldResult = 3,  ///< Removes what was left by an attempt before it, or under its name.
  Stdout = 4,     ///< Opens a log: made anew, never through a link, and a plain file.
  Stderr = 5,
  WorkingDirectory = 6,
  Program = 7,
};

/// The reason why a process did not become its program, as the process writes it down.
struct StartFailure {
  /// No errno has this number: what stands where a log belongs is no plain file, or what stands
  /// where the task's directory belongs, or one between it and the run directory, is a link.
  static constexpr std::int32_t kNotPlain = 1000;
  /// Nor this one: the file where a log belongs has a second name (a hard link), which may be that
  /// of another file.
  static constexpr std::int32_t kSecondName = 1001;

  StartStep step = StartStep::Process;
  std::int32_t error = 0;  ///< An errno, or one of these two; 0: nothing failed.
};

/// Descriptors that a process starts with beside its logs; -1: none, standard input as ours.
struct StartStreams {
  int in = -1;
  int third = -1;  ///< Its descriptor 3.
  int door = -1;   ///< Of its control group: a process writes to it to enter.
};

/// The orders of the process, in a form that it can read without calling anything.
class StartOrders;

class Start {
 public:
  struct Options {
    /// As execve() takes it. Points into the launch, or to what outlives the keeper's processes.
    std::vector<char*> environment;
    StartStreams streams;
    rlimit files{};  ///< Its limit of open files.
    /// The logs are appended to, and not made anew.
    bool adds_to_logs = false;
  };

  /// Starts a process that becomes the program of the launch, which has one.
  static Result<std::unique_ptr<Start>> program(std::unique_ptr<const model::Launch> launch,
                                                Options options);

  /// For a process that another process has started, and that has no program yet: its reports come
  /// through `status`.
  Start(std::unique_ptr<const model::Launch> launch, pid_t pid, sys::Descriptor status);
  ~Start();
  Start(Start&&) = delete;
  Start& operator=(Start&&) = delete;

  [[nodiscard]] pid_t pid() const { return pid_; }
  [[nodiscard]] const model::Launch& launch() const { return *launch_; }
  /// Readable when outcome() has something to say.
  [[nodiscard]] const sys::Descriptor& status() const { return status_; }

  /// Nothing while it is on its way. Then whether its program runs (one that has died without a
  /// word counts as that), or one sentence for people that says which step failed, and why.
  [[nodiscard]] std::optional<Result<void>> outcome() const;
  /// It has nothing to say, and leaves that to be said.
  [[nodiscard]] bool is_on_its_way() const;

 private:
  std::unique_ptr<const model::Launch> launch_;
  pid_t pid_ = 0;
  sys::Descriptor status_;
  /// The memory of ours that the process reads and writes until its program runs.
  std::unique_ptr<StartOrders> orders_;
};

/// For a process that is a fork of ours: makes the files of the launch, puts the logs in the place
/// of its standard output and error, and enters the task's directory. On an error it reports that
/// through `status`, and exits.
void make_files_or_end(const model::Launch& launch, int status);

}  // namespace trainyard::process
