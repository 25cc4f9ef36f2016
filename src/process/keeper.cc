#include "process/keeper.h"

#include <array>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/check.h"
#include "base/match.h"
#include "base/result.h"
#include "base/time.h"
#include "hardware/cgroup.h"
#include "model/event.h"
#include "model/ids.h"
#include "model/launch.h"
#include "process/guard.h"
#include "process/keeper_message.h"
#include "process/keeper_process.h"
#include "process/keeper_spawn.h"
#include "process/start.h"
#include "sys/descriptor.h"
#include "sys/event_loop.h"
#include "sys/files.h"
#include "sys/passing.h"
#include "sys/pidfd.h"
#include "sys/process_scan.h"

namespace trainyard::process {
namespace {

/// What waits to be sent at most, before start() waits for the keeper to take some of it.
constexpr std::size_t kOutgoingMax = std::size_t{32} << 20;
/// For how long, before we take the keeper for dead.
constexpr Duration kPatience{30'000};
/// What the keeper may need beside the grace, to see the end of what it killed.
constexpr Duration kKeeperLast{5000};

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

/// Leaves the fresh fork nothing but its end of the socket, as descriptor 3, and standard error, or
/// all three standard descriptors.
sys::Descriptor keep_only(sys::Descriptor socket, bool keeps_streams) {
  constexpr int kSocket = STDERR_FILENO + 1;
  // Out of the way of 0 to 2, which may have been free.
  const int high = ::fcntl(socket.get(), F_DUPFD_CLOEXEC, kSocket + 1);
  const int input = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  const int output = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
  check(high >= 0 && input >= 0 && output >= 0, "descriptors for the keeper");
  const auto keep = [&](int standard) {
    // Where it was closed it may be one of the two that were just opened.
    return ::fcntl(standard, F_GETFD) >= 0 && input != standard && output != standard;
  };
  if (!keeps_streams || !keep(STDIN_FILENO)) ::dup2(input, STDIN_FILENO);
  if (!keep(STDERR_FILENO)) ::dup2(output, STDERR_FILENO);
  if (!keeps_streams || !keep(STDOUT_FILENO)) ::dup2(output, STDOUT_FILENO);
  static_cast<void>(socket.release());
  ::dup3(high, kSocket, O_CLOEXEC);
  ::close_range(kSocket + 1, ~0U, 0);
  return sys::Descriptor(kSocket);
}

void become_keeper(sys::Descriptor socket, pid_t guard, KeeperOptions options) {
  for (int signal = 1; signal <= SIGRTMAX; ++signal) ::signal(signal, SIG_DFL);
  for (const int signal : kIgnoredByKeeper) ::signal(signal, SIG_IGN);
  sigset_t none{};
  ::sigemptyset(&none);
  ::pthread_sigmask(SIG_SETMASK, &none, nullptr);
  ::setsid();
  ::prctl(PR_SET_NAME, "trainyard-keep");
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  // Stays out of directories that somebody may want to unmount.
  static_cast<void>(::chdir("/"));
  socket = keep_only(std::move(socket), options.keeps_streams);
  sys::Descriptor behind = sys::open_pidfd(guard);
  // It may have died before it was watched.
  if (::getppid() != guard) behind.close();
  KeeperProcess(std::move(socket), std::move(behind), std::move(options)).run();
}

std::string how_it_ended(const Guarded& processes, int guard_status) {
  if (WIFSIGNALED(guard_status)) {
    return fmt::format("the guard of the keeper (process {}) was killed by signal {}",
                       processes.guard, WTERMSIG(guard_status));
  }
  if (const std::optional<int> signal = signal_of_keeper(guard_status)) {
    return fmt::format("the keeper (process {}) was killed by signal {}", processes.keeper,
                       *signal);
  }
  return fmt::format("the keeper (process {}) has ended", processes.keeper);
}

}  // namespace

struct Keeper::State {
  State(sys::Descriptor its_socket, Guarded its_processes, Duration its_grace)
      : socket(std::move(its_socket)),
        processes(its_processes),
        guard_ended(sys::open_pidfd(processes.guard)),
        keeper_ended(sys::open_pidfd(processes.keeper)),
        stop_grace(its_grace) {}
  State(State&&) = delete;
  State& operator=(State&&) = delete;
  ~State();

  void plan_flush();
  void flush();
  void wait_for_room();
  void read();
  void has_answered(std::vector<KeeperNews>& news);
  [[nodiscard]] bool is_asleep() const;
  void ask_for_a_pulse();
  void look();
  void tell_own_news();
  void be_gone(std::vector<KeeperNews>& news, std::string why);
  std::optional<int> wait_for_guard(Duration most);

