#include "queue/no_start_news.h"

#include <utility>

#include "sys/this_process.h"

namespace trainyard::queue {

bool NoStartNews::post(sys::ProgramToStart program, std::string log) {
  if (waiting_.size() >= kWaitingMax) return false;
  waiting_.push_back({.program = std::move(program), .log = std::move(log)});
  start_next();
  return true;
}

void NoStartNews::start_next() {
  while (!waiting_.empty() && posting_.size() < kPostingMax) {
    const Waiting next = std::move(waiting_.front());
    waiting_.pop_front();
    const Result<sys::Descriptor> log = sys::open_log(next.log, sys::IfThere::Append);
    // If the directory is gone, no notification is possible.
    if (!log) continue;
    Result<sys::StartedProgram> started = sys::start_program(next.program, *log);
    if (!started) continue;
    const std::int64_t pid = started->pid;
    const int ended = started->ended.get();
    posting_.emplace(pid, std::move(*started));
    loop_.watch_readable(ended, [this, pid] { see_end(pid); });
  }
}

void NoStartNews::see_end(std::int64_t pid) {
  const auto found = posting_.find(pid);
  if (found == posting_.end()) return;
  loop_.unwatch(found->second.ended.get());
  static_cast<void>(sys::end_of_program(pid));
  posting_.erase(found);
  start_next();
}

}  // namespace trainyard::queue
