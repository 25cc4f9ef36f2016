#include "io/keeper_process.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>

#include "base/bytes.h"
#include "base/check.h"
#include "base/match.h"
#include "base/result.h"
#include "base/time.h"
#include "io/descriptor.h"
#include "io/keeper.h"
#include "io/keeper_message.h"
#include "model/event.h"
#include "model/ids.h"
#include "model/launch.h"

namespace trainyard::io {
namespace {

/// How long the word that a process has started may be held back, so that it travels with the word
/// that it has ended when that comes soon.
constexpr Duration kStartedHeldBack{2};
/// How long we wait for the last processes of an attempt to die of SIGKILL before we say that it
/// has ended. They can take longer: in a system call on a dead network disk, say.
constexpr Duration kClearingMax{2000};
/// How long they have after SIGKILL when the yard is gone.
constexpr Duration kGiveUpAfterKill{4000};
/// How old the count of OOM kills may be that a new attempt starts from.
constexpr Duration kOomCountAge{1000};

// What an event is about: an attempt by its number (from 1), or one of these.
constexpr std::uint64_t kSocketEvent = 0;
constexpr std::uint64_t kChildEvent = ~std::uint64_t{0};

std::uint64_t packed(AttemptKey key) {
  return (std::uint64_t{key.task.value} << 32U) | key.attempt;
}

bool watch(const Descriptor& epoll, const Descriptor& what, std::uint64_t about) {
  epoll_event event{.events = EPOLLIN, .data = {.u64 = about}};
  return ::epoll_ctl(epoll.get(), EPOLL_CTL_ADD, what.get(), &event) == 0;
}

Descriptor open_child_signals() {
  sigset_t signals{};
  ::sigemptyset(&signals);
  ::sigaddset(&signals, SIGCHLD);
  ::sigprocmask(SIG_BLOCK, &signals, nullptr);
  return Descriptor(::signalfd(-1, &signals, SFD_NONBLOCK | SFD_CLOEXEC));
}

Descriptor open_children_list() {
  return Descriptor(
      ::open(fmt::format("/proc/self/task/{}/children", ::gettid()).c_str(), O_RDONLY | O_CLOEXEC));
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

KeeperProcess::KeeperProcess(Descriptor socket, KeeperOptions options)
    : options_(options),
      socket_(std::move(socket)),
      epoll_(::epoll_create1(EPOLL_CLOEXEC)),
      child_signals_(open_child_signals()),
      children_(open_children_list()) {
  check(watch(epoll_, socket_, kSocketEvent) && watch(epoll_, child_signals_, kChildEvent),
        "descriptors for the keeper");
}

void KeeperProcess::run() {
  while (!finished()) {
    wait_for_events();
    take_messages();
    if (!stops_.empty()) carry_out_stops();
    for (const Number number : std::exchange(leaders_ended_, {})) leader_ended(number);
    const bool look = std::exchange(look_, false);
    if (look) look_for_leftovers();
    if (!clearing_.empty()) clear_up(look);
    if (yard_gone_) end_everything();
    if (flush_at_ && Clock::now() >= *flush_at_) flush();
  }
}

void KeeperProcess::wait_for_events() {
  std::array<epoll_event, 256> events{};
  int timeout = -1;
  if (more_messages_) {
    timeout = 0;
  } else if (const auto at = wake_at()) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(*at - Clock::now()).count();
    timeout = static_cast<int>(std::clamp<std::int64_t>(left, 0, 3'600'000));
  }
  const int count =
      ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), timeout);
  for (const epoll_event& event :
       std::span(events).first(static_cast<std::size_t>(std::max(count, 0)))) {
    if (event.data.u64 == kChildEvent) {
      look_ = true;
    } else if (event.data.u64 != kSocketEvent) {
      leaders_ended_.push_back(event.data.u64);
    } else {
      if ((event.events & EPOLLOUT) != 0) flush();
      if ((event.events & ~std::uint32_t{EPOLLOUT}) != 0) read_socket();
    }
  }
}

