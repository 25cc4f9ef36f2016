// A process that has imported Python modules and forks tasks that have them: the keeper's end of
// preload_server.py.
//
// Its tasks are the keeper's own children and outlive it. In the keeper only, one thread.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

#include "base/result.h"
#include "model/launch.h"
#include "process/keeper_spawn.h"
#include "process/memory_group.h"
#include "process/start.h"
#include "sys/descriptor.h"

namespace trainyard::process {

/// The text of preload_server.py, which travels within the program.
extern const std::string_view kPreloadSource;

class PreloadServer {
 public:
  /// Starts one for this launch, and for all that have the same interpreter, working directory and
  /// imports. It answers when it has imported.
  static Result<PreloadServer> start(Spawner& spawner, const model::Launch& launch);

  [[nodiscard]] pid_t pid() const { return start_->pid(); }
  /// Readable when there is something to hear().
  [[nodiscard]] const sys::Descriptor& socket() const { return socket_; }
  /// Readable when it has ended.
  [[nodiscard]] const sys::Descriptor& pidfd() const { return pidfd_; }

  /// Everything has been imported.
  [[nodiscard]] bool is_ready() const { return ready_; }
  /// A sentence for users that the process has not begun to import within this time. Empty if it
  /// has begun.
  [[nodiscard]] std::string why_late(std::chrono::steady_clock::duration after) const;
  /// Notes about its imports for users, in lines. Once it is ready.
  [[nodiscard]] const std::vector<std::string>& notes() const { return notes_; }
  /// A task has been asked for, and hear() has not told of it yet.
  [[nodiscard]] bool is_busy() const { return permission_.is_open(); }

  /// Asks for a task. Only when it is ready and not busy.
  Result<void> launch(Spawner& spawner, const model::Launch& launch);

  /// Its next message: nothing, or the requested process, which has started, or the reason why
  /// there is none. An invalid message ends it.
  std::optional<Result<Spawned>> hear();

  void kill() const;
  /// Kills it, and leaves the memory that it may still be reading as it is: its end will not be
  /// seen.
  void abandon();
  [[nodiscard]] bool has_ended() const;

  /// To be called once, when it has ended: returns the reason, as a sentence. Only the tasks that
  /// it has started are left then. `cured`: starting another one may help.
  struct Ended {
    std::string why;
    bool cured = false;
  };
  [[nodiscard]] Ended bury() const;

 private:
  struct Answer {
    std::int64_t number = 0;
    std::string text;
  };

  PreloadServer() = default;
  [[nodiscard]] std::optional<Answer> take_answer();
  [[nodiscard]] Result<Spawned> let_go(pid_t pid, sys::Descriptor permission);

  std::unique_ptr<Start> start_;
  sys::Descriptor pidfd_;
  sys::Descriptor socket_;
  sys::Descriptor permission_;  ///< The other end is with the task that was asked for.
  std::unique_ptr<const model::Launch> asked_for_;
  MemoryGroup group_;  ///< The group of that task.
  std::string heard_;  ///< Part of an answer that is not complete yet.
  bool ready_ = false;
  std::vector<std::string> notes_;
  std::string modules_;
  std::string log_path_;
  std::string why_;  ///< Its reason why it could not import.
};

}  // namespace trainyard::process
