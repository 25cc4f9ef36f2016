#include "workers/pool_processes.h"

#include <expected>
#include <iostream>
#include <utility>

#include "link/arena.h"
#include "model/launch.h"
#include "sys/token.h"
#include "wire/frame.h"
#include "workers/parcel.h"
#include "workers/pool_child.h"

namespace trainyard::workers {
namespace {

constexpr std::size_t kArenasOfPool = 48;
constexpr const char* kPoolLockName = ".pool.lock";

CallError ended_error() {
  return {.kind = CallError::Kind::ShutDown, .child = 0, .message = std::string(kPoolHasEnded)};
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
                        return PoolChild::run({.index = static_cast<int>(key.task.value),
                                               .socket = it.arguments.at(0),
                                               .token = it.arguments.at(1)},
                                              make);
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
