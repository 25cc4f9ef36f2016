#include "process/keeper_process.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <iterator>
#include <ranges>
#include <span>
#include <utility>

#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/match.h"
#include "base/time.h"
#include "model/event.h"
#include "model/rank_environment.h"
#include "process/kept_descriptors.h"
#include "process/port_lease.h"
#include "process/start_failure.h"
#include "sys/files.h"
#include "sys/pidfd.h"

namespace trainyard::process {
namespace {

/// The delay until the first look whether a process has started: the news then travels with that of
/// an end that comes soon, and the keeper wakes once for both.
constexpr Duration kFirstLook{2};
/// The maximum of unsent bytes for a yard that does not read, before more results are read for it.
constexpr std::size_t kUnheardMax = std::size_t{4} << 20U;
/// The time between two looks at processes that are being killed.
constexpr Duration kLookAtRemains{200};
// The subject of an event: an attempt by its number (from 1), or one of these.
constexpr std::uint64_t kSocketEvent = 0;
constexpr std::uint64_t kChildEvent = ~std::uint64_t{0};
constexpr std::uint64_t kGuardEvent = ~std::uint64_t{1};
constexpr std::uint64_t kReaderEvent = ~std::uint64_t{2};
/// Beside the number of an attempt: its process is a step further on its way.
constexpr std::uint64_t kStartEvents = std::uint64_t{1} << 61U;

bool watch(const sys::Descriptor& epoll, const sys::Descriptor& what, std::uint64_t about) {
  epoll_event event{.events = EPOLLIN, .data = {.u64 = about}};
  return ::epoll_ctl(epoll.get(), EPOLL_CTL_ADD, what.get(), &event) == 0;
}

/// For what is closed as soon as it is readable. A process that is just being started has a copy of
/// every descriptor, for which epoll would tell of it over and over after that.
bool watch_once(const sys::Descriptor& epoll, const sys::Descriptor& what, std::uint64_t about) {
  epoll_event event{.events = EPOLLIN | EPOLLONESHOT, .data = {.u64 = about}};
  return ::epoll_ctl(epoll.get(), EPOLL_CTL_ADD, what.get(), &event) == 0 ||
         (errno == EEXIST && ::epoll_ctl(epoll.get(), EPOLL_CTL_MOD, what.get(), &event) == 0);
}

/// Readable when this signal has come.
sys::Descriptor watch_signal(int signal) {
  sigset_t signals{};
  ::sigemptyset(&signals);
  ::sigaddset(&signals, signal);
  ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  return sys::Descriptor(::signalfd(-1, &signals, SFD_NONBLOCK | SFD_CLOEXEC));
}

bool take_signal(const sys::Descriptor& signals) {
  signalfd_siginfo taken{};
  return ::read(signals.get(), &taken, sizeof(taken)) > 0;
}

void add(std::vector<std::string>& environment, std::vector<std::string> more) {
  environment.insert(environment.end(), std::make_move_iterator(more.begin()),
                     std::make_move_iterator(more.end()));
}

}  // namespace

KeeperProcess::KeeperProcess(sys::Descriptor socket, sys::Descriptor guard, KeeperOptions options,
                             std::vector<int> inherited, ExitBoard& board)
    : options_(std::move(options)),
      socket_(std::move(socket)),
      guard_(std::move(guard)),
      epoll_(::epoll_create1(EPOLL_CLOEXEC)),
      child_signals_(watch_signal(SIGCHLD)),
      continued_(watch_signal(SIGCONT)),
      spawner_(std::move(inherited)),
      board_(board),
      attempts_({.grace = options_.stop_grace,
                 .late_after = options_.late_after,
                 .oom_count_age = options_.oom_count_age},
                board_),
      preloads_(spawner_, preload_options()),
      reader_of_ends_(reader_options()),
      presence_(Clock::now()) {
  board_.keep_from_children();
  const bool ready = watch(epoll_, socket_, kSocketEvent) &&
                     watch(epoll_, child_signals_, kChildEvent) &&
                     watch(epoll_, continued_, kChildEvent);
  if (!ready) end_unstarted(errno);
  if (!guard_.is_open() || !watch(epoll_, guard_, kGuardEvent)) guard_has_gone();
}

Preloads::Options KeeperProcess::preload_options() {
  return {.watch = [this](const sys::Descriptor& what,
                          std::uint64_t about) { return watch(epoll_, what, about); },
          .session =
              [this](auto session, bool there) {
                if (there) attempts_.set_aside(session);
                if (!there) attempts_.give_back(session);
              },
          .idle_max = options_.preload_idle_max,
          .late_after = options_.late_after};
}

EndReader::Options KeeperProcess::reader_options() {
  return {
      .watch = [this](const sys::Descriptor& what) { return watch(epoll_, what, kReaderEvent); },
      .session = preload_options().session,
      .has_room = [this] { return outgoing_.size() < kUnheardMax; },
      .answer_max = options_.result_answer_max};
}

void KeeperProcess::run() {
  while (!finished()) {
    wait_for_events();
    // First of all, so that these get their messages now.
    take_preloaded();
    take_messages();
    carry_out_signals();
    // A keeper that is stopped after its wait has received nothing since.
    look_at_the_clock(presence_.woke());
    take_preloaded();
    see_what_has_started();
    see_what_has_ended();
    start_those_that_wait();
    if (yard_gone_) end_everything();
    if (flush_at_ && Clock::now() >= *flush_at_) flush();
  }
  // As the guard does, which may have been killed with the yard, or is killed a moment before it.
  // If the guard has gone first, the yard may live, and wait for us.
  constexpr Duration kNext{300};
  const bool may_live = !guard_.is_open();
  const Duration dying = may_live ? kNext : SocketRemains::kDying;
  remains_.remove(yard_has_left_ ? Duration{0} : dying);
}

void KeeperProcess::wait_for_events() {
  std::array<epoll_event, 256> events{};
  const Clock::time_point began = Clock::now();
  std::optional<Clock::time_point> until = wake_at();
  if (more_messages_) until = began;
  int timeout = -1;
  if (until) {
    until = std::max(*until, began);
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(*until - began).count();
    timeout = static_cast<int>(std::min<std::int64_t>(left, 3'600'000));
  }
  const int count =
      ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), timeout);
  has_woken({.over = Clock::now(),
             .until = until,
             .was_stopped = take_signal(continued_),
             .heard_all = count >= 0 && count < static_cast<int>(events.size())});
  for (const epoll_event& event :
       std::span(events).first(static_cast<std::size_t>(std::max(count, 0)))) {
    const std::uint64_t about = event.data.u64;  // A copy: the kernel's struct is packed.
    if (about == kChildEvent) {
      look_ = true;
    } else if (about == kGuardEvent) {
      guard_has_gone();
    } else if (about == kReaderEvent) {
      reader_of_ends_.about();
    } else if (about == kLeaseEvent) {
      // An agent lives on, and waits for this process to exit.
      yard_has_left_ = true;
      if (!yard_gone_) yard_has_gone();
    } else if (about != kSocketEvent && (about & Preloads::kEvents) != 0) {
      preloads_.about(about, Clock::now());
      look_ = true;
    } else if (about != kSocketEvent && (about & kStartEvents) != 0) {
      starts_.push_back(about & ~kStartEvents);
    } else if (about != kSocketEvent) {
      leaders_ended_.push_back(about);
    } else {
      if ((event.events & EPOLLOUT) != 0) flush();
      if ((event.events & ~std::uint32_t{EPOLLOUT}) != 0) read_socket();
    }
  }
}

