#include "report/plan_progress.h"

#include <cstdint>

#include <fmt/format.h>

#include "report/terminal_text.h"

namespace trainyard::report {

void PlanProgress::begin(std::string what, std::size_t tasks, Duration now) {
  what_ = std::move(what);
  tasks_ = tasks;
  shown_at_ = now;
}

void PlanProgress::on(std::size_t ended, Duration now) {
  if (now - shown_at_ < (terminal_ ? kDrawEvery : kLineEvery)) return;
  shown_at_ = now;
  const std::string line = fmt::format("{}: {} of {} tasks simulated", plain(what_),
                                       with_commas(static_cast<std::int64_t>(ended)),
                                       with_commas(static_cast<std::int64_t>(tasks_)));
  write_(terminal_ ? "\r" + line + "\x1b[K" : line + "\n");
  drawn_ = terminal_;
}

void PlanProgress::finish() {
  if (drawn_) write_("\r\x1b[K");
  drawn_ = false;
}

}  // namespace trainyard::report