  sys::Descriptor socket;
  Guarded processes;
  sys::Descriptor guard_ended;
  sys::Descriptor
      keeper_ended;  ///< The keeper is no child of ours. Closed when it was gone already.
  Duration stop_grace;
  sys::ProcessScan machine;
  sys::EventLoop* loop = nullptr;
  Listener listener;
  KeeperMessageReader reader;
  std::string outgoing;
  std::vector<KeeperNews> own_news;  ///< What did not come from the keeper.
  bool flush_planned = false;
  Duration heard_at = sys::EventLoop::now();
  std::optional<Duration> asked_at;  ///< For a pulse that has not come back.
  bool silent = false;
  bool gone = false;
  bool guard_reaped = false;
  /// Shared, so that a callback that the loop still holds can see that this is no more.
  std::shared_ptr<State*> alive = std::make_shared<State*>(this);
};

Keeper::State::~State() {
  if (loop != nullptr && socket.is_open()) loop->unwatch(socket.get());
  socket.close();
  if (silent) sys::send_signal(keeper_ended, SIGKILL);
  const Duration most = 2 * stop_grace + kKeeperLast;
  if (!keeper_ended.is_open() || sys::wait_until_ended(keeper_ended, most)) {
    // The guard goes after it, with what it may have left.
    if (guard_reaped || wait_for_guard(kKeeperLast)) return;
  }
  sys::send_signal(keeper_ended, SIGKILL);
  if (guard_reaped) return;
  ::kill(processes.guard, SIGKILL);
  static_cast<void>(::waitpid(processes.guard, nullptr, 0));
}

std::optional<int> Keeper::State::wait_for_guard(Duration most) {
  if (!sys::wait_until_ended(guard_ended, most)) return std::nullopt;
  int status = 0;
  if (::waitpid(processes.guard, &status, WNOHANG) == 0) return std::nullopt;
  guard_reaped = true;
  return status;
}

void Keeper::State::plan_flush() {
  if (loop == nullptr || flush_planned || gone) return;
  flush_planned = true;
  loop->before_waiting([weak = std::weak_ptr(alive)] {
    const auto state = weak.lock();
    if (state != nullptr) (*state)->flush();
  });
}

void Keeper::State::flush() {
  flush_planned = false;
  std::size_t sent = 0;
  int error = 0;
  while (sent < outgoing.size() && error == 0) {
    const ssize_t put = ::send(socket.get(), outgoing.data() + sent, outgoing.size() - sent,
                               MSG_DONTWAIT | MSG_NOSIGNAL);
    if (put >= 0) sent += static_cast<std::size_t>(put);
    if (put < 0 && errno != EINTR) error = errno;
  }
  outgoing.erase(0, sent);
  if (error == 0) return;
  if (error != EAGAIN) {
    // Nobody is there. Reading tells how that came.
    outgoing.clear();
    return;
  }
  flush_planned = true;
  loop->when_writable(socket.get(), [this] { flush(); });
}

void Keeper::State::wait_for_room() {
  while (outgoing.size() > kOutgoingMax / 2 && !gone) {
    pollfd waiting{.fd = socket.get(), .events = POLLOUT, .revents = 0};
    if (::poll(&waiting, 1, static_cast<int>(kPatience.count())) == 0) {
      be_gone(own_news,
              fmt::format("the keeper (process {}) does not listen any more", processes.keeper));
      tell_own_news();
      return;
    }
    const ssize_t put =
        ::send(socket.get(), outgoing.data(), outgoing.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (put > 0) outgoing.erase(0, static_cast<std::size_t>(put));
    if (put < 0 && errno != EAGAIN && errno != EINTR) outgoing.clear();
  }
}

void Keeper::State::be_gone(std::vector<KeeperNews>& news, std::string why) {
  if (std::exchange(gone, true)) return;
  loop->unwatch(socket.get());
  outgoing.clear();
  news.emplace_back(KeeperGone{std::move(why)});
}

void Keeper::State::read() {
  std::vector<KeeperNews> news;
  std::array<char, 65536> buffer;  // NOLINT(*-member-init): written by recv, and large.
  const auto take = [&news](KeeperMessage message) {
    return match(
        std::move(message),
        [&](ProcessStarted it) { return news.emplace_back(std::move(it)), true; },
        [&](RankFailed it) { return news.emplace_back(std::move(it)), true; },
        [&](ProcessEnded it) { return news.emplace_back(std::move(it)), true; },
        [&](KeeperNote it) { return news.emplace_back(std::move(it)), true; },
        [](Pulse) { return true; }, [](const auto&) { return false; });
  };
  std::string broken;
  while (broken.empty()) {
    const ssize_t got = ::recv(socket.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) break;
    if (got <= 0) {
      const std::optional<int> status = wait_for_guard(Duration(1000));
      broken = status
                   ? how_it_ended(processes, *status)
                   : fmt::format("the keeper (process {}) has closed its socket", processes.keeper);
      break;
    }
    has_answered(news);
    reader.add({buffer.data(), static_cast<std::size_t>(got)});
    for (;;) {
      Result<std::optional<KeeperMessage>> message = reader.next();
      if (message) {
        std::optional<KeeperMessage>& whole = *message;
        if (!whole) break;
        if (take(*std::move(whole))) continue;
      }
      broken = fmt::format("the keeper (process {}) has sent nonsense", processes.keeper);
      break;
    }
    if (got < static_cast<ssize_t>(buffer.size())) break;
  }
  if (!broken.empty()) be_gone(news, std::move(broken));
  if (!news.empty()) listener(news);
}

/// Whatever it says: it is there.
void Keeper::State::has_answered(std::vector<KeeperNews>& news) {
  heard_at = sys::EventLoop::now();
  asked_at.reset();
  if (std::exchange(silent, false)) news.emplace_back(KeeperHeard{.silent = false});
}

/// As one that waits for something to happen is. Its end is seen by its socket.
bool Keeper::State::is_asleep() const {
  const std::optional<sys::ProcessStat> keeper = machine.read(processes.keeper);
  return !keeper || keeper->state == 'S';
}

void Keeper::State::ask_for_a_pulse() {
  if (asked_at || gone) return;
  asked_at = sys::EventLoop::now();
  append_pulse(outgoing);
  plan_flush();
}

void Keeper::State::look() {
  const Duration now = sys::EventLoop::now();
  if (gone || silent) return;
  // One that sleeps is asked now and then, for each question wakes it; one that is stopped, or held
  // by the kernel, at once.
  if (!asked_at && (now - heard_at >= kSilenceMax || !is_asleep())) ask_for_a_pulse();
  if (!asked_at || now - *asked_at < kSilenceMax) return;
  // We may have slept ourselves, and not read yet what it has said meanwhile.
  pollfd waiting{.fd = socket.get(), .events = POLLIN, .revents = 0};
  if (::poll(&waiting, 1, 0) != 0) return;
  silent = true;
  own_news.emplace_back(KeeperHeard{.silent = true});
  tell_own_news();
}

void Keeper::State::tell_own_news() {
  loop->post([weak = std::weak_ptr(alive)] {
    const auto shared = weak.lock();
    if (shared == nullptr) return;
    State& state = **shared;
    const std::vector<KeeperNews> news = std::exchange(state.own_news, {});
    if (!news.empty()) state.listener(news);
  });
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
  auto ends = sys::socket_pair();
  if (!ends) return std::unexpected(std::move(ends.error()).in("cannot start the keeper"));
  const Result<Guarded> processes =
      fork_guarded(std::move(ends->second), options.stop_grace + kKeeperLast,
                   [&options](sys::Descriptor socket, pid_t guard) {
                     become_keeper(std::move(socket), guard, std::move(options));
                   });
  if (!processes) return std::unexpected(processes.error());
  return Keeper(std::make_unique<State>(std::move(ends->first), *processes, options.stop_grace));
}

std::int64_t Keeper::pid() const { return state_->processes.keeper; }
std::int64_t Keeper::guard_pid() const { return state_->processes.guard; }

void Keeper::listen(sys::EventLoop& loop, Listener listener) {
  State* const state = state_.get();
  check(state->loop == nullptr, "one listener to a keeper");
  state->loop = &loop;
  state->listener = std::move(listener);
  loop.watch_readable(state->socket.get(), [state] { state->read(); });
  state->plan_flush();
  if (!state->own_news.empty()) state->tell_own_news();
}

void Keeper::start(model::AttemptKey key, const model::Launch& launch) {
  if (state_->gone) return;
  if (Result<void> added = append_start(state_->outgoing, key, launch); !added) {
    state_->own_news.emplace_back(ProcessEnded{
        .key = key, .end = model::NotStarted{added.error().message}, .usage = {}, .left = {}});
    if (state_->loop != nullptr) state_->tell_own_news();
    return;
  }
  state_->ask_for_a_pulse();
  state_->plan_flush();
  if (state_->loop != nullptr && state_->outgoing.size() > kOutgoingMax) state_->wait_for_room();
}

void Keeper::look() { state_->look(); }

void Keeper::kill() { sys::send_signal(state_->keeper_ended, SIGKILL); }

void Keeper::signal(model::AttemptKey key, int signal) {
  if (state_->gone) return;
  append_signal(state_->outgoing, {.key = key, .signal = signal});
  state_->ask_for_a_pulse();
  state_->plan_flush();
}

}  // namespace trainyard::process