/// Extends all deadlines by the time in which the keeper did not run: no answer could be received
/// meanwhile.
void KeeperProcess::has_woken(const KeeperPresence::Wait& wait) {
  const Clock::duration away = presence_.wakes(wait);
  if (away == Clock::duration{0}) return;
  preloads_.wait_longer(away);
  reader_of_ends_.wait_longer(away);
  attempts_.wait_longer(away);
}

std::optional<KeeperProcess::Clock::time_point> KeeperProcess::wake_at() const {
  std::optional<Clock::time_point> at = flush_at_;
  const auto sooner = [&at](Clock::time_point other) { at = at ? std::min(*at, other) : other; };
  if (const auto clear_up_at = attempts_.clear_up_at()) sooner(*clear_up_at);
  if (attempts_.has_remains()) sooner(looked_at_ + kLookAtRemains);
  if (const auto preloads_at = preloads_.wake_at()) sooner(*preloads_at);
  if (const auto reader_at = reader_of_ends_.wake_at()) sooner(*reader_at);
  if (const auto late_at = attempts_.late_at()) sooner(*late_at);
  if (const auto grace_at = attempts_.grace_ends_at()) sooner(*grace_at);
  if (const auto helpers_at = attempts_.helpers_end_at()) sooner(*helpers_at);
  if (!newborn_.empty()) sooner(newborn_.front().look_at);
  if (yard_gone_) sooner(killing_ ? give_up_at_ : kill_at_);
  return at;
}

