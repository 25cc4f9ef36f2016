#include "process/keeper.h"

#include <cerrno>
#include <csignal>
#include <cstddef>
#include <expected>
#include <utility>

#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/check.h"
#include "hardware/cgroup.h"
#include "process/guard.h"
#include "process/guard_line.h"
#include "process/guard_words.h"
#include "process/keeper_message.h"
#include "process/keeper_process.h"
#include "process/keeper_state.h"
#include "process/kept_descriptors.h"
#include "process/start.h"
#include "sys/descriptor.h"
#include "sys/files.h"
#include "sys/fork.h"
#include "sys/pidfd.h"
#include "sys/process_scan.h"
#include "sys/this_process.h"

namespace trainyard::process {
namespace {

/// The time that the keeper may need in addition to the grace, to see the end of the processes that
/// it killed.
constexpr Duration kKeeperLast{5000};

/// Number of ended children that are not reaped, beyond which a yard adopts no more orphans.
constexpr std::size_t kUnreapedMax = 16;

/// Number of descriptors that a yard needs, which has a journal, sockets and an event loop, with some
/// to spare: without them it would fail at any of its steps.
constexpr std::uint64_t kOpenFilesMin = 32;

#if defined(__SANITIZE_THREAD__)
constexpr std::size_t kOwnThreads = 2;  // The sanitizer has one of its own.
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
constexpr std::size_t kOwnThreads = 2;
#else
constexpr std::size_t kOwnThreads = 1;
#endif
#else
constexpr std::size_t kOwnThreads = 1;
#endif

Result<void> check_that_there_is_one_thread() {
  std::vector<std::string> others;
  for (const std::string& thread : sys::names_in("/proc/self/task")) {
    if (thread == std::to_string(::getpid())) continue;
    std::string name = hardware::read_small_file(fmt::format("/proc/self/task/{}/comm", thread));
    if (name.ends_with('\n')) name.pop_back();
    others.push_back(fmt::format("'{}'", name));
  }
  if (others.size() < kOwnThreads) return {};
  return std::unexpected(
      Error{fmt::format("cannot fork the keeper beside other threads ({}); start them after it",
                        fmt::join(others, ", "))});
}

void become_keeper(sys::Descriptor socket, pid_t guard, ExitBoard& board, KeeperOptions options,
                   const std::optional<std::vector<int>>& inherited) {
  sys::make_signals_default();
  for (const int signal : kIgnoredByKeeper) ::signal(signal, SIG_IGN);
  ::setsid();
  ::prctl(PR_SET_NAME, kKeeperName);
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  // The guard has what is held at that place.
  const int held = options.held < 0 || inherited ? options.held : kHeldPlace;
  socket = keep_only(std::move(socket),
                     {.streams = options.keeps_streams, .held = held, .inherited = inherited});
  sys::Descriptor behind = sys::open_pidfd(guard);
  // The guard may have died before it was watched.
  if (::getppid() != guard) behind.close();
  KeeperProcess(std::move(socket), std::move(behind), std::move(options),
                inherited.value_or(std::vector<int>()), board)
      .run();
}

}  // namespace

Keeper::State::State(GuardLine::Made made, const KeeperOptions& options)
    : guard(std::move(made.line)),
      socket(std::move(made.first.socket)),
      keeper(made.first.keeper.value_or(0)),
      ended(sys::open_pidfd(keeper)),
      stop_grace(options.stop_grace) {
  if (options.adopts_orphans) children.emplace();
}

Keeper::State::~State() {
  if (loop != nullptr && socket.is_open()) loop->unwatch(socket.get());
  if (loop != nullptr && !gone) {
    loop->unwatch(guard.words().get());
    loop->unwatch(ended.get());
  }
  // In this order: a keeper that ends because its yard is gone is not replaced.
  guard.let_go();
  if (socket.is_open()) {
    append_farewell(outgoing);
    flush_now();
  }
  socket.close();
  if (silent) sys::send_signal(ended, SIGKILL);
  const Duration most = 2 * stop_grace + kKeeperLast;
  if (!ended.is_open() || sys::wait_until_ended(ended, most)) {
    // The guard goes after it, with what it may have left.
    if (guard.wait_until_ended(kKeeperLast)) return;
  }
  sys::send_signal(ended, SIGKILL);
  guard.send_signal(SIGKILL);
  static_cast<void>(guard.wait_until_ended(kKeeperLast));
}

/// At once where that can be: who is to know it when we are killed should not hear of it in the
/// next turn.
void Keeper::State::tell_every_keeper(const std::string& message) {
  for_every_keeper += message;
  if (dead || gone) return;
  outgoing += message;
  flush_now();
}

void Keeper::State::plan_flush() {
  if (loop == nullptr || flush_planned || gone || dead) return;
  flush_planned = true;
  loop->before_waiting([weak = std::weak_ptr(alive)] {
    const auto state = weak.lock();
    if (state != nullptr) (*state)->flush();
  });
}

void Keeper::State::flush() {
  flush_planned = false;
  if (dead || gone || flush_now()) return;
  flush_planned = true;
  loop->when_writable(socket.get(), [this] { flush(); });
}

/// False: there is no room for the rest.
bool Keeper::State::flush_now() {
  std::size_t sent = 0;
  int error = 0;
  while (sent < outgoing.size() && error == 0) {
    const ssize_t put = ::send(socket.get(), outgoing.data() + sent, outgoing.size() - sent,
                               MSG_DONTWAIT | MSG_NOSIGNAL);
    if (put >= 0) sent += static_cast<std::size_t>(put);
    if (put < 0 && errno != EINTR) error = errno;
  }
  outgoing.erase(0, sent);
  // If the other end is closed, reading tells the reason.
  if (error != 0 && error != EAGAIN) outgoing.clear();
  return error != EAGAIN;
}

/// A keeper that takes nothing for this long is silent, and gets no more requests then. Those of
/// the turn that found that out are kept.
void Keeper::State::wait_for_room() {
  while (outgoing.size() > kOutgoingMax / 2 && !gone && !dead && !silent) {
    pollfd waiting{.fd = socket.get(), .events = POLLOUT, .revents = 0};
    if (::poll(&waiting, 1, static_cast<int>(silence_max.count())) == 0) return falls_silent();
    const ssize_t put =
        ::send(socket.get(), outgoing.data(), outgoing.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (put > 0) outgoing.erase(0, static_cast<std::size_t>(put));
    if (put < 0 && errno != EAGAIN && errno != EINTR) outgoing.clear();
  }
}

/// As a process that waits for an event is. Its end shows at its socket.
bool Keeper::State::is_asleep() const {
  const std::optional<sys::ProcessStat> stat = machine.read(keeper);
  return !stat || stat->state == 'S';
}

void Keeper::State::ask_for_a_pulse() {
  if (asked_at || gone || dead) return;
  asked_at = sys::EventLoop::now();
  looks_in_vain = 0;
  append_pulse(outgoing);
  plan_flush();
}

/// A child that this process has forked is in its session, or leads another one, and is waited for
/// elsewhere. Every other child was adopted. An orphan that leads a session, a daemon, cannot be told
/// from a child that does.
void Keeper::State::reap_adopted_children() {
  const pid_t session = ::getsid(0);
  std::size_t unreaped = 0;
  for (const pid_t child : children->read()) {
    const std::optional<sys::ProcessStat> stat = machine.read(child);
    if (!stat || stat->state != 'Z') continue;
    const bool may_be_own = stat->session == session || stat->session == child;
    if (may_be_own || ::waitpid(child, nullptr, WNOHANG) != child) ++unreaped;
  }
  if (unreaped > kUnreapedMax) ::prctl(PR_SET_CHILD_SUBREAPER, 0);
}

void Keeper::State::look() {
  if (children) reap_adopted_children();
  const Duration now = sys::EventLoop::now();
  if (gone || dead || silent) return;
  // A sleeping keeper is asked now and then, as each question wakes it; one that is stopped, or
  // held by the kernel, at once.
  if (!asked_at && (now - heard_at >= silence_max || !is_asleep())) return ask_for_a_pulse();
  // We may have slept ourselves, and the whole machine with us.
  constexpr int kLooks = 2;
  if (!asked_at || ++looks_in_vain < kLooks || now - *asked_at < silence_max) return;
  // It may have answered meanwhile, and the answer is not read yet.
  pollfd waiting{.fd = socket.get(), .events = POLLIN, .revents = 0};
  if (::poll(&waiting, 1, 0) == 0) falls_silent();
}

void Keeper::State::falls_silent() {
  silent = true;
  guard.tell(ToGuard::Kind::Silent);
  own_news.emplace_back(KeeperHeard{.silent = true});
  tell_own_news();
}

Keeper::Keeper(std::unique_ptr<State> state) : state_(std::move(state)) {}
Keeper::Keeper(Keeper&&) noexcept = default;
Keeper& Keeper::operator=(Keeper&&) noexcept = default;
Keeper::~Keeper() = default;

Result<Keeper> Keeper::fork(KeeperOptions options) {
  if (!options.beside_threads) {
    Result<void> single = check_that_there_is_one_thread();
    if (!single) return std::unexpected(std::move(single).error());
  }
  if (Result<void> allowed = sys::allow_open_files(kOpenFilesMin); !allowed) {
    return std::unexpected(std::move(allowed.error()));
  }
  std::optional<std::vector<int>> inherited;
  if (options.body) inherited = sys::descriptors_of_program();
  Result<GuardLine::Made> made = GuardLine::make(
      {.patience = options.stop_grace + 2 * kKeeperLast,
       .keeps_streams = options.keeps_streams,
       .held = options.held,
       .inherited = inherited,
       .adopts = options.adopts_orphans,
       .replacements_max = options.replacements_max,
       .look_every = options.guard_looks_every},
      // The guard has the options as they are now, for each keeper that it forks.
      [&options, &inherited](sys::Descriptor socket, pid_t guard, ExitBoard& board) {
        become_keeper(std::move(socket), guard, board, options, inherited);
      });
  if (!made) return std::unexpected(std::move(made.error()));
  return Keeper(std::make_unique<State>(std::move(*made), options));
}

std::int64_t Keeper::pid() const { return state_->keeper; }
std::int64_t Keeper::guard_pid() const { return state_->guard.pid(); }
Duration Keeper::silence_max() const { return state_->silence_max; }
void Keeper::set_silence_max(Duration silence_max) { state_->silence_max = silence_max; }

void Keeper::listen(sys::EventLoop& loop, Listener listener) {
  State* const state = state_.get();
  check(state->loop == nullptr, "one listener to a keeper");
  state->loop = &loop;
  state->listener = std::move(listener);
  state->watch();
  loop.watch_readable(state->guard.words().get(), [state] { state->hear_guard(); });
  state->plan_flush();
  if (!state->own_news.empty()) state->tell_own_news();
}

void Keeper::start(model::AttemptKey key, const model::Launch& launch) {
  if (state_->gone) return;
  if (Result<void> added = append_start(state_->outgoing, key, launch); !added) {
    state_->own_news.emplace_back(
        ProcessEnded{.key = key,
                     .end = model::NotStarted{.why = added.error().message},
                     .usage = {},
                     .left = {}});
    if (state_->loop != nullptr) state_->tell_own_news();
    return;
  }
  state_->ask_for_a_pulse();
  state_->plan_flush();
  if (state_->loop != nullptr && state_->outgoing.size() > State::kOutgoingMax) {
    state_->wait_for_room();
  }
}

void Keeper::remove_at_end(const std::string& directory) {
  if (state_->gone) return;
  state_->guard.remove_at_end(directory);
  std::string message;
  append_remove(message, {.yard = ::getpid(), .directory = directory});
  state_->tell_every_keeper(message);
}

void Keeper::note_ends(const EndNotes& notes) {
  state_->guard.enter(directory_of(notes));
  std::string message;
  append_notes(message, notes);
  state_->tell_every_keeper(message);
}

void Keeper::is_written(model::AttemptKey key) {
  if (state_->gone) return;
  append_written(state_->outgoing, {.key = key});
  state_->plan_flush();
}

void Keeper::let_run_until(Duration moment) {
  if (state_->gone) return;
  state_->lease.clear();
  append_lease(state_->lease, {.until = moment});
  if (state_->dead) return;
  state_->outgoing += state_->lease;
  state_->plan_flush();
}

void Keeper::look() { state_->look(); }

void Keeper::kill() {
  state_->guard.tell(ToGuard::Kind::NoMore);
  sys::send_signal(state_->ended, SIGKILL);
}

void Keeper::signal(model::AttemptKey key, int signal, Duration grace) {
  if (state_->gone) return;
  append_signal(state_->outgoing, {.key = key, .signal = signal, .grace = grace});
  state_->ask_for_a_pulse();
  state_->plan_flush();
}

}  // namespace trainyard::process
