// Notifies of submissions that were refused when they began, or skipped: posts to the `notify` of
// their job files. The queue has a separate process post each, so that no server blocks it:
// `trainyard post-not-started`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <string>

#include "cli/commands.h"
#include "cli/exit_code.h"
#include "sys/descriptor.h"
#include "sys/event_loop.h"
#include "sys/start_program.h"

namespace trainyard::cli {

/// In the process that was started for it: posts why the run of these options did not start, and
/// returns when that is done or given up.
ExitCode post_not_started(const RunOptions& options, const std::string& reason);

/// The queue's side. Belongs to the thread of its loop.
class NoStartNews {
 public:
  /// The number of processes that post at a time, and the number that may wait for that.
  static constexpr std::size_t kPostingMax = 8;
  static constexpr std::size_t kWaitingMax = 100;

  /// `loop` must outlive it.
  explicit NoStartNews(sys::EventLoop& loop) : loop_(loop) {}

  /// False if too many wait: this one is not reported. Its output goes to `log`.
  [[nodiscard]] bool post(sys::ProgramToStart program, std::string log);

 private:
  struct Waiting {
    sys::ProgramToStart program;
    std::string log;
  };
  void start_next();
  void see_end(std::int64_t pid);

  sys::EventLoop& loop_;
  std::deque<Waiting> waiting_;
  std::map<std::int64_t, sys::StartedProgram> posting_;  ///< By process id.
};

}  // namespace trainyard::cli