bool KeeperProcess::finished() const {
  if (!yard_gone_) return false;
  if (killing_ && Clock::now() >= give_up_at_) return true;
  return attempts_.empty() && preloads_.empty() && reader_of_ends_.is_idle();
}

// --- what the yard says -------------------------------------------------------------------------

void KeeperProcess::read_socket() {
  // Messages are handled before more is read, so that at most one read and one message are held.
  if (yard_gone_ || more_messages_) return;
  std::array<char, 65536> buffer;  // NOLINT(*-member-init): written by recv, and large.
  const ssize_t got = ::recv(socket_.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
  if (got < 0 && (errno == EINTR || errno == EAGAIN)) return;
  // A message that came only in part was never a request.
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
    std::optional<KeeperMessage>& whole = *message;
    more_messages_ = whole.has_value();
    if (whole) take(*std::move(whole));
  }
}

void KeeperProcess::take(KeeperMessage message) {
  match(
      std::move(message),
      [this](StartMessage it) {
        carry_out_signals();  // They came before, and are not meant for this one.
        waiting_.push_back(std::move(it));
        start_those_that_wait();
      },
      [this](SignalMessage it) { signals_.push_back(it); },
      // The keeper never receives these.
      [](const ProcessStarted&) {}, [](const ProcessEnded&) {}, [](const KeeperNote&) {},
      [](const RankFailed&) {},
      [this](const Pulse&) {
        append_pulse(outgoing_);
        flush_at_ = Clock::now();
      },
      [this](const Farewell&) { yard_has_left_ = true; },
      [this](EndNotes it) {
        // A keeper that takes the place of another is where the guard is: in the directory of the
        // run, which a task may have moved since. Another run may be at its former path.
        const std::string directory = directory_of(it);
        const bool is_there =
            sys::current_directory().value_or("") != "/" || ::chdir(directory.c_str()) == 0;
        if (is_there) it.path.replace(0, directory.size(), "/proc/self/cwd");
        attempts_.note_ends(std::move(it));
      },
      [this](const WrittenMessage& it) { is_written(it.key); },
      [this](const LeaseMessage& it) { take_lease(it.until); },
      [this](RemoveMessage it) {
        // The first of them, while it certainly lives.
        if (remains_.yard() < 0) remains_.watch(sys::open_pidfd(it.yard));
        remains_.add(std::move(it.directory));
      });
}

/// A process holds one descriptor more as long as it is on its way. If many are, because the
/// machine is busy, the others wait until there is one for them.
void KeeperProcess::start_those_that_wait() {
  constexpr std::uint64_t kOwn = 40;
  while (!waiting_.empty()) {
    const std::uint64_t open = attempts_.descriptors();
    const model::Launch& launch = waiting_.front().launch;
    const auto needs = 2 * static_cast<std::uint64_t>(launch.own_ranks ? launch.ranks : 1);
    if (open > 0 && open + needs + kOwn > spawner_.files_max()) return;
    StartMessage next = std::move(waiting_.front());
    waiting_.pop_front();
    start(next.key, std::move(next.launch));
  }
}

void KeeperProcess::start(model::AttemptKey key, model::Launch launch) {
  attempts_.prepare(Clock::now());
  if (!launch.preload.modules.empty() && preloads_.take(key, launch)) return;
  if (launch.own_ranks) return start_ranks(key, std::move(launch));
  has_been_born(key, start_one(key, std::move(launch)));
}

Result<Spawned> KeeperProcess::start_one(model::AttemptKey key, model::Launch launch) {
  if (!launch.forked) return spawner_.start(std::move(launch));
  return spawner_.fork(std::move(launch),
                       [this, key](const model::Launch& kept) { return options_.body(key, kept); });
}