std::optional<KeeperProcess::Clock::time_point> KeeperProcess::wake_at() const {
  std::optional<Clock::time_point> at = flush_at_;
  const auto sooner = [&at](Clock::time_point other) { at = at ? std::min(*at, other) : other; };
  for (const Number number : clearing_) {
    const Attempt& attempt = attempts_.at(number);
    if (!attempt.told) sooner(attempt.tell_at_latest);
  }
  if (yard_gone_) sooner(killing_ ? give_up_at_ : kill_at_);
  return at;
}

bool KeeperProcess::finished() const {
  if (!yard_gone_) return false;
  if (killing_ && Clock::now() >= give_up_at_) return true;
  return attempts_.empty() && orphans_.empty();
}

// --- what the yard says -------------------------------------------------------------------------

void KeeperProcess::read_socket() {
  // What has come is dealt with first, so that we never hold more than one read and one message.
  if (yard_gone_ || more_messages_) return;
  std::array<char, 65536> buffer;  // NOLINT(*-member-init): written by recv, and large.
  const ssize_t got = ::recv(socket_.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
  if (got < 0 && (errno == EINTR || errno == EAGAIN)) return;
  // What came half, and then no more, was never asked for.
  if (got <= 0) return yard_has_gone();
  reader_.add({buffer.data(), static_cast<std::size_t>(got)});
  more_messages_ = true;
}

void KeeperProcess::take_messages() {
  // Not all at once: starting a thousand tasks takes half a second, and those that end meanwhile
  // should not wait to be seen.
  constexpr int kAtOnce = 16;
  for (int i = 0; i < kAtOnce && more_messages_ && !yard_gone_; ++i) {
    Result<std::optional<KeeperMessage>> message = reader_.next();
    if (!message) return yard_has_gone();
    more_messages_ = message->has_value();
    if (*message) take(std::move(**message));
  }
}

void KeeperProcess::take(KeeperMessage message) {
  match(
      std::move(message), [this](StartMessage it) { start(it.key, it.launch); },
      [this](StopMessage it) { stops_.push_back(it); }, [](const ProcessStarted&) {},
      [](const ProcessEnded&) {});
}

void KeeperProcess::start(AttemptKey key, const Launch& launch) {
  const Clock::time_point now = Clock::now();
  if (now - oom_read_at_ >= kOomCountAge) {
    oom_kills_ = oom_.kills();
    oom_read_at_ = now;
  }
  Result<Spawned> spawned = spawner_.start(launch);
  const Number number = last_number_ + 1;
  if (spawned && !watch(epoll_, spawned->pidfd, number)) {
    const int error = errno;
    ::kill(-spawned->pid, SIGKILL);
    static_cast<void>(::waitpid(spawned->pid, nullptr, 0));
    spawned = std::unexpected(system_error("cannot watch its process", error));
  }
  if (!spawned) {
    append_ended(outgoing_, {.key = key, .end = NotStarted{spawned.error().message}, .usage = {}});
    flush_at_ = now;
    return;
  }
  last_number_ = number;
  const std::vector<std::string_view> environment(launch.environment.begin(),
                                                  launch.environment.end());
  leaders_.insert_or_assign(spawned->pid, number);
  by_key_.insert_or_assign(packed(key), number);
  attempts_.try_emplace(number, Attempt{.key = key,
                                        .leader = spawned->pid,
                                        .pidfd = std::move(spawned->pidfd),
                                        .mark = mark_from(environment),
                                        .oom_kills_before = oom_kills_,
                                        .ended = {},
                                        .tell_at_latest = {},
                                        .sessions = {}});
  append_started(outgoing_, {.key = key, .pid = spawned->pid});
  if (!flush_at_) flush_at_ = now + kStartedHeldBack;
}

// --- the end of an attempt ----------------------------------------------------------------------

void KeeperProcess::leader_ended(Number number) {
  const auto found = attempts_.find(number);
  if (found == attempts_.end() || !found->second.running()) return;
  Attempt& attempt = found->second;
  // While the leader is a zombie nobody else can have its number: what is left of its group is
  // certainly its own.
  ::kill(-attempt.leader, SIGKILL);
  int status = 0;
  rusage used{};
  const pid_t reaped = ::wait4(attempt.leader, &status, WNOHANG, &used);
  if (reaped == 0) return;  // Not yet, after all: its event comes again.
  leaders_.erase(attempt.leader);
  attempt.pidfd.close();
  clearing_.push_back(number);
  attempt.ended = {.key = attempt.key,
                   .end = reaped < 0 ? End(Vanished{"somebody else has waited for it"})
                                     : how_it_ended(attempt, status),
                   .usage = usage_from(used)};
  attempt.tell_at_latest = Clock::now() + kClearingMax;
  look_ = true;
}

End KeeperProcess::how_it_ended(const Attempt& attempt, int status) const {
  constexpr int kShellSaysKilled = 128 + SIGKILL;
  const bool exited = WIFEXITED(status);
  const bool killed =
      exited ? WEXITSTATUS(status) == kShellSaysKilled : WTERMSIG(status) == SIGKILL;
  const bool out_of_memory =
      killed && !attempt.killed_by_us && oom_.kills() > attempt.oom_kills_before;
  if (out_of_memory) return KilledBy{.signal = SIGKILL, .out_of_memory = true};
  if (exited) return ExitedWith{WEXITSTATUS(status)};
  return KilledBy{.signal = WTERMSIG(status)};
}

void KeeperProcess::look_for_leftovers() {
  // Taken even if its event has not come yet, as it will be about what we see now.
  signalfd_siginfo ignored{};
  static_cast<void>(::read(child_signals_.get(), &ignored, sizeof(ignored)));
  for (const pid_t pid : list_children()) {
    if (!leaders_.contains(pid) && !orphans_.contains(pid)) adopt(pid);
  }
  if (orphans_.empty()) return;
  reap_orphans();
  find_owners();
}

std::vector<pid_t> KeeperProcess::list_children() {
  std::vector<pid_t> children;
  if (!children_.is_open()) {
    // A kernel without CONFIG_PROC_CHILDREN.
    for (const ProcessStat& process : scan_.read_all()) {
      if (process.parent == ::getpid()) children.push_back(static_cast<pid_t>(process.pid));
    }
    return children;
  }
  std::string text;
  std::array<char, 4096> chunk{};
  for (;;) {
    const ssize_t got =
        ::pread(children_.get(), chunk.data(), chunk.size(), static_cast<off_t>(text.size()));
    if (got <= 0) break;
    text.append(chunk.data(), static_cast<std::size_t>(got));
  }
  const char* at = text.data();
  const char* const end = at + text.size();
  while (at < end) {
    pid_t pid = 0;
    const auto [rest, error] = std::from_chars(at, end, pid);
    if (error == std::errc{}) children.push_back(pid);
    at = rest + 1;
  }
  return children;
}

void KeeperProcess::adopt(pid_t pid) {
  const std::optional<ProcessStat> process = scan_.read(pid);
  const Number owner = process ? owner_of(*process) : 0;
  orphans_.try_emplace(pid, Orphan{.owner = owner, .owner_at_most = last_number_});
  if (owner == 0) return;
  Attempt& attempt = attempts_.at(owner);
  if (process->session != attempt.leader && !holds(attempt.sessions, process->session)) {
    attempt.sessions.push_back(process->session);
  }
}

KeeperProcess::Number KeeperProcess::owner_of(const ProcessStat& process) const {
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

void KeeperProcess::reap_orphans() {
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
void KeeperProcess::find_owners() {
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

bool KeeperProcess::has_leftovers(Number number, const Attempt& attempt) const {
  // Signal 0 harms nobody, should the number have been given to somebody else by now.
  if (::kill(-attempt.leader, 0) == 0 && !leaders_.contains(attempt.leader)) return true;
  return std::ranges::any_of(orphans_,
                             [number](const auto& it) { return it.second.owner == number; });
}

void KeeperProcess::clear_up(bool looked) {
  const Clock::time_point now = Clock::now();
  std::vector<Number> left;
  for (const Number number : std::exchange(clearing_, {})) {
    Attempt& attempt = attempts_.at(number);
    const bool clear = !has_leftovers(number, attempt);
    if (!attempt.told && (clear || now >= attempt.tell_at_latest)) tell_end(attempt);
    if (clear) {
      forget(number);
    } else {
      left.push_back(number);
    }
  }
  clearing_ = std::move(left);
  if (clearing_.empty() || !looked) return;
  signal_trees(
      [this](const ProcessStat& process) {
        const auto orphan = orphans_.find(static_cast<pid_t>(process.pid));
        return orphan != orphans_.end() && holds(clearing_, orphan->second.owner) ? 0 : kNoTree;
      },
      SIGKILL);
}

void KeeperProcess::forget(Number number) {
  const auto attempt = attempts_.find(number);
  const auto by_key = by_key_.find(packed(attempt->second.key));
  if (by_key != by_key_.end() && by_key->second == number) by_key_.erase(by_key);
  attempts_.erase(attempt);
}

void KeeperProcess::tell_end(Attempt& attempt) {
  attempt.told = true;
  append_ended(outgoing_, attempt.ended);
  flush_at_ = Clock::now();
}

// --- stopping -----------------------------------------------------------------------------------

void KeeperProcess::signal_trees(const std::function<int(const ProcessStat&)>& own_tree,
                                 int signal) {
  const std::span<const ProcessStat> processes = scan_.read_all();
  const std::vector<int> trees = label_trees(processes, own_tree);
  for (std::size_t i = 0; i < processes.size(); ++i) {
    if (trees[i] != kNoTree) ::kill(static_cast<pid_t>(processes[i].pid), signal);
  }
}

void KeeperProcess::carry_out_stops() {
  // The groups first: most tasks are no more than that.
  std::unordered_map<Number, int> signals;
  for (const StopMessage& stop : std::exchange(stops_, {})) {
    const auto found = by_key_.find(packed(stop.key));
    if (found == by_key_.end()) continue;
    Attempt& attempt = attempts_.at(found->second);
    if (!attempt.running()) continue;
    attempt.killed_by_us = attempt.killed_by_us || stop.kill;
    const int signal = stop.kill ? SIGKILL : SIGTERM;
    ::kill(-attempt.leader, signal);
    signals[found->second] = signal;
  }
  if (signals.empty()) return;

  // Then whoever has left them: one look at all processes, however many are to be stopped.
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

void KeeperProcess::signal_everything(int signal) {
  const pid_t self = ::getpid();
  signal_trees([self](const ProcessStat& process) { return process.parent == self ? 0 : kNoTree; },
               signal);
}

void KeeperProcess::yard_has_gone() {
  yard_gone_ = true;
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, socket_.get(), nullptr);
  outgoing_.clear();
  flush_at_.reset();
  kill_at_ = Clock::now() + options_.stop_grace;
  signal_everything(SIGTERM);
  look_ = true;
}

void KeeperProcess::end_everything() {
  outgoing_.clear();
  flush_at_.reset();
  const Clock::time_point now = Clock::now();
  if (!killing_ && now >= kill_at_) {
    killing_ = true;
    give_up_at_ = now + kGiveUpAfterKill;
  }
  // Each time something ends, as it may have left something behind.
  if (killing_) signal_everything(SIGKILL);
}

// --- telling ------------------------------------------------------------------------------------

void KeeperProcess::watch_socket(bool for_writing) {
  if (std::exchange(waits_for_room_, for_writing) == for_writing) return;
  epoll_event event{.events = EPOLLIN | (for_writing ? std::uint32_t{EPOLLOUT} : 0U),
                    .data = {.u64 = kSocketEvent}};
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, socket_.get(), &event);
}

void KeeperProcess::flush() {
  flush_at_.reset();
  std::size_t sent = 0;
  while (sent < outgoing_.size()) {
    const ssize_t put = ::send(socket_.get(), outgoing_.data() + sent, outgoing_.size() - sent,
                               MSG_DONTWAIT | MSG_NOSIGNAL);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) break;  // No room, or nobody there: reading will tell.
    sent += static_cast<std::size_t>(put);
  }
  outgoing_.erase(0, sent);
  watch_socket(!outgoing_.empty());
}

}  // namespace trainyard::io
