#include "workers/pool_processes.h"

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <expected>
#include <iostream>
#include <utility>

#include "base/check.h"
#include "link/arena.h"
#include "link/conversation.h"
#include "link/frame_socket.h"
#include "model/launch.h"
#include "sys/descriptor.h"
#include "sys/outgoing.h"
#include "sys/token.h"
#include "wire/frame.h"
#include "workers/parcel.h"

namespace trainyard::workers {
namespace {

constexpr std::size_t kArenasOfPool = 48;
constexpr const char* kPoolLockName = ".pool.lock";
constexpr std::size_t kArenasOfChild = 32;
constexpr Duration kConnectsWithin{30'000};
/// How long it waits for room at once. The parent may be stopped for any time; when it is gone that
/// is seen, and there is room.
constexpr std::chrono::milliseconds kLookForRoom{500};

CallError ended_error() {
  return {.kind = CallError::Kind::ShutDown, .child = 0, .message = std::string(kPoolHasEnded)};
}

/// A child of a pool: makes the object, and has it do what the parent asks for, one call at a time.
/// The one thread of a fresh fork.
class PoolChild {
 public:
  explicit PoolChild(link::FrameSocket socket)
      : socket_(std::move(socket)),
        arenas_(std::make_shared<ranks::SharedArenas>(
            link::ArenaPool::Options{.arenas_max = kArenasOfChild})),
        releases_(std::make_shared<PoolReleases>(nullptr)) {}

  /// Until the connection ends. The exit code of the process.
  int serve(int index, const detail::PoolMake& make);

 private:
  void answer(detail::PoolObject& object, wire::Frame frame);
  [[nodiscard]] detail::PoolAnswer call(detail::PoolObject& object, wire::Frame frame);
  void reply(std::uint64_t sequence, detail::PoolAnswer answer);
  void send(const wire::Frame& frame);
  void pass_on_released();

  link::FrameSocket socket_;
  std::shared_ptr<ranks::SharedArenas> arenas_;
  std::shared_ptr<PoolReleases> releases_;
};

int PoolChild::serve(int index, const detail::PoolMake& make) {
  std::unique_ptr<detail::PoolObject> object;
  try {
    object = make(index);
  } catch (...) {
    send(failure_reply(kMadeSequence,
                       detail::error_of_current_exception(CallError::Kind::NotMade, {})));
    return EXIT_FAILURE;
  }
  send({.kind = wire::FrameKind::Reply, .sequence = kMadeSequence});
  while (true) {
    pass_on_released();
    auto frame = socket_.wait_for_frame();
    // The parent lets it go, or is gone.
    if (!frame) return EXIT_SUCCESS;
    if (frame->kind == wire::FrameKind::Request) {
      answer(*object, *std::move(frame));
    } else if (frame->kind == wire::FrameKind::Release) {
      arenas_->with_pool([&](link::ArenaPool& pool) {
        // One that we did not send is nothing to us.
        static_cast<void>(socket_.arenas().released(frame->topic, pool));
      });
    }
  }
}

void PoolChild::answer(detail::PoolObject& object, wire::Frame frame) {
  const std::uint64_t sequence = frame.sequence;
  reply(sequence, call(object, std::move(frame)));
}

detail::PoolAnswer PoolChild::call(detail::PoolObject& object, wire::Frame frame) {
  const auto method = static_cast<std::size_t>(frame.topic);
  auto arguments = unpack(std::move(frame), [this](const wire::SharedBuffer& buffer) {
    return releases_->open(0, buffer, socket_.arenas());
  });
  if (arguments) return object.call(method, *std::move(arguments));
  return std::unexpected(CallError{
      .kind = CallError::Kind::NotCarried, .child = 0, .message = arguments.error().message});
}

void PoolChild::reply(std::uint64_t sequence, detail::PoolAnswer answer) {
  answer = within_limit(std::move(answer), "its result");
  if (!answer) return send(failure_reply(sequence, answer.error()));
  Result<Parcel> parcel = pack(*std::move(answer), *arenas_);
  if (!parcel) {
    return send(failure_reply(sequence,
                              {.kind = CallError::Kind::NotCarried,
                               .child = 0,
                               .message = "its result cannot be sent: " + parcel.error().message}));
  }
  parcel->frame.kind = wire::FrameKind::Reply;
  parcel->frame.sequence = sequence;
  send(parcel->frame);
}

void PoolChild::send(const wire::Frame& frame) {
  arenas_->with_pool([&](link::ArenaPool& pool) {
    check(socket_.send(frame, &pool).has_value(), "an answer within the limits");
  });
  while (!socket_.write_some()) sys::wait_until_writable(socket_.descriptor(), kLookForRoom);
}

void PoolChild::pass_on_released() {
  for (const PoolReleases::Release& each : releases_->take()) {
    send({.kind = wire::FrameKind::Release, .topic = each.arena});
  }
}

/// From the hello to the end of the connection. The exit code of the process; what it cannot tell
/// its parent it prints.
int run_child(int index, const std::string& socket_path, const std::string& token,
              const detail::PoolMake& make) {
  // Whatever the program does about it: here it is how a call is cut off.
  std::signal(SIGTERM, SIG_DFL);
  link::Conversation conversation({.with = "the parent of this child",
                                   .within = kConnectsWithin,
                                   .limits = wire::kControlLimits});
  Result<void> there = conversation.connect(socket_path);
  // The first calls may come together with the welcome.
  link::FrameSocket socket(there ? conversation.take_socket() : sys::Descriptor(), kPoolLimits);
  if (there) {
    there = link::greet(socket,
                        {.role = wire::Role::Worker,
                         .version = 1,
                         .program = "trainyard pool",
                         .token = token,
                         .rank = index},
                        "the parent of this child");
  }
  if (!there) {
    std::cerr << "trainyard: " << there.error().message << '\n' << std::flush;
    return EXIT_FAILURE;
  }
  return PoolChild(std::move(socket)).serve(index, make);
}

}  // namespace

// --- from any thread ---

Result<std::unique_ptr<PoolBackend>> PoolProcesses::start(const PoolOptions& options,
                                                          detail::PoolMake make) {
  Result<sys::Waker> waker = sys::Waker::make();
  if (!waker) return std::unexpected(std::move(waker.error()));
  auto pool = std::make_unique<PoolProcesses>(options, *std::move(waker));
  if (Result<void> ready = pool->prepare(std::move(make)); !ready) {
    return std::unexpected(std::move(ready.error()));
  }
  return pool;
}

PoolProcesses::PoolProcesses(const PoolOptions& options, sys::Waker waker)
    : options_(options),
      waker_(std::make_shared<sys::Waker>(std::move(waker))),
      arenas_(std::make_shared<ranks::SharedArenas>(
          link::ArenaPool::Options{.arenas_max = kArenasOfPool})),
      // They may outlive the pool, as buffers do.
      releases_(std::make_shared<PoolReleases>([wakes = waker_] { wakes->wake(); })) {
  for (int index = 0; index < options.count; ++index) {
    Child& child = *children_.emplace_back(std::make_unique<Child>());
    child.index = index;
    child.link = std::make_unique<PoolLink>(
        PoolLink::Options{.open_max = options.open_max, .arenas = arenas_, .releases = releases_});
  }
}

PoolProcesses::~PoolProcesses() {
  shutdown(Duration(options_.stop_grace.count()));
  server_.reset();
  home_.reset();
}

Result<void> PoolProcesses::prepare(detail::PoolMake make) {
  std::string directory;
  if (!options_.directory.empty()) {
    auto made = ChildHome::make_directory(options_.directory);
    if (!made) return std::unexpected(std::move(made.error()));
    directory = *std::move(made);
    auto lock = sys::RunLock::take(directory, kPoolLockName);
    if (!lock) {
      return std::unexpected(
          Error{lock.error().message + ": each pool needs a directory of its own for its logs"});
    }
    lock_ = *std::move(lock);
  }
  auto home =
      ChildHome::make({.directory = directory,
                       .lock = lock_ ? lock_->descriptor() : -1,
                       .name_prefix = "trainyard-pool-",
                       .stop_grace = Duration(options_.stop_grace.count()),
                       .children = static_cast<std::size_t>(options_.count)},
                      [make = std::move(make)](model::AttemptKey key, const model::Launch& it) {
                        // Not in the environment: what the object starts need not know them.
                        return run_child(static_cast<int>(key.task.value), it.arguments.at(0),
                                         it.arguments.at(1), make);
                      });
  if (!home) return std::unexpected(std::move(home.error()));
  home_ = *std::move(home);
  if (Result<void> listens = listen(); !listens) return listens;
  for (const auto& child : children_) start_child(*child);
  thread_ = std::thread([this] { run(); });
  return {};
}

Result<void> PoolProcesses::listen() {
  auto server = home_->listen(loop_, "trainyard pool",
                              [this](std::string_view what) { note(std::string(what)); });
  if (!server) return std::unexpected(std::move(server.error()));
  server_ = std::move(*server);
  server_->open_door(
      wire::Role::Worker,
      {.takes = wire::FrameKind::Reply,
       .may_be_silent = true,
       .admit =
           [this](link::ConnectionId connection, const wire::Hello& hello) {
             const Lock lock(mutex_);
             return admit(connection, hello);
           },
       .on_welcome =
           [this](link::ConnectionId connection) { with_lock([&] { welcomed(connection); }); },
       // It has been taken over before it could say anything.
       .on_frame = [this](link::ConnectionId connection,
                          const wire::Frame&) { server_->end(connection, "too early"); },
       .on_gone = [](link::ConnectionId) {}});
  home_->keeper().listen(loop_, [this](std::span<const process::KeeperNews> news) {
    with_lock([&] {
      for (const process::KeeperNews& each : news) take_news(each);
    });
  });
  loop_.watch_readable(waker_->descriptor(), [this] {
    waker_->drain();
    with_lock([this] { look_around(); });
  });
  return {};
}

void PoolProcesses::with_lock(const std::function<void()>& work) {
  Lock lock(mutex_);
  work();
  std::vector<PoolLink::Settled> settled = std::exchange(settled_, {});
  const std::vector<std::string> notes = std::exchange(notes_, {});
  const std::string prints = std::exchange(prints_, {});
  lock.unlock();
  if (!prints.empty()) std::cerr << prints << std::flush;
  for (const std::string& each : notes) note(each);
  for (PoolLink::Settled& each : settled) {
    if (each.call) each.call->settle(std::move(each.answer));
  }
}

void PoolProcesses::fail_open(Child& child, const CallError& error) {
  for (auto& call : child.link->take_open()) {
    settled_.push_back({.call = std::move(call), .answer = std::unexpected(error)});
  }
}

void PoolProcesses::send(std::size_t method, detail::RemotePayload arguments,
                         std::span<const std::shared_ptr<PoolCall>> calls) {
  auto parcel = pack(std::move(arguments), *arenas_);
  if (!parcel) {
    for (const auto& call : calls) {
      call->fail(CallError::Kind::NotCarried,
                 "its arguments cannot be sent: " + parcel.error().message);
    }
    return;
  }
  parcel->frame.kind = wire::FrameKind::Request;
  parcel->frame.topic = method;
  bool unsent = false;
  with_lock([&] {
    for (const auto& call : calls) {
      Child& child = *children_.at(static_cast<std::size_t>(call->child()));
      if (shut_down_) {
        settled_.push_back({.call = call, .answer = std::unexpected(ended_error())});
        continue;
      }
      if (child.state == State::Down) {
        settled_.push_back({.call = call, .answer = std::unexpected(child.down)});
        continue;
      }
      if (auto added = child.link->add(*parcel, call); !added) {
        settled_.push_back({.call = call, .answer = std::unexpected(std::move(added.error()))});
      }
      unsent = unsent || child.link->has_unsent();
    }
  });
  if (unsent) waker_->wake();
}

bool PoolProcesses::restart(int index) {
  bool goes_on = true;
  with_lock([&] {
    goes_on = !shut_down_.has_value();
    if (!goes_on) return;
    Child& child = *children_.at(static_cast<std::size_t>(index));
    child.busy = child.busy || child.link->has_open_calls() || child.state == State::Starting;
    fail_open(child, {.kind = CallError::Kind::Restarted,
                      .child = index,
                      .message = std::string(kPoolHasRestarted)});
    // From now on calls wait until the process that replaces this one is ready.
    child.link->hold();
    child.state = State::Ending;
    child.again = true;
    child.to_end = true;
  });
  waker_->wake();
  return goes_on;
}

void PoolProcesses::shutdown(Duration grace) {
  with_lock([&] {
    if (shut_down_) return;
    shut_down_ = grace;
    for (const auto& child : children_) {
      child->busy = child->link->has_open_calls() || child->state != State::Up;
      fail_open(*child, ended_error());
    }
  });
  waker_->wake();
  const std::scoped_lock joins(joining_);
  if (thread_.joinable()) thread_.join();
}

}  // namespace trainyard::workers
