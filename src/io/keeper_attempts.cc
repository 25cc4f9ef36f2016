#include "io/keeper_attempts.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include <sys/resource.h>
#include <sys/time.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>

#include "base/bytes.h"
#include "base/result.h"
#include "base/time.h"
#include "io/descriptor.h"
#include "io/keeper.h"
#include "io/keeper_message.h"
#include "io/keeper_spawn.h"
#include "io/process_scan.h"
#include "model/event.h"
#include "model/ids.h"
#include "model/launch.h"
#include "model/resources.h"

namespace trainyard::io {
namespace {

/// How long we wait for the last processes of an attempt to die of SIGKILL before we say that it
/// has ended. They can take longer: in a system call on a dead network disk, say.
constexpr Duration kClearingMax{2000};
/// How old the count of OOM kills may be that a new attempt starts from.
constexpr Duration kOomCountAge{1000};

std::uint64_t packed(AttemptKey key) {
  return (std::uint64_t{key.task.value} << 32U) | key.attempt;
}

/// The two variables that tell an attempt from all others, in the order of their names.
std::string mark_from(std::span<const std::string_view> environment) {
  std::string attempt;
  std::string directory;
  for (const std::string_view entry : environment) {
    if (entry.starts_with("TRAINYARD_ATTEMPT=")) attempt = entry;
    if (entry.starts_with("TRAINYARD_TASK_DIR=")) directory = entry;
  }
  return attempt.empty() || directory.empty() ? "" : attempt + '\n' + directory;
}

template <class Value>
bool holds(const std::vector<Value>& values, Value value) {
  return std::ranges::find(values, value) != values.end();
}

Usage usage_from(const rusage& used) {
  const auto milliseconds = [](const timeval& time) {
    return Duration(time.tv_sec * 1000 + time.tv_usec / 1000);
  };
  return {.memory_peak = kib(used.ru_maxrss),
          .cpu_time = milliseconds(used.ru_utime) + milliseconds(used.ru_stime)};
}

}  // namespace

void KeeperAttempts::prepare(Clock::time_point now) {
  if (now - oom_read_at_ < kOomCountAge) return;
  oom_kills_ = oom_.kills();
  oom_read_at_ = now;
}

void KeeperAttempts::add(AttemptKey key, Spawned spawned) {
  const Number number = ++last_number_;
  const Launch& launch = spawned.start->launch();
  const std::vector<std::string_view> environment(launch.environment.begin(),
                                                  launch.environment.end());
  // NOLINTNEXTLINE(misc-include-cleaner): sys/types.h has it.
  const pid_t leader = spawned.start->pid();
  leaders_.insert_or_assign(leader, number);
  by_key_.insert_or_assign(packed(key), number);
  Attempt attempt{.key = key,
                  .leader = leader,
                  .start = {},
                  .late_at = Clock::now() + Start::kLate,
                  .signal = {},
                  .not_started = {},
                  .files = {.result_path = launch.result_path, .errors_path = launch.stderr_path},
                  .pidfd = std::move(spawned.pidfd),
                  .memory_group = std::move(spawned.group),
                  .mark = mark_from(environment),
                  .oom_kills_before = oom_kills_,
                  .ended = {},
                  .tell_at_latest = {},
                  .sessions = {}};
  attempt.start = std::move(spawned.start);
  on_their_way_.insert(number);
  attempts_.try_emplace(number, std::move(attempt));
}

std::optional<ProcessStarted> KeeperAttempts::look_at_start(Number number) {
  const auto found = attempts_.find(number);
  if (found == attempts_.end() || !on_their_way_.contains(number)) return std::nullopt;
  Attempt& attempt = found->second;
  const std::optional<Result<void>> outcome = attempt.start->outcome();
  if (!outcome) return std::nullopt;
  on_their_way_.erase(number);
  if (!*outcome) {
    // It has told why, and may still be using the stack that it was given.
    attempt.not_started = outcome->error().message;
    return std::nullopt;
  }
  attempt.start.reset();
  if (attempt.signal) ::kill(-attempt.leader, *attempt.signal);
  return ProcessStarted{.key = attempt.key, .pid = attempt.leader};
}

const Descriptor* KeeperAttempts::status_of(Number number) const {
  if (!on_their_way_.contains(number)) return nullptr;
  return &attempts_.at(number).start->status();
}

const Descriptor* KeeperAttempts::process_of(Number number) const {
  const auto found = attempts_.find(number);
  return found != attempts_.end() && found->second.running() ? &found->second.pidfd : nullptr;
}

void KeeperAttempts::end_those_on_their_way() {
  for (const Number number : on_their_way_) ::kill(attempts_.at(number).leader, SIGKILL);
}

std::vector<std::string> KeeperAttempts::late_starts(Clock::time_point now) {
  std::vector<std::string> lines;
  for (const Number number : on_their_way_) {
    Attempt& attempt = attempts_.at(number);
    if (now < attempt.late_at) continue;
    attempt.late_at = Clock::time_point::max();
    lines.push_back(
        fmt::format("a process has not begun for {} s: the disk of its files ('{}') or of its "
                    "program does not answer",
                    std::chrono::duration_cast<std::chrono::seconds>(Start::kLate).count(),
                    attempt.start->launch().task_directory));
  }
  return lines;
}

std::optional<KeeperAttempts::Clock::time_point> KeeperAttempts::late_at() const {
  std::optional<Clock::time_point> at;
  for (const Number number : on_their_way_) {
    const Clock::time_point late_at = attempts_.at(number).late_at;
    if (late_at != Clock::time_point::max()) at = std::min(at.value_or(late_at), late_at);
  }
  return at;
}

void KeeperAttempts::leader_ended(Number number, Clock::time_point now) {
  const auto found = attempts_.find(number);
  if (found == attempts_.end() || !found->second.running()) return;
  Attempt& attempt = found->second;
  // While the leader is a zombie nobody else can have its number: what is left of its group is
  // certainly its own.
  ::kill(-attempt.leader, SIGKILL);
  attempt.memory_group.kill();
  int status = 0;
  rusage used{};
  const auto reaped = ::wait4(attempt.leader, &status, WNOHANG, &used);
  if (reaped == 0) return;  // Not yet, after all: its event comes again.
  leaders_.erase(attempt.leader);
  attempt.pidfd.close();
  clearing_.push_back(number);
  attempt.ended = {.key = attempt.key,
                   .end = reaped < 0 ? End(Vanished{"somebody else has waited for it"})
                                     : how_it_ended(attempt, status),
                   .usage = usage_from(used),
                   .left = {}};
  attempt.tell_at_latest = now + kClearingMax;
}

End KeeperAttempts::how_it_ended(const Attempt& attempt, int status) const {
  if (!attempt.not_started.empty()) return NotStarted{attempt.not_started};
  constexpr int kShellSaysKilled = 128 + SIGKILL;
  const bool exited = WIFEXITED(status);
  const bool killed =
      exited ? WEXITSTATUS(status) == kShellSaysKilled : WTERMSIG(status) == SIGKILL;
  const bool by_others = killed && !attempt.killed_by_us;
  if (by_others && attempt.memory_group.is_over_limit()) {
    return KilledBy{.signal = SIGKILL, .out_of_memory = true, .over_limit = true};
  }
  const bool out_of_memory = by_others && oom_.kills() > attempt.oom_kills_before;
  if (out_of_memory) return KilledBy{.signal = SIGKILL, .out_of_memory = true};
  if (exited) return ExitedWith{WEXITSTATUS(status)};
  return KilledBy{.signal = WTERMSIG(status)};
}

void KeeperAttempts::look_around() {
  // NOLINTNEXTLINE(misc-include-cleaner): sys/types.h has it.
  for (const pid_t pid : children_.read()) {
    if (!leaders_.contains(pid) && !orphans_.contains(pid)) adopt(pid);
  }
  if (orphans_.empty()) return;
  reap_orphans();
  find_owners();
}

void KeeperAttempts::adopt(pid_t pid) {
  // It is waited for by whoever has set it aside, and may not lead its session yet.
  if (set_aside_.contains(pid)) return;
  const std::optional<ProcessStat> process = scan_.read(pid);
  if (process && set_aside_.contains(static_cast<pid_t>(process->session))) {
    // What one of those left behind.
    static_cast<void>(::waitpid(pid, nullptr, WNOHANG));
    return;
  }
  const Number owner = process ? owner_of(*process) : 0;
  orphans_.try_emplace(pid, Orphan{.owner = owner, .owner_at_most = last_number_});
  if (!process || owner == 0) return;
  Attempt& attempt = attempts_.at(owner);
  if (process->session != attempt.leader && !holds(attempt.sessions, process->session)) {
    attempt.sessions.push_back(process->session);
  }
}

KeeperAttempts::Number KeeperAttempts::owner_of(const ProcessStat& process) const {
  for (const auto& [number, attempt] : attempts_) {
    if (process.session == attempt.leader) return number;
    if (holds(attempt.sessions, process.session)) return number;
  }
  constexpr std::size_t kEnvironmentMax = std::size_t{1} << 20;
  const std::string environment = scan_.read_text(process.pid, "environ", kEnvironmentMax);
  std::vector<std::string_view> entries;
  for (std::size_t at = 0; at < environment.size();) {
    entries.emplace_back(environment.c_str() + at);
    at += entries.back().size() + 1;
  }
  const std::string mark = mark_from(entries);
  if (mark.empty()) return 0;
  for (const auto& [number, attempt] : attempts_) {
    if (attempt.mark == mark) return number;
  }
  return 0;
}

void KeeperAttempts::reap_orphans() {
  for (auto it = orphans_.begin(); it != orphans_.end();) {
    rusage used{};
    if (::wait4(it->first, nullptr, WNOHANG, &used) == 0) {
      ++it;
      continue;
    }
    if (const auto owner = attempts_.find(it->second.owner); owner != attempts_.end()) {
      owner->second.ended.usage.cpu_time += usage_from(used).cpu_time;
    }
    it = orphans_.erase(it);
  }
}

/// One that hides whose it is belongs to an attempt that ran when it turned up. When only one of
/// those is left it must be that one's; when none is left it has no business here.
void KeeperAttempts::find_owners() {
  for (auto& [pid, orphan] : orphans_) {
    if (orphan.owner != 0) continue;
    int suspects = 0;
    for (const auto& [number, attempt] : attempts_) {
      if (number > orphan.owner_at_most) continue;
      ++suspects;
      orphan.owner = number;
    }
    if (suspects > 1) orphan.owner = 0;
    if (suspects == 0) ::kill(pid, SIGKILL);
  }
}

bool KeeperAttempts::has_leftovers(Number number, const Attempt& attempt) const {
  // Signal 0 harms nobody, should the number have been given to somebody else by now.
  if (::kill(-attempt.leader, 0) == 0 && !leaders_.contains(attempt.leader)) return true;
  if (attempt.memory_group.has_processes()) return true;
  return std::ranges::any_of(orphans_,
                             [number](const auto& it) { return it.second.owner == number; });
}

std::vector<KeeperAttempts::Over> KeeperAttempts::clear_up(bool looked, Clock::time_point now) {
  std::vector<Over> told;
  std::vector<Number> left;
  for (const Number number : std::exchange(clearing_, {})) {
    Attempt& attempt = attempts_.at(number);
    const bool clear = !has_leftovers(number, attempt);
    if (!attempt.told && (clear || now >= attempt.tell_at_latest)) {
      attempt.told = true;
      told.push_back({.ended = attempt.ended, .files = std::move(attempt.files)});
    }
    if (clear) {
      forget(number);
    } else {
      left.push_back(number);
    }
  }
  clearing_ = std::move(left);
  // What hides whose it is may be nobody's now.
  find_owners();
  if (clearing_.empty() || !looked) return told;
  signal_trees(
      [this](const ProcessStat& process) {
        const auto orphan = orphans_.find(static_cast<pid_t>(process.pid));
        return orphan != orphans_.end() && holds(clearing_, orphan->second.owner) ? 0 : kNoTree;
      },
      SIGKILL);
  return told;
}

std::optional<KeeperAttempts::Clock::time_point> KeeperAttempts::clear_up_at() const {
  std::optional<Clock::time_point> at;
  for (const Number number : clearing_) {
    const Attempt& attempt = attempts_.at(number);
    if (!attempt.told) at = at ? std::min(*at, attempt.tell_at_latest) : attempt.tell_at_latest;
  }
  return at;
}

void KeeperAttempts::forget(Number number) {
  const auto attempt = attempts_.find(number);
  const auto by_key = by_key_.find(packed(attempt->second.key));
  if (by_key != by_key_.end() && by_key->second == number) by_key_.erase(by_key);
  on_their_way_.erase(number);
  attempts_.erase(attempt);
}

void KeeperAttempts::signal_trees(const std::function<int(const ProcessStat&)>& own_tree,
                                  int signal) {
  const std::span<const ProcessStat> processes = scan_.read_all();
  const std::vector<int> trees = label_trees(processes, own_tree);
  for (std::size_t i = 0; i < processes.size(); ++i) {
    if (trees[i] != kNoTree) ::kill(static_cast<pid_t>(processes[i].pid), signal);
  }
}

void KeeperAttempts::signal(std::span<const SignalMessage> messages) {
  // The groups first: most tasks are no more than that.
  std::unordered_map<Number, int> signals;
  for (const SignalMessage& message : messages) {
    const auto found = by_key_.find(packed(message.key));
    if (found == by_key_.end()) continue;
    Attempt& attempt = attempts_.at(found->second);
    if (!attempt.running()) continue;
    attempt.killed_by_us = attempt.killed_by_us || message.signal == SIGKILL;
    if (on_their_way_.contains(found->second)) {
      // It is no group yet, and has nobody who could hear a signal.
      if (message.signal == SIGKILL) ::kill(attempt.leader, SIGKILL);
      attempt.signal = message.signal;
      continue;
    }
    ::kill(-attempt.leader, message.signal);
    signals[found->second] = message.signal;
  }
  // Then whoever has left them: one look at all processes, however many are to be stopped.
  if (!signals.empty()) signal_those_outside_their_groups(signals);
}

void KeeperAttempts::signal_those_outside_their_groups(
    const std::unordered_map<Number, int>& signals) {
  const std::span<const ProcessStat> processes = scan_.read_all();
  const std::vector<int> trees = label_trees(processes, [this](const ProcessStat& process) {
    const auto orphan = orphans_.find(static_cast<pid_t>(process.pid));
    if (orphan != orphans_.end()) return static_cast<int>(orphan->second.owner);
    const auto leader = leaders_.find(static_cast<pid_t>(process.session));
    return leader != leaders_.end() ? static_cast<int>(leader->second) : kNoTree;
  });
  for (std::size_t i = 0; i < processes.size(); ++i) {
    if (trees[i] <= 0) continue;
    const auto signal = signals.find(static_cast<Number>(trees[i]));
    if (signal == signals.end()) continue;
    // Not twice: many programs take a second TERM as "at once".
    if (processes[i].group == attempts_.at(signal->first).leader) continue;
    ::kill(static_cast<pid_t>(processes[i].pid), signal->second);
  }
}

void KeeperAttempts::signal_everything(int signal) {
  const pid_t self = ::getpid();
  signal_trees([self](const ProcessStat& process) { return process.parent == self ? 0 : kNoTree; },
               signal);
}

}  // namespace trainyard::io