void KeeperProcess::start_ranks(model::AttemptKey key, model::Launch launch) {
  Result<PortLease> lease = PortLease::take();
  if (!lease) tell_note(lease.error().message + ": there is no MASTER_PORT for ranks");
  std::vector<Spawned> ranks;
  std::optional<Error> failure;
  for (model::Launch& one : launches_of(std::move(launch), lease ? lease->port() : 0)) {
    Result<Spawned> spawned = ranks.empty() || one.forked
                                  ? start_one(key, std::move(one))
                                  : spawner_.start_in(ranks.front().group, std::move(one));
    const KeeperAttempts::Number number = attempts_.next_number() + ranks.size();
    if (spawned) spawned = watched(std::move(*spawned), number);
    if (!spawned) {
      failure = std::move(spawned).error();
      break;
    }
    ranks.push_back(std::move(*spawned));
    newborn_.push_back({.number = number, .look_at = Clock::now() + kFirstLook});
  }
  if (ranks.empty()) return tell_not_started(key, std::move(failure).value_or(Error{}));
  const KeeperAttempts::Number attempt = attempts_.next_number();
  attempts_.add_ranks(key, std::move(ranks),
                      lease ? std::optional(std::move(*lease)) : std::nullopt);
  if (failure) attempts_.give_up(attempt, not_started(*std::move(failure)));
}

void KeeperProcess::take_preloaded() {
  for (std::string& note : preloads_.take_notes()) tell_note(std::move(note));
  for (Preloads::Outcome& outcome : preloads_.take_outcomes()) {
    if (!outcome.process) {
      tell_end(
          {.key = outcome.key, .end = std::move(outcome.process).error(), .usage = {}, .left = {}});
      continue;
    }
    attempts_.prepare(Clock::now());  // It begins now, however long it has waited.
    has_been_born(outcome.key, std::move(*outcome.process));
    if (outcome.signal) attempts_.signal(std::span(&*outcome.signal, 1));
  }
}

Result<Spawned> KeeperProcess::watched(Spawned spawned, KeeperAttempts::Number number) {
  if (watch_once(epoll_, spawned.pidfd, number)) return spawned;
  const int error = errno;
  ::kill(spawned.start->pid(), SIGKILL);
  static_cast<void>(::waitpid(spawned.start->pid(), nullptr, 0));
  return std::unexpected(sys::system_error("cannot watch its process", error));
}

void KeeperProcess::tell_not_started(model::AttemptKey key, Error why) {
  tell_end({.key = key, .end = not_started(std::move(why)), .usage = {}, .left = {}, .ranks = {}});
}

void KeeperProcess::has_been_born(model::AttemptKey key, Result<Spawned> spawned) {
  const KeeperAttempts::Number number = attempts_.next_number();
  if (spawned) spawned = watched(std::move(*spawned), number);
  if (!spawned) {
    preloads_.forget(key);
    return tell_not_started(key, std::move(spawned).error());
  }
  attempts_.add(key, std::move(*spawned));
  newborn_.push_back({.number = number, .look_at = Clock::now() + kFirstLook});
}

void KeeperProcess::tell_start(KeeperAttempts::Number number) {
  const std::optional<ProcessStarted> started =
      attempts_.look_at_start(number, presence_.happened_at());
  if (!started) return;
  append_started(outgoing_, *started);
  flush_at_ = Clock::now();
}

void KeeperProcess::see_what_has_started() {
  for (const KeeperAttempts::Number number : std::exchange(starts_, {})) {
    tell_start(number);
    watch_start(number);
  }
}

void KeeperProcess::watch_start(KeeperAttempts::Number number) {
  const sys::Descriptor* const status = attempts_.status_of(number);
  if (status == nullptr || watch_once(epoll_, *status, kStartEvents | number)) return;
  newborn_.push_back({.number = number, .look_at = Clock::now() + kFirstLook});
}

/// Watches the processes that are still on their way.
void KeeperProcess::look_at_the_newborn(Clock::time_point now) {
  while (!newborn_.empty() && now >= newborn_.front().look_at) {
    const KeeperAttempts::Number number = newborn_.front().number;
    newborn_.pop_front();
    tell_start(number);
    watch_start(number);
  }
}

void KeeperProcess::look_at_the_clock(Clock::time_point now) {
  preloads_.look_at_the_clock(now);
  reader_of_ends_.look_at_the_clock(now);
  for (std::string& line : attempts_.late_starts(now)) tell_note(std::move(line));
  attempts_.kill_those_over_their_grace(now);
  attempts_.end_helpers(now);
  for (std::string& line : attempts_.take_notes()) tell_note(std::move(line));
  look_at_the_newborn(now);
}

void KeeperProcess::tell_note(std::string text) {
  append_note(outgoing_, {.text = std::move(text)});
  flush_at_ = Clock::now();
}

