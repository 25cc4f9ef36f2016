// Signals to attempts, and to whoever of them has left the group that a signal goes to.
#include <algorithm>
#include <csignal>
#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include <sys/types.h>
#include <unistd.h>

#include "base/time.h"
#include "process/keeper_attempts.h"
#include "process/keeper_message.h"
#include "sys/pidfd.h"
#include "sys/process_scan.h"

namespace trainyard::process {

void KeeperAttempts::kill_those_over_their_grace(Clock::time_point now) {
  for (const Number number : partly_ended_) {
    Attempt& attempt = attempts_.at(number);
    if (!attempt.kill_at || now < *attempt.kill_at) continue;
    attempt.kill_at = Clock::time_point::max();
    signal_attempts({{number, SIGKILL}});
  }
}

std::optional<KeeperAttempts::Clock::time_point> KeeperAttempts::grace_ends_at() const {
  std::optional<Clock::time_point> at;
  for (const Number number : partly_ended_) {
    const Clock::time_point kill_at =
        attempts_.at(number).kill_at.value_or(Clock::time_point::max());
    if (kill_at != Clock::time_point::max()) at = std::min(at.value_or(kill_at), kill_at);
  }
  return at;
}

void KeeperAttempts::signal_trees(const std::function<int(const sys::ProcessStat&)>& own_tree,
                                  int signal) {
  const std::span<const sys::ProcessStat> processes = scan_.read_all();
  const std::vector<int> trees = sys::label_trees(processes, own_tree);
  for (std::size_t i = 0; i < processes.size(); ++i) {
    if (trees[i] != sys::kNoTree) ::kill(static_cast<pid_t>(processes[i].pid), signal);
  }
}

void KeeperAttempts::signal(std::span<const SignalMessage> messages) {
  std::unordered_map<Number, int> signals;
  for (const SignalMessage& message : messages) {
    const auto found = by_key_.find(packed(message.key));
    if (found == by_key_.end()) continue;
    Attempt& attempt = attempts_.at(found->second);
    if (attempt.leaders.empty()) continue;
    attempt.killed_by_us = attempt.killed_by_us || message.signal == SIGKILL;
    attempt.told_to_end =
        attempt.told_to_end || message.signal == SIGKILL || message.signal == SIGTERM;
    signals[found->second] = message.signal;
  }
  if (!signals.empty()) signal_attempts(signals);
}

void KeeperAttempts::signal_attempts(const std::unordered_map<Number, int>& signals) {
  // The groups first: most tasks are no more than that.
  bool runs = false;
  for (const auto& [number, signal] : signals) {
    for (const Number each : attempts_.at(number).leaders) {
      Leader& leader = leaders_.at(each);
      if (!on_their_way_.contains(each)) {
        ::kill(-leader.pid, signal);
        runs = true;
        continue;
      }
      // It is no group yet, and has nobody who could hear a signal.
      if (signal == SIGKILL) ::kill(leader.pid, SIGKILL);
      leader.signal = signal;
    }
  }
  // Then whoever has left them: one look at all processes, however many are to be stopped.
  if (runs) signal_those_outside_their_groups(signals);
}

void KeeperAttempts::signal_those_outside_their_groups(
    const std::unordered_map<Number, int>& signals) {
  const std::span<const sys::ProcessStat> processes = scan_.read_all();
  const std::vector<int> trees =
      sys::label_trees(processes, [this](const sys::ProcessStat& process) {
        const auto orphan = orphans_.find(static_cast<pid_t>(process.pid));
        if (orphan != orphans_.end()) return static_cast<int>(orphan->second.owner);
        const auto leader = by_pid_.find(static_cast<pid_t>(process.session));
        return leader != by_pid_.end() ? static_cast<int>(leaders_.at(leader->second).attempt)
                                       : sys::kNoTree;
      });
  for (std::size_t i = 0; i < processes.size(); ++i) {
    if (trees[i] <= 0) continue;
    const auto signal = signals.find(static_cast<Number>(trees[i]));
    if (signal == signals.end()) continue;
    if (signal->second == SIGTERM && attempts_.at(signal->first).passes_term_on) continue;
    // Not twice: many programs take a second TERM as "at once".
    if (by_pid_.contains(static_cast<pid_t>(processes[i].group))) continue;
    ::kill(static_cast<pid_t>(processes[i].pid), signal->second);
  }
}

void KeeperAttempts::is_told_to_end(Attempt& attempt, int signal) const {
  // What has ended by now, and was not heard of yet, was not told to.
  const bool runs = std::ranges::any_of(attempt.leaders, [this](Number each) {
    return !sys::wait_until_ended(leaders_.at(each).pidfd, Duration{0});
  });
  attempt.told_to_end = attempt.told_to_end || runs;
  attempt.killed_by_us = attempt.killed_by_us || (runs && signal == SIGKILL);
}

void KeeperAttempts::end_those_on_their_way() {
  for (const Number number : on_their_way_) {
    const Leader& leader = leaders_.at(number);
    is_told_to_end(attempts_.at(leader.attempt), SIGKILL);
    ::kill(leader.pid, SIGKILL);
  }
}

void KeeperAttempts::signal_everything(int signal, pid_t spared) {
  for (auto& [number, attempt] : attempts_) is_told_to_end(attempt, signal);
  const pid_t self = ::getpid();
  signal_trees(
      [self, spared](const sys::ProcessStat& process) {
        return process.parent == self && process.pid != spared ? 0 : sys::kNoTree;
      },
      signal);
}

}  // namespace trainyard::process
