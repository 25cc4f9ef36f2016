// Signals to attempts: to those of their processes that handle them first, then to the others.
#include <algorithm>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <iterator>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include <sys/types.h>
#include <unistd.h>

#include <fmt/format.h>

#include "base/time.h"
#include "process/keeper_attempts.h"
#include "process/keeper_message.h"
#include "process/signal_receivers.h"
#include "sys/clock.h"
#include "sys/pidfd.h"
#include "sys/process_scan.h"

namespace trainyard::process {
namespace {

/// The time between two reads whether those that got TERM first have exited.
constexpr Duration kReceiversReadEvery{100};
/// Processes that waited for these, such as a shell with "exit $?" behind a program, exit by
/// themselves meanwhile.
constexpr Duration kEndByThemselves{500};
/// A child of a shell executes its program within this time, also on a busy machine. A child that
/// has not done so is a part of the script, with handlers of its own.
constexpr Duration kExecutesWithin{500};
/// A process in many groups has a long status.
constexpr std::size_t kStatusMax = std::size_t{1} << 18U;

/// True if a process that got a signal still knows of it. A process that had only forked then, and
/// has executed a program since, does not: a new program has no handlers, and the child of a shell
/// has those of the shell until it executes its program.
bool knows_signal(const sys::ProcessStat& then, const sys::ProcessStat& now) {
  return now.pid == then.pid && now.start_ticks == then.start_ticks &&
         now.has_only_forked == then.has_only_forked;
}

bool may_execute_soon(const sys::ProcessStat& process) {
  static const std::int64_t ticks_per_second = std::max(::sysconf(_SC_CLK_TCK), 1L);
  const Duration started{process.start_ticks * 1000 / ticks_per_second};
  return process.has_only_forked && sys::boot_clock() - started < kExecutesWithin;
}

}  // namespace

void KeeperAttempts::kill_those_over_their_grace(Clock::time_point now) {
  for (const Number number : partly_ended_) {
    Attempt& attempt = attempts_.at(number);
    if (!attempt.kill_at || now < *attempt.kill_at) continue;
    attempt.kill_at = Clock::time_point::max();
    signal_attempts({{number, {.signal = SIGKILL}}}, now);
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
  Signals signals;
  for (const SignalMessage& message : messages) {
    const auto found = by_key_.find(packed(message.key));
    if (found == by_key_.end()) continue;
    if (attempts_.at(found->second).leaders.empty()) continue;
    signals[found->second] = {.signal = message.signal, .grace = message.grace, .is_request = true};
  }
  if (!signals.empty()) signal_attempts(signals, Clock::now());
}

void KeeperAttempts::signal_attempts(const Signals& signals, Clock::time_point now) {
  Signals to_all;
  Signals to_handlers;
  for (const auto& [number, sent] : signals) {
    Attempt& attempt = attempts_.at(number);
    if (!signal_those_on_their_way(attempt, sent)) continue;
    const bool is_term_for_all =
        sent.signal == SIGTERM && (attempt.passes_term_on || attempt.term_to_all);
    (sent.signal == SIGKILL || is_term_for_all ? to_all : to_handlers).emplace(number, sent);
  }
  if (!to_handlers.empty()) to_all.merge(signal_handlers(to_handlers, now));
  if (!to_all.empty()) signal_all_processes(to_all);
}

/// A process on its way to its program is no group yet, and handles nothing: of signals that would
/// end it only those are kept for its program that are meant to. Returns whether a program runs.
bool KeeperAttempts::signal_those_on_their_way(Attempt& attempt, const Sent& sent) {
  const int signal = sent.signal;
  bool runs = false;
  for (const Number each : attempt.leaders) {
    Leader& leader = leaders_.at(each);
    if (!on_their_way_.contains(each)) {
      runs = true;
      continue;
    }
    if (signal == SIGKILL && sent.is_request) is_told_to_end(attempt, signal);
    if (signal == SIGKILL) ::kill(leader.pid, SIGKILL);
    if (signal == SIGKILL || signal == SIGTERM) leader.signal = sent;
  }
  if (!runs && signal != SIGKILL && signal != SIGTERM) note_not_sent(attempt, signal);
  return runs;
}

void KeeperAttempts::note_not_sent(const Attempt& attempt, int signal) {
  const char* const name = ::sigabbrev_np(signal);
  notes_.push_back(
      fmt::format("{} was not sent to the task in '{}': no process of it handles it",
                  name == nullptr ? fmt::format("signal {}", signal) : fmt::format("SIG{}", name),
                  attempt.directory));
}

SignalCandidate KeeperAttempts::candidate(const sys::ProcessStat& process, int signal) const {
  SignalCandidate found{.pid = process.pid, .parent = process.parent};
  if (process.state == 'Z') return found;
  found.handles = handles_signal(signal, scan_.read_text(process.pid, "status", kStatusMax));
  found.is_shell = is_shell(scan_.program_of(process.pid));
  found.may_execute_soon = may_execute_soon(process);
  return found;
}

/// Returns the attempts of which no process handles TERM: all their processes are to get it.
KeeperAttempts::Signals KeeperAttempts::signal_handlers(const Signals& signals,
                                                        Clock::time_point now) {
  const std::span<const sys::ProcessStat> processes = scan_.read_all();
  const std::vector<int> trees = trees_of_attempts(processes);
  std::unordered_map<Number, std::vector<SignalCandidate>> candidates;
  for (std::size_t i = 0; i < processes.size(); ++i) {
    if (trees[i] <= 0) continue;
    const auto sent = signals.find(static_cast<Number>(trees[i]));
    if (sent == signals.end()) continue;
    candidates[sent->first].push_back(candidate(processes[i], sent->second.signal));
  }
  Signals not_handled;
  for (const auto& [number, sent] : signals) {
    const std::vector<std::int64_t> pids = signal_receivers(sent.signal, candidates[number]);
    if (pids.empty() && sent.signal == SIGTERM) not_handled.emplace(number, sent);
    if (pids.empty() && sent.signal != SIGTERM) note_not_sent(attempts_.at(number), sent.signal);
    if (!pids.empty() && sent.signal == SIGTERM && sent.is_request) {
      is_told_to_end(attempts_.at(number), SIGTERM);
    }
    for (const std::int64_t pid : pids) ::kill(static_cast<pid_t>(pid), sent.signal);
    if (pids.empty() || sent.signal != SIGTERM) continue;
    Receivers receivers{.processes = {}, .others_at = now + sent.grace / 2, .have_exited = false};
    std::ranges::copy_if(processes, std::back_inserter(receivers.processes),
                         [&pids](const sys::ProcessStat& process) {
                           return std::ranges::find(pids, process.pid) != pids.end();
                         });
    receivers_.insert_or_assign(number, std::move(receivers));
    receivers_read_at_ = now;
  }
  return not_handled;
}

void KeeperAttempts::end_helpers(Clock::time_point now) {
  if (receivers_.empty() || now < receivers_read_at_) return;
  receivers_read_at_ = now + kReceiversReadEvery;
  const auto runs = [this](const sys::ProcessStat& process) {
    const auto found = scan_.read(process.pid);
    return found && found->state != 'Z' && knows_signal(process, *found);
  };
  for (auto& [number, receivers] : receivers_) {
    if (receivers.have_exited || std::ranges::any_of(receivers.processes, runs)) continue;
    receivers.have_exited = true;
    receivers.others_at = std::min(receivers.others_at, now + kEndByThemselves);
  }
  std::unordered_map<Number, Receivers> due;
  std::erase_if(receivers_, [&](const auto& it) {
    const auto& [number, receivers] = it;
    const auto attempt = attempts_.find(number);
    if (attempt == attempts_.end() || attempt->second.leaders.empty()) return true;
    if (now < receivers.others_at) return false;
    due.insert(it);
    return true;
  });
  if (due.empty()) return;
  const std::span<const sys::ProcessStat> processes = scan_.read_all();
  const std::vector<int> trees = trees_of_attempts(processes);
  for (std::size_t i = 0; i < processes.size(); ++i) {
    if (trees[i] <= 0) continue;
    const auto receivers = due.find(static_cast<Number>(trees[i]));
    if (receivers == due.end()) continue;
    // Not twice: many programs take a second TERM as "at once".
    const bool has_it = std::ranges::any_of(
        receivers->second.processes,
        [&](const sys::ProcessStat& then) { return knows_signal(then, processes[i]); });
    if (!has_it) ::kill(static_cast<pid_t>(processes[i].pid), SIGTERM);
  }
}

std::optional<KeeperAttempts::Clock::time_point> KeeperAttempts::helpers_end_at() const {
  return receivers_.empty() ? std::nullopt : std::optional(receivers_read_at_);
}

std::vector<int> KeeperAttempts::trees_of_attempts(
    std::span<const sys::ProcessStat> processes) const {
  return sys::label_trees(processes, [this](const sys::ProcessStat& process) {
    const auto orphan = orphans_.find(static_cast<pid_t>(process.pid));
    if (orphan != orphans_.end()) return static_cast<int>(orphan->second.owner);
    const auto leader = by_pid_.find(static_cast<pid_t>(process.session));
    return leader != by_pid_.end() ? static_cast<int>(leaders_.at(leader->second).attempt)
                                   : sys::kNoTree;
  });
}

void KeeperAttempts::signal_all_processes(const Signals& signals) {
  // The groups first: most tasks are no more than that.
  for (const auto& [number, sent] : signals) signal_groups(attempts_.at(number), sent);
  // Then their descendants: one look at all processes, however many are to be stopped.
  const std::span<const sys::ProcessStat> processes = scan_.read_all();
  const std::vector<int> trees = trees_of_attempts(processes);
  for (std::size_t i = 0; i < processes.size(); ++i) {
    if (trees[i] <= 0) continue;
    const auto sent = signals.find(static_cast<Number>(trees[i]));
    if (sent == signals.end()) continue;
    const int signal = sent->second.signal;
    if (signal == SIGTERM && attempts_.at(sent->first).passes_term_on) continue;
    // Not twice: many programs take a second TERM as "at once".
    if (by_pid_.contains(static_cast<pid_t>(processes[i].group))) continue;
    ::kill(static_cast<pid_t>(processes[i].pid), signal);
  }
}

void KeeperAttempts::signal_groups(Attempt& attempt, const Sent& sent) {
  for (const Number each : attempt.leaders) {
    if (!on_their_way_.contains(each)) signal_group(attempt, leaders_.at(each), sent);
  }
}

/// Sends TERM or KILL to the group of a leader. A program that does not handle the signal cannot
/// exit with a code after it: if the program does, it was exiting before, and judge_fatal_signal()
/// does not count its exit as one because of the signal.
void KeeperAttempts::signal_group(Attempt& attempt, const Leader& leader, const Sent& sent) {
  const auto is_fatal = [&] {
    // A rank may exit because another rank got the signal first, and a program that has become
    // another user does not get it.
    return !leader.rank && ::kill(leader.pid, 0) == 0 &&
           is_ended_by_signal(sent.signal, scan_.read_text(leader.pid, "status", kStatusMax));
  };
  const bool may_end = sent.is_request && !sys::wait_until_ended(leader.pidfd, Duration{0});
  // Read before the signal and after it: the program may set its handler in between.
  const bool was_fatal = may_end && is_fatal();
  if (may_end && !was_fatal) is_told_to_end(attempt, sent.signal);
  ::kill(-leader.pid, sent.signal);
  if (!was_fatal) return;
  attempt.killed_by_us = attempt.killed_by_us || sent.signal == SIGKILL;
  if (is_fatal()) {
    attempt.got_fatal_signal = true;
  } else {
    attempt.ended.told_to_end = true;
    board_.mark_signalled(attempt.key);
  }
}

/// To be called just before the signal is sent.
void KeeperAttempts::is_told_to_end(Attempt& attempt, int signal) const {
  // A process that has exited by now, and whose exit was not received yet, did not exit because of
  // this signal.
  const bool runs = std::ranges::any_of(attempt.leaders, [this](Number each) {
    return !sys::wait_until_ended(leaders_.at(each).pidfd, Duration{0});
  });
  attempt.killed_by_us = attempt.killed_by_us || (runs && signal == SIGKILL);
  if (!runs || attempt.got_fatal_signal) return;
  attempt.ended.told_to_end = true;
  board_.mark_signalled(attempt.key);
}

/// To be called with the exit of a leader, before that is on the board: the end of a program that
/// got a fatal signal is due to that only if this signal killed the program. Without an exit, it may
/// be: somebody else has waited for the process.
void KeeperAttempts::judge_fatal_signal(Attempt& attempt,
                                        const std::optional<ProcessExit>& exit) const {
  if (!attempt.got_fatal_signal) return;
  const auto* const killed = exit ? std::get_if<model::KilledBy>(&*exit) : nullptr;
  const bool is_ours = killed != nullptr && (killed->signal == SIGTERM ||
                                             (killed->signal == SIGKILL && attempt.killed_by_us));
  if (exit && !is_ours) return;
  attempt.ended.told_to_end = true;
  board_.mark_signalled(attempt.key);
}

void KeeperAttempts::end_those_on_their_way() {
  for (const Number number : on_their_way_) {
    const Leader& leader = leaders_.at(number);
    is_told_to_end(attempts_.at(leader.attempt), SIGKILL);
    ::kill(leader.pid, SIGKILL);
  }
}

void KeeperAttempts::signal_everything(int signal, Duration grace, pid_t spared) {
  Signals signals;
  for (auto& [number, attempt] : attempts_) {
    if (attempt.leaders.empty()) continue;
    const Sent sent{.signal = signal, .grace = grace, .is_request = true};
    if (signal != SIGKILL) {
      signals.emplace(number, sent);
    } else if (signal_those_on_their_way(attempt, sent)) {
      // Before signal_trees() reads all of /proc: a program may exit by itself meanwhile.
      signal_groups(attempt, sent);
    }
  }
  const pid_t self = ::getpid();
  signal_trees(
      [this, self, spared, &signals](const sys::ProcessStat& process) {
        if (process.parent != self || process.pid == spared) return sys::kNoTree;
        const auto leader = by_pid_.find(static_cast<pid_t>(process.pid));
        const auto orphan = orphans_.find(static_cast<pid_t>(process.pid));
        const Number attempt = leader != by_pid_.end()    ? leaders_.at(leader->second).attempt
                               : orphan != orphans_.end() ? orphan->second.owner
                                                          : 0;
        return signals.contains(attempt) ? sys::kNoTree : 0;
      },
      signal);
  if (!signals.empty()) signal_attempts(signals, Clock::now());
}

}  // namespace trainyard::process
