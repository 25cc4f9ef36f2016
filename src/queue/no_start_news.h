// Notifies of submissions that were refused when they began, or skipped: has a separate process of
// our program post each to the `notify` of its job file, so that no web server blocks the queue.
//
// Belongs to the thread of its loop.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <string>

#include "sys/event_loop.h"
#include "sys/start_program.h"

namespace trainyard::queue {

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

}  // namespace trainyard::queue
