// The group's thread: processes, time, and what others want done there.
#include <algorithm>
#include <csignal>
#include <cstddef>
#include <expected>
#include <filesystem>
#include <iterator>
#include <span>
#include <variant>

#include <sys/eventfd.h>
#include <unistd.h>

#include <fmt/format.h>

#include "base/check.h"
#include "base/match.h"
#include "link/control_socket.h"
#include "model/launch.h"
#include "model/rank_environment.h"
#include "ranks/launch_line.h"
#include "ranks/log_end.h"
#include "ranks/rank_group_state.h"
#include "sys/files.h"
#include "sys/token.h"

namespace trainyard::ranks {
namespace {

constexpr std::size_t kStrangersMax = 1'024;

void write_to(const sys::Descriptor& wake) {
  const std::uint64_t one = 1;
  static_cast<void>(::write(wake.get(), &one, sizeof one));
}

void drain(const sys::Descriptor& wake) {
  std::uint64_t count = 0;
  static_cast<void>(::read(wake.get(), &count, sizeof count));
}

}  // namespace

RankGroup::State::State(RankGroup::Options with)
    : alive(std::move(with.alive)),
      options(std::move(with)),
      group(options.group),
      channels(static_cast<std::size_t>(options.group.ranks)),
      caller_wake(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      inbox_wake(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

RankGroup::State::~State() = default;

// --- from any thread ---

void RankGroup::State::handle(const GroupEvent& event) {
  for (const GroupCommand& command : group.on(event, sys::EventLoop::now())) {
    carry_out(command);
  }
  if (on_own_thread()) {
    if (group.phase() == Phase::Ready) unwatch_requests();
  } else if (const auto due = group.wake_at(); due && (!sleeps_until || *due < *sleeps_until)) {
    sleeps_until = due;
    wake_thread();
  }
  changed.notify_all();
}

void RankGroup::State::post(Work work) {
  inbox.push_back(std::move(work));
  wake_thread();
}

/// Without the lock: it may ask for anything.
void RankGroup::State::note(std::string what) {
  post([this, what = std::move(what)] { options.note(what); });
}

void RankGroup::State::wake_thread() const { write_to(inbox_wake); }

bool RankGroup::State::needs_own_thread(const GroupCommand& command) {
  return std::holds_alternative<StartProcesses>(command) ||
         std::holds_alternative<SendInitialise>(command) ||
         std::holds_alternative<SignalProcesses>(command) ||
         std::holds_alternative<GroupDown>(command);
}

void RankGroup::State::carry_out(const GroupCommand& command) {
  if (on_own_thread() || !needs_own_thread(command)) return carry_out_here(command);
  post([this, command] {
    const Lock lock(mutex);
    carry_out_here(command);
  });
}

void RankGroup::State::carry_out_here(const GroupCommand& command) {
  const auto channel = [this](int rank) { return channels.at(static_cast<std::size_t>(rank)); };
  match(
      command, [&](const StartProcesses&) { start_processes(); },
      [&](const SendInitialise& it) { send_initialise(it.rank); },
      // The caller has the payload, and sends it.
      [](const SendExecute&) {},
      [&](const SendStop& it) {
        if (const auto to = channel(it.rank)) {
          const Result<void> sent =
              send_word(to, wire::FrameKind::Order, request, wire::StopWord{.reason = it.reason});
          check(sent.has_value(), "a short word");
        }
      },
      [&](const SendClose& it) {
        const auto to = channel(it.rank);
        if (to == nullptr) return;
        // A close is never too long.
        [[maybe_unused]] const Result<void> sent = to->requests.send(
            {.kind = wire::FrameKind::Request, .fields = wire::to_fields(wire::CloseRequest{})});
        if (to->requests.unsent() > 0) post([this, to] { flush_requests(to); });
      },
      [&](const SignalProcesses& it) { signal_processes(it.signal); },
      [&](const ranks::Launched& it) { launched = it.verdict; },
      [&](const Executed& it) {
        executed = Answer{.verdict = it.verdict};
        write_to(caller_wake);
      },
      [&](const Restart& it) {
        executed = Answer{.verdict = it.verdict, .again = true};
        write_to(caller_wake);
      },
      [&](const EventOver& it) {
        const auto event = fired.find(it.id);
        if (event == fired.end()) return;
        event->second.over = true;
        event->second.verdict = it.verdict;
      },
      [&](const GroupDown& it) { clear_away(it.left); });
}

Result<void> RankGroup::State::start_threads() {
  Lock lock(mutex);
  if (running) return {};
  own_thread_ = std::thread([held = shared_from_this()] { held->run(); });
  changed.wait(lock, [this] { return running || broken; });
  if (running) return {};
  lock.unlock();
  own_thread_.join();
  lock.lock();
  Error why = broken.value_or(Error{});
  broken.reset();
  return std::unexpected(std::move(why));
}

void RankGroup::State::end_threads() {
  Lock lock(mutex);
  quit = true;
  wake_thread();
  changed.notify_all();
  lock.unlock();
  if (own_thread_.joinable()) own_thread_.join();
  if (!event_thread_.joinable()) return;
  // A handler may end the group; its thread then ends by itself.
  if (event_thread_.get_id() == std::this_thread::get_id()) {
    event_thread_.detach();
  } else {
    event_thread_.join();
  }
}

// --- the thread ---

void RankGroup::State::run() {
  // Signals are for the threads of the program.
  sigset_t all{};
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_BLOCK, &all, nullptr);
  if (Result<void> made = make_machinery(); !made) {
    const Lock lock(mutex);
    broken = std::move(made.error());
    machinery_.reset();
    changed.notify_all();
    return;
  }
  Lock lock(mutex);
  thread_id_ = std::this_thread::get_id();
  running = true;
  changed.notify_all();
  while (!quit) {
    const Duration now = sys::EventLoop::now();
    sleeps_until = group.wake_at();
    std::optional<Duration> timeout;
    if (sleeps_until) timeout = std::max(*sleeps_until - now, Duration{0});
    lock.unlock();
    machinery_->loop.run_once(timeout);
    lock.lock();
    if (const auto due = group.wake_at(); due && *due <= sys::EventLoop::now()) {
      handle(TimePassed{});
    }
  }
  lock.unlock();
  // There may be notes still.
  do_inbox();
  machinery_.reset();
}

Result<void> RankGroup::State::make_machinery() {
  try {
    machinery_ = std::make_unique<Machinery>();
  } catch (const sys::EventLoopError& error) {
    return std::unexpected(Error{error.what()});
  }
  if (Result<void> kept = make_keeper(); !kept) return kept;
  auto server = link::FrameServer::listen(
      machinery_->loop,
      {.program = "trainyard ranks",
       .parents = link::socket_parents(),
       .before_made =
           [this](const std::string& directory) { machinery_->keeper->remove_at_end(directory); },
       // Called with the lock or without.
       .on_trouble =
           [this](std::string_view what) {
             machinery_->loop.post([this, what = std::string(what)] { options.note(what); });
           },
       // A group connects all at once.
       .strangers_max = kStrangersMax});
  if (!server) return std::unexpected(std::move(server.error()));
  machinery_->server = std::move(*server);
  machinery_->server->open_door(
      wire::Role::Rank,
      {.takes = wire::FrameKind::Reply,
       .may_be_silent = true,
       .admit =
           [this](link::ConnectionId connection, const wire::Hello& hello) {
             const Lock lock(mutex);
             return admit(connection, hello);
           },
       // Before it has been taken over it has nothing to say.
       .on_frame = [this](link::ConnectionId connection,
                          const wire::Frame&) { machinery_->server->end(connection, "too early"); },
       .on_gone = [](link::ConnectionId) {}});
  machinery_->loop.watch_readable(inbox_wake.get(), [this] { do_inbox(); });
  return {};
}

Result<void> RankGroup::State::make_keeper() {
  auto keeper =
      process::Keeper::fork({.beside_threads = true, .stop_grace = options.group.limits.stop / 2});
  if (!keeper) return std::unexpected(std::move(keeper.error()));
  machinery_->keeper = std::make_unique<process::Keeper>(std::move(*keeper));
  machinery_->keeper->listen(machinery_->loop, [this](std::span<const process::KeeperNews> news) {
    const Lock lock(mutex);
    for (const process::KeeperNews& each : news) take_keeper_news(each);
  });
  keeper_gone = false;
  // If this keeper replaces one that has died with its guard, the server and its directory exist.
  if (machinery_->server) {
    const std::filesystem::path socket = machinery_->server->path();
    machinery_->keeper->remove_at_end(socket.parent_path());
  }
  return {};
}

void RankGroup::State::do_inbox() {
  drain(inbox_wake);
  Lock lock(mutex);
  std::deque<Work> posted = std::exchange(inbox, {});
  lock.unlock();
  for (Work& work : posted) work();
}

// --- processes ---

void RankGroup::State::start_processes() {
  ++epoch;
  request = 0;
  settled_down = false;
  if (keeper_gone) {
    if (const Result<void> made = make_keeper(); !made) {
      return handle(KeeperLost{made.error().message});
    }
  }
  const int ranks = options.group.ranks;
  auto lease = process::PortLease::take();
  if (!lease) note(lease.error().message + ": there is no MASTER_PORT");
  RankPlan plan{.ranks = ranks, .port = lease ? lease->port() : 0, .command = options.command.line};
  // Determined at each launch, as the program's file may have been replaced since the last one.
  if (plan.command.empty()) plan.command = {sys::own_program().value_or("/proc/self/exe")};
  if (lease) machinery_->lease.emplace(std::move(*lease));
  std::vector<std::string> environment = model::common_rank_environment(ranks, plan.port);
  std::ranges::copy(options.environment, std::back_inserter(environment));
  environment.push_back(fmt::format("TRAINYARD_RANK_SOCKET={}", machinery_->server->path()));
  const bool own = options.group.own_processes;
  tokens.clear();
  for (int rank = 0; rank < (own ? ranks : 1); ++rank) tokens.push_back(sys::random_token());
  if (own) {
    for (int rank = 0; rank < ranks; ++rank) {
      std::vector<std::string> of_rank = environment;
      std::ranges::move(model::rank_environment({.rank = rank, .local_rank = rank, .ranks = ranks}),
                        std::back_inserter(of_rank));
      of_rank.push_back("TRAINYARD_RANK_TOKEN=" + tokens[static_cast<std::size_t>(rank)]);
      launch_process(rank, plan.command, std::move(of_rank));
    }
    return;
  }
  auto line = launch_line(options.launcher, plan);
  check(line.has_value(), "a launcher that was looked at before");
  environment.push_back("TRAINYARD_RANK_TOKEN=" + tokens[0]);
  // They do not pass on who writes what, so each rank sees to its own output.
  environment.push_back("TRAINYARD_RANK_LOGS=" + options.directory);
  launch_process(std::nullopt, *std::move(line), std::move(environment));
}

void RankGroup::State::launch_process(std::optional<int> rank, std::vector<std::string> command,
                                      std::vector<std::string> environment) {
  const std::string log =
      rank ? log_of_rank(options.directory, *rank) : options.directory + "/launcher.log";
  const model::Launch launch{.arguments = std::move(command),
                             .environment = std::move(environment),
                             .working_directory = sys::current_directory().value_or("/"),
                             .task_directory = options.directory,
                             .stdout_path = log,
                             .stderr_path = log,
                             .preload = rank ? options.command.preload : model::Preload{}};
  machinery_->keeper->start(key_of(rank), launch);
}

model::AttemptKey RankGroup::State::key_of(std::optional<int> rank) const {
  return {.task = {static_cast<std::uint32_t>(rank.value_or(options.group.ranks))},
          .attempt = epoch};
}

void RankGroup::State::signal_processes(int signal) {
  // KILL comes when the second half of the time to stop has passed.
  const Duration grace = options.group.limits.stop / 2;
  if (!options.group.own_processes) {
    return machinery_->keeper->signal(key_of(std::nullopt), signal, grace);
  }
  for (int rank = 0; rank < options.group.ranks; ++rank) {
    machinery_->keeper->signal(key_of(rank), signal, grace);
  }
}

void RankGroup::State::take_keeper_news(const process::KeeperNews& news) {
  match(
      news, [](const process::ProcessStarted&) {}, [](const process::KeeperNote&) {},
      [](const process::KeeperHeard&) {}, [](const process::RankFailed&) {},
      [](const process::KeeperDied&) {},
      [this](const process::KeeperReplaced& it) { handle(KeeperLost{it.why}); },
      [this](const process::ProcessEnded& it) {
        if (it.key.attempt != epoch) return;
        const auto number = static_cast<int>(it.key.task.value);
        const bool of_rank = number < options.group.ranks;
        handle(ProcessEnd{.rank = of_rank ? std::optional(number) : std::nullopt, .end = it.end});
      },
      [this](const process::KeeperGone& it) {
        keeper_gone = true;
        handle(KeeperLost{it.why});
      });
}

/// Closes the connections of the last launch and forgets what belongs to it.
void RankGroup::State::clear_away(const std::string& left) {
  if (!left.empty()) note(left);
  for (std::shared_ptr<RankChannel>& each : channels) {
    const std::shared_ptr<RankChannel> channel = std::exchange(each, nullptr);
    if (channel == nullptr) continue;
    machinery_->loop.unwatch(channel->requests.descriptor());
    machinery_->loop.unwatch(channel->words.descriptor());
    // A process that still listens, out of our reach, sees that it is over.
    channel->requests.shut_down();
    channel->words.shut_down();
    options.arenas->with_pool(
        [&](link::ArenaPool& pool) { channel->requests.arenas().drop_all(pool); });
  }
  machinery_->watched_requests.clear();
  machinery_->lease.reset();
  tokens.clear();
  joining.clear();
  risen.clear();
  settled_down = true;
}

}  // namespace trainyard::ranks
