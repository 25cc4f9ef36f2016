#include "run/found_attempts.h"

#include <algorithm>
#include <iterator>
#include <string_view>

#include <fmt/format.h>

#include "run/noted_ends.h"
#include "wire/agent.h"

namespace trainyard::run {

std::vector<journal::FoundAttempt> found_attempts(const RemoteMachines* machines) {
  std::vector<journal::FoundAttempt> found;
  if (machines == nullptr) return found;
  for (const wire::AgentRun& run : machines->found()) {
    if (!run.two_phase) found.push_back({.row = run.journal_number, .key = run.command.key});
  }
  return found;
}

Result<void> keep_attempts(RemoteMachines* machines, const std::set<model::AttemptKey>& go_on) {
  if (machines == nullptr || machines->found().empty()) return {};
  return machines->keep(go_on);
}

std::vector<std::string> lines_about_found(const RemoteMachines* machines,
                                           const std::set<model::AttemptKey>& go_on) {
  if (machines == nullptr) return {};
  int running = 0;
  int ended = 0;
  int others = 0;
  for (const wire::AgentRun& run : machines->found()) {
    const bool goes_on = go_on.contains(run.command.key);
    running += goes_on && !run.ended ? 1 : 0;
    ended += goes_on && run.ended ? 1 : 0;
    others += !goes_on && !run.ended ? 1 : 0;
  }
  std::vector<std::string> lines;
  const auto tell = [&lines](int count, std::string_view of_one, std::string_view of_several) {
    if (count == 1) lines.push_back(fmt::format("1 task {}", of_one));
    if (count > 1) lines.push_back(fmt::format("{} tasks {}", count, of_several));
  };
  tell(running, "kept running without trainyard, and continues",
       "kept running without trainyard, and continue");
  tell(others, "that kept running is stopped, and starts over",
       "that kept running are stopped, and start over");
  std::ranges::move(lines_about_ends({.own = ended}), std::back_inserter(lines));
  return lines;
}

}  // namespace trainyard::run
