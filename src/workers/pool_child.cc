#include "workers/pool_child.h"

#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdlib>
#include <expected>
#include <iostream>
#include <optional>
#include <utility>

#include "base/check.h"
#include "base/time.h"
#include "link/arena.h"
#include "link/conversation.h"
#include "sys/descriptor.h"
#include "sys/outgoing.h"
#include "trainyard/pool_options.h"
#include "wire/hello.h"
#include "workers/parcel.h"
#include "workers/pool_backend.h"

namespace trainyard::workers {
namespace {

constexpr std::size_t kArenasOfChild = 32;
constexpr Duration kConnectsWithin{30'000};
/// How long it waits for room at once. The parent may be stopped for any time; when it is gone that
/// is seen, and there is room.
constexpr std::chrono::milliseconds kLookForRoom{500};

}  // namespace

PoolChild::PoolChild(link::FrameSocket socket)
    : socket_(std::move(socket)),
      arenas_(std::make_shared<ranks::SharedArenas>(
          link::ArenaPool::Options{.arenas_max = kArenasOfChild})),
      releases_(std::make_shared<PoolReleases>(nullptr)) {}

int PoolChild::run(const Place& place, const detail::PoolMake& make) {
  // Whatever the program does about it: here it is how a call is cut off.
  std::signal(SIGTERM, SIG_DFL);
  link::Conversation conversation({.with = "the parent of this child",
                                   .within = kConnectsWithin,
                                   .limits = wire::kControlLimits});
  Result<void> there = conversation.connect(place.socket);
  // The first calls may come together with the welcome.
  link::FrameSocket socket(there ? conversation.take_socket() : sys::Descriptor(), kPoolLimits);
  if (there) {
    there = link::greet(socket,
                        {.role = wire::Role::Worker,
                         .version = 1,
                         .program = "trainyard pool",
                         .token = place.token,
                         .rank = place.index},
                        "the parent of this child");
  }
  if (!there) {
    std::cerr << "trainyard: " << there.error().message << '\n' << std::flush;
    return EXIT_FAILURE;
  }
  PoolChild child(std::move(socket));
  return child.serve(place.index, make);
}

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

}  // namespace trainyard::workers
