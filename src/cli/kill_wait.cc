#include "cli/kill_wait.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include <fmt/format.h>

#include "base/duration_text.h"
#include "cli/known_runs.h"
#include "link/control_client.h"

namespace trainyard::cli {
namespace {

/// A task has ten seconds between TERM and KILL, and the answer comes when it is gone.
constexpr Duration kAfterTerm{30'000};

}  // namespace

Duration kill_wait_max(const std::vector<journal::TaskRow>& tasks) {
  Duration before_term{0};
  // A task that waits now may have started when the yard receives the request.
  for (const journal::TaskRow& task : tasks) {
    before_term = std::max(before_term, task.signal_before_term);
  }
  const std::size_t rounds = (tasks.size() + link::kAskedAtOnce - 1) / link::kAskedAtOnce;
  return (before_term + kAfterTerm) * static_cast<std::int64_t>(rounds);
}

std::string kill_wait_note(const std::vector<journal::TaskRow>& tasks) {
  std::size_t count = 0;
  std::string name;
  Duration longest{0};
  for (const journal::TaskRow& task : tasks) {
    if (task.pid == 0 || task.signal_before_term == Duration{0}) continue;
    ++count;
    name = shown_name(task);
    longest = std::max(longest, task.signal_before_term);
  }
  if (count == 0) return "";
  const bool is_one = count == 1;
  return fmt::format("{} up to {} to save {} state before SIGTERM; Ctrl-C stops only the waiting",
                     is_one ? name + " has" : fmt::format("{} tasks have", count),
                     exact_text(longest), is_one ? "its" : "their");
}

}  // namespace trainyard::cli