void KeeperProcess::tell_end(const ProcessEnded& ended) {
  append_ended(outgoing_, ended);
  unsent_ends_.push_back(ended.key);
  flush_at_ = Clock::now();
}

void KeeperProcess::carry_out_signals() {
  if (signals_.empty()) return;
  std::erase_if(signals_, [this](const SignalMessage& it) {
    return signal_one_that_waits(it) || preloads_.signal(it);
  });
  attempts_.signal(std::exchange(signals_, {}));
}

/// Signals a task that has not started. It has nothing to save, so TERM and KILL remove it. False if
/// no such task waits.
bool KeeperProcess::signal_one_that_waits(const SignalMessage& message) {
  const auto found = std::ranges::find(waiting_, message.key, &StartMessage::key);
  if (found == waiting_.end()) return false;
  if (message.signal != SIGTERM && message.signal != SIGKILL) return true;
  waiting_.erase(found);
  tell_end({.key = message.key,
            .end = model::KilledBy{.signal = message.signal},
            .usage = {},
            .left = {}});
  return true;
}

// --- the end of attempts -------------------------------------------------------------------------

void KeeperProcess::see_what_has_ended() {
  const Clock::time_point now = Clock::now();
  for (const KeeperAttempts::Number number : std::exchange(leaders_ended_, {})) {
    tell_start(number);
    std::erase_if(newborn_, [number](const Newborn& it) { return it.number == number; });
    if (const auto failed =
            attempts_.leader_ended(number, {.now = now, .happened = presence_.happened_at()})) {
      append_rank_failed(outgoing_, *failed);
      flush_at_ = now;
    }
    // A traced process ends for its tracer first.
    const sys::Descriptor* const process = attempts_.process_of(number);
    if (process != nullptr) static_cast<void>(watch_once(epoll_, *process, number));
    look_ = true;
  }
  const bool again = attempts_.has_remains() && now >= looked_at_ + kLookAtRemains;
  const bool look = std::exchange(look_, false) || again;
  if (look) {
    looked_at_ = now;
    // Taken even if its event has not come yet, as it will be about what we see now.
    take_signal(child_signals_);
    attempts_.look_around();
  }
  if (!attempts_.has_to_clear_up()) return;
  KeeperAttempts::ClearedUp cleared = attempts_.clear_up(look, now);
  for (KeeperAttempts::Over& over : cleared.lingering) note_early(std::move(over));
  for (KeeperAttempts::Over& over : cleared.over) {
    preloads_.forget(over.ended.key);
    read_what_is_left(std::move(over));
  }
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
  if (outgoing_.empty()) {
    // The yard reads them also when this process is dead. But the yard may die as well, and the
    // note be unwritten then.
    for (const model::AttemptKey key : std::exchange(unsent_ends_, {})) {
      if (!unwritten_.contains(key)) board_.leave(key);
    }
  }
  watch_socket(!outgoing_.empty());
  reader_of_ends_.go_on();
}

std::vector<model::Launch> launches_of(model::Launch launch, int port) {
  std::vector<model::Launch> launches;
  const std::optional<model::OwnRanks> ranks = std::exchange(launch.own_ranks, std::nullopt);
  if (!ranks) {
    launches.push_back(std::move(launch));
    return launches;
  }
  const model::OwnRanks& own = *ranks;
  std::vector<model::GpuIndex> gpus;
  for (const int gpu : std::views::iota(0, own.gpus))
    gpus.push_back({static_cast<std::uint32_t>(gpu)});
  add(launch.environment, model::common_rank_environment(launch.ranks, port));
  for (int rank = 0; rank < launch.ranks; ++rank) {
    model::Launch& one = launches.emplace_back(launch);
    add(one.environment,
        model::rank_environment({.rank = rank, .local_rank = rank, .ranks = launch.ranks}));
    const std::string device = model::device_names(model::share_of_rank(rank, launch.ranks, gpus));
    one.environment.push_back(device.empty() ? "TRAINYARD_DEVICE" : "TRAINYARD_DEVICE=" + device);
    if (rank == 0) continue;
    one.result_path.clear();
    one.result_copy_path.clear();
    one.memory_group.clear();
    one.stdout_path = one.stderr_path = own.log_paths.at(static_cast<std::size_t>(rank) - 1);
  }
  return launches;
}

}  // namespace trainyard::process
