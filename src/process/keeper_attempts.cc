#include "process/keeper_attempts.h"

#include <algorithm>
#include <csignal>
#include <string_view>
#include <variant>

#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>

#include "base/bytes.h"
#include "base/result.h"
#include "model/launch.h"
#include "model/resources.h"
#include "process/start_failure.h"

namespace trainyard::process {
namespace {

/// The maximum time that the end of an attempt waits for its last processes to die of SIGKILL.
constexpr Duration kClearingMax{2000};

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
bool holds(const std::vector<Value>& values, const Value& value) {
  return std::ranges::find(values, value) != values.end();
}

std::optional<NotedAttempt> noted_from(const model::Launch& launch) {
  if (!launch.journal_number) return std::nullopt;
  return NotedAttempt{.journal_number = *launch.journal_number,
                      .two_phase = launch.two_phase,
                      .ranks = launch.ranks,
                      .shares_memory = launch.forked || !launch.preload.modules.empty()};
}

/// The time for the yard: the clock is the machine's, and the same in every process.
Duration told(KeeperAttempts::Clock::time_point at) {
  return std::chrono::duration_cast<Duration>(at.time_since_epoch());
}

model::Usage usage_from(const rusage& used) {
  const auto milliseconds = [](const timeval& time) {
    return Duration(time.tv_sec * 1000 + time.tv_usec / 1000);
  };
  return {.memory_peak = kib(used.ru_maxrss),
          .cpu_time = milliseconds(used.ru_utime) + milliseconds(used.ru_stime)};
}

/// The most that this process has had in memory so far: no less than when it forked.
Bytes own_mark() {
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  return kib(used.ru_maxrss);
}

}  // namespace

void KeeperAttempts::prepare(Clock::time_point now) {
  if (now - oom_read_at_ < options_.oom_count_age) return;
  oom_kills_ = oom_.kills();
  oom_read_at_ = now;
}

void KeeperAttempts::add(model::AttemptKey key, Spawned spawned) {
  std::vector<Spawned> one;
  one.push_back(std::move(spawned));
  add_ranks(key, std::move(one), std::nullopt);
}

void KeeperAttempts::add_ranks(model::AttemptKey key, std::vector<Spawned> spawned,
                               std::optional<PortLease> lease) {
  const Number number = next_number();
  const model::Launch& launch = spawned.front().start->launch();
  const std::vector<std::string_view> environment(launch.environment.begin(),
                                                  launch.environment.end());
  by_key_.insert_or_assign(packed(key), number);
  Attempt& attempt =
      attempts_
          .try_emplace(number, Attempt{.key = key,
                                       .leaders = {},
                                       .pids = {},
                                       .not_started = {},
                                       .files = EndReader::Question::of(launch),
                                       .noted = noted_from(launch),
                                       .memory_group = std::move(spawned.front().group),
                                       .lease = std::move(lease),
                                       .mark = mark_from(environment),
                                       .directory = launch.task_directory,
                                       .oom_kills_before = oom_kills_,
                                       .passes_term_on = launch.passes_term_on,
                                       .term_to_all = launch.term_to_all,
                                       .kill_at = {},
                                       .ended = {.key = key,
                                                 .end = model::ExitedWith{0},
                                                 .usage = {},
                                                 .left = {},
                                                 .told_to_end = false},
                                       .tell_at_latest = {},
                                       .groups = {},
                                       .sessions = {}})
          .first->second;
  const bool several = spawned.size() > 1 || launch.ranks > 0;
  if (!several) {
    const bool noted = end_notes_ && attempt.noted;
    board_.enter(key, spawned.front().start->pid(),
                 noted ? note_order(*end_notes_, *attempt.noted, attempt.files) : std::string());
  }
  for (std::size_t rank = 0; rank < spawned.size(); ++rank) {
    add_leader(number, several ? std::optional(static_cast<int>(rank)) : std::nullopt,
               std::move(spawned[rank]));
  }
}

void KeeperAttempts::add_leader(Number attempt, std::optional<int> rank, Spawned spawned) {
  const Number number = ++last_number_;
  const pid_t pid = spawned.start->pid();
  Leader leader{.attempt = attempt,
                .rank = rank,
                .pid = pid,
                .start = std::move(spawned.start),
                .born = Clock::now(),
                .late_at = Clock::now() + options_.late_after,
                .signal = {},
                .not_started = {},
                .errors_path = {},
                .output_path = {},
                .pidfd = std::move(spawned.pidfd)};
  leader.errors_path = leader.start->launch().stderr_path;
  leader.output_path = leader.start->launch().stdout_path;
  by_pid_.insert_or_assign(pid, number);
  on_their_way_.insert(number);
  leaders_.try_emplace(number, std::move(leader));
  Attempt& of = attempts_.at(attempt);
  of.leaders.push_back(number);
  of.pids.push_back(pid);
  ++of.on_their_way;
}

void KeeperAttempts::give_up(Number attempt, model::NotStarted why) {
  Attempt& of = attempts_.at(attempt);
  of.not_started = std::move(why);
  of.lacks_a_rank = true;
  for (const Number number : of.leaders) ::kill(leaders_.at(number).pid, SIGKILL);
}

std::optional<ProcessStarted> KeeperAttempts::look_at_start(Number number,
                                                            Clock::time_point happened) {
  if (!on_their_way_.contains(number)) return std::nullopt;
  Leader& leader = leaders_.at(number);
  const std::optional<Result<void>> outcome = leader.start->outcome();
  const bool first_look = !std::exchange(leader.looked_at, true);
  if (!outcome) return std::nullopt;
  on_their_way_.erase(number);
  Attempt& attempt = attempts_.at(leader.attempt);
  --attempt.on_their_way;
  if (*outcome) {
    leader.start.reset();
    attempt.runs = true;
    // A process that was no longer on its way at its first look began before that.
    attempt.began =
        std::max(attempt.began, first_look ? leader.born : std::max(leader.born, happened));
    if (leader.signal) signal_group(attempt, leader, *leader.signal);
  } else {
    // The process has reported why, and may still be using the stack that it was given.
    leader.not_started = not_started(outcome->error());
    attempt.lacks_a_rank = true;
  }
  if (attempt.on_their_way > 0 || !attempt.runs || attempt.lacks_a_rank) return std::nullopt;
  return ProcessStarted{.key = attempt.key,
                        .pid = attempt.pids.front(),
                        .others = {attempt.pids.begin() + 1, attempt.pids.end()},
                        .at = told(attempt.began)};
}

const sys::Descriptor* KeeperAttempts::status_of(Number number) const {
  if (!on_their_way_.contains(number)) return nullptr;
  return &leaders_.at(number).start->status();
}

const sys::Descriptor* KeeperAttempts::process_of(Number number) const {
  const auto found = leaders_.find(number);
  return found != leaders_.end() ? &found->second.pidfd : nullptr;
}

std::vector<std::string> KeeperAttempts::late_starts(Clock::time_point now) {
  std::vector<std::string> lines;
  for (const Number number : on_their_way_) {
    Leader& leader = leaders_.at(number);
    if (now < leader.late_at) continue;
    leader.late_at = Clock::time_point::max();
    std::string line = fmt::format(
        "a process has not started for {} s: the disk of its files ('{}') or of its "
        "program does not answer",
        std::chrono::duration<double>(options_.late_after).count(),
        leader.start->launch().task_directory);
    // The ranks of an attempt have the same directory.
    if (!holds(lines, line)) lines.push_back(std::move(line));
  }
  return lines;
}

void KeeperAttempts::wait_longer(Clock::duration away) {
  for (const Number number : on_their_way_) {
    Clock::time_point& late_at = leaders_.at(number).late_at;
    if (late_at != Clock::time_point::max()) late_at += away;
  }
}

std::optional<KeeperAttempts::Clock::time_point> KeeperAttempts::late_at() const {
  std::optional<Clock::time_point> at;
  for (const Number number : on_their_way_) {
    const Clock::time_point late_at = leaders_.at(number).late_at;
    if (late_at != Clock::time_point::max()) at = std::min(at.value_or(late_at), late_at);
  }
  return at;
}

std::optional<RankFailed> KeeperAttempts::leader_ended(Number number, const Heard& heard) {
  const auto found = leaders_.find(number);
  if (found == leaders_.end()) return std::nullopt;
  Attempt& attempt = attempts_.at(found->second.attempt);
  const pid_t pid = found->second.pid;
  // While the leader is a zombie no other process can have its number: the rest of its group is
  // certainly its own.
  ::kill(-pid, SIGKILL);
  if (attempt.leaders.size() == 1) attempt.memory_group.kill();
  const std::optional<ChildEnd> seen = end_of_child(pid);
  if (!seen) return std::nullopt;  // Not yet, after all: its event comes again.
  model::End end = seen->exit ? how_it_ended(attempt, found->second, *seen->exit)
                              : model::End(model::Vanished{"somebody else has waited for it"});
  judge_fatal_signal(attempt, seen->exit);
  // The guard cannot see the end of a process that was reaped: from here on the board has it.
  board_.mark_ended(attempt.key, end);
  rusage used{};
  ::wait4(pid, nullptr, WNOHANG, &used);
  const Leader leader = std::move(found->second);
  leaders_.erase(found);
  by_pid_.erase(pid);
  std::erase(attempt.leaders, number);
  attempt.groups.push_back(pid);
  attempt.sessions.push_back(pid);
  const model::Usage usage = usage_from(used);
  const Bytes mark = own_mark();
  if (usage.memory_peak > attempt.ended.usage.memory_peak) {
    attempt.ended.usage.memory_peak = usage.memory_peak;
    attempt.ended.mark = mark;
  }
  // The kernel's figure, for a rank that exits before any sample.
  model::RanksAtEnd& ranks = attempt.ended.ranks;
  const Bytes known = std::max(mark + Bytes{mark.count / 16}, ranks.largest_memory);
  if (leader.rank && usage.memory_peak > known) {
    ranks.largest = leader.rank;
    ranks.largest_memory = usage.memory_peak;
  }
  attempt.ended.usage.cpu_time += usage.cpu_time;
  std::optional<RankFailed> failed = take_end(attempt, leader, std::move(end));
  if (attempt.leaders.empty()) {
    attempt.ended.at = told(std::max(heard.happened, attempt.began));
    attempt.seen_at = told(heard.now);
    clearing_.push_back(leader.attempt);
    partly_ended_.erase(leader.attempt);
    attempt.tell_at_latest = heard.now + kClearingMax;
    return failed;
  }
  partly_ended_.insert(leader.attempt);
  if (failed) {
    attempt.kill_at = heard.now + options_.grace;
    signal_attempts({{leader.attempt, {.signal = SIGTERM, .grace = options_.grace}}}, heard.now);
  }
  return failed;
}

/// The end of an attempt is that of the first of its processes that failed. If it was told to end
/// before, none of them is to blame.
std::optional<RankFailed> KeeperAttempts::take_end(Attempt& attempt, const Leader& leader,
                                                   model::End end) {
  if (!leader.rank) {
    attempt.ended.end = std::move(end);
    return std::nullopt;
  }
  model::RanksAtEnd& ranks = attempt.ended.ranks;
  const bool first = attempt.ended.end == model::End(model::ExitedWith{0});
  const bool well = end == model::End(model::ExitedWith{0});
  const bool told_to_end = attempt.ended.told_to_end || leader.signal;
  if (well && first && !told_to_end) ranks.finished.push_back(*leader.rank);
  if (well || !first) return std::nullopt;
  attempt.ended.end = std::move(end);
  attempt.files.errors_path = leader.errors_path;
  attempt.files.output_path = leader.output_path;
  if (told_to_end || attempt.not_started) return std::nullopt;
  ranks.failed = leader.rank;
  attempt.files.told =
      model::to_text(*leader.rank, attempt.ended.end) + "; the other ranks are killed";
  return RankFailed{.key = attempt.key, .rank = *leader.rank, .end = attempt.ended.end};
}

model::End KeeperAttempts::how_it_ended(const Attempt& attempt, const Leader& leader,
                                        const ProcessExit& exit) const {
  if (attempt.not_started) return *attempt.not_started;
  if (leader.not_started) return *leader.not_started;
  constexpr int kShellSaysKilled = 128 + SIGKILL;
  const auto* const exited = std::get_if<model::ExitedWith>(&exit);
  const bool killed = exited != nullptr ? exited->code == kShellSaysKilled
                                        : std::get<model::KilledBy>(exit).signal == SIGKILL;
  const bool by_others = killed && !attempt.killed_by_us;
  if (by_others && oom_kills_of(attempt) > 0) {
    return model::KilledBy{.signal = SIGKILL,
                           .out_of_memory = true,
                           .over_limit = attempt.memory_group.is_over_limit()};
  }
  return std::visit([](const auto& it) { return model::End(it); }, exit);
}

std::int64_t KeeperAttempts::oom_kills_of(const Attempt& attempt) const {
  const std::optional<std::int64_t> own = attempt.memory_group.oom_kills();
  return own ? *own : oom_.kills() - attempt.oom_kills_before;
}

void KeeperAttempts::look_around() {
  for (const pid_t pid : children_.read()) {
    const auto orphan = orphans_.find(pid);
    const bool known = orphan != orphans_.end() && !orphan->second.unnamed;
    if (!by_pid_.contains(pid) && !known) adopt(pid);
  }
  if (!orphans_.empty()) {
    reap_orphans();
    find_owners();
  }
  for (const Number number : partly_ended_) forget_empty_groups(attempts_.at(number));
}

void KeeperAttempts::adopt(pid_t pid) {
  // The code that set the session aside waits for this process, which may not lead its session yet.
  if (set_aside_.contains(pid)) return;
  const std::optional<sys::ProcessStat> process = scan_.read(pid);
  if (process && set_aside_.contains(static_cast<pid_t>(process->session))) {
    // A process left behind by one that was set aside.
    static_cast<void>(::waitpid(pid, nullptr, WNOHANG));
    return;
  }
  const std::optional<Number> owner = process ? owner_of(*process) : 0;
  Orphan& orphan = orphans_.try_emplace(pid, Orphan{.owner_at_most = last_number_}).first->second;
  orphan.owner = owner.value_or(0);
  orphan.unnamed = !owner;
  if (!process || orphan.owner == 0) return;
  Attempt& attempt = attempts_.at(orphan.owner);
  if (!holds(attempt.pids, process->session) && !holds(attempt.sessions, process->session)) {
    attempt.sessions.push_back(process->session);
  }
}

/// 0: it hides that. Nothing: it is just becoming another program, and has neither the words nor
/// the environment of one.
std::optional<KeeperAttempts::Number> KeeperAttempts::owner_of(
    const sys::ProcessStat& process) const {
  const auto leader = by_pid_.find(static_cast<pid_t>(process.session));
  if (leader != by_pid_.end()) return leaders_.at(leader->second).attempt;
  for (const auto& [number, attempt] : attempts_) {
    if (holds(attempt.sessions, process.session)) return number;
  }
  constexpr std::size_t kEnvironmentMax = std::size_t{1} << 20;
  // Looked at on both sides of the other, between which it may have become one.
  const auto has_words = [&] { return !scan_.read_text(process.pid, "cmdline", 1).empty(); };
  const bool had_words = has_words();
  const std::string environment = scan_.read_text(process.pid, "environ", kEnvironmentMax);
  const bool lives = process.state != 'Z';
  if (environment.empty() && lives && (!had_words || !has_words())) return std::nullopt;
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

/// Signal 0 is harmless, should another process have the number by now. To be called soon after the
/// leader has ended: a number is taken again only when its group is empty.
void KeeperAttempts::forget_empty_groups(Attempt& attempt) const {
  std::erase_if(attempt.groups,
                [this](pid_t group) { return by_pid_.contains(group) || ::kill(-group, 0) != 0; });
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

/// A process that hides its owner belongs to an attempt that ran when it turned up. When only one
/// of those is left, it belongs to that one; when none is left, it is killed.
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

bool KeeperAttempts::has_leftovers(Number number, Attempt& attempt) const {
  forget_empty_groups(attempt);
  if (!attempt.groups.empty()) return true;
  if (attempt.memory_group.has_processes()) return true;
  return std::ranges::any_of(orphans_, [number](const auto& it) {
    const Orphan& orphan = it.second;
    const bool may_be = orphan.unnamed && orphan.owner == 0 && number <= orphan.owner_at_most;
    return may_be || orphan.owner == number;
  });
}

KeeperAttempts::ClearedUp KeeperAttempts::clear_up(bool looked, Clock::time_point now) {
  ClearedUp cleared;
  std::vector<Number> left;
  for (const Number number : std::exchange(clearing_, {})) {
    Attempt& attempt = attempts_.at(number);
    const bool clear = !has_leftovers(number, attempt);
    if (!attempt.told && (clear || now >= attempt.tell_at_latest)) {
      attempt.told = true;
      attempt.ended.group_peak = attempt.memory_group.peak();
      cleared.over.push_back({.ended = attempt.ended,
                              .files = std::move(attempt.files),
                              .noted = attempt.noted,
                              .seen_at = attempt.seen_at});
    } else if (!attempt.told && !std::exchange(attempt.lingers, true)) {
      cleared.lingering.push_back({.ended = attempt.ended,
                                   .files = attempt.files,
                                   .noted = attempt.noted,
                                   .seen_at = attempt.seen_at});
    }
    if (clear) {
      forget(number);
    } else {
      left.push_back(number);
    }
  }
  clearing_ = std::move(left);
  // A process whose owner is unknown may belong to no attempt now.
  find_owners();
  if (clearing_.empty() || !looked) return cleared;
  signal_trees(
      [this](const sys::ProcessStat& process) {
        const auto orphan = orphans_.find(static_cast<pid_t>(process.pid));
        return orphan != orphans_.end() && holds(clearing_, orphan->second.owner) ? 0
                                                                                  : sys::kNoTree;
      },
      SIGKILL);
  return cleared;
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
  attempts_.erase(attempt);
}

}  // namespace trainyard::process
