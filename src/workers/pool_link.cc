#include "workers/pool_link.h"

#include <span>

#include <fmt/format.h>

#include "base/check.h"

namespace trainyard::workers {
namespace {

std::size_t unshared_bytes_of(const wire::Frame& frame) {
  std::size_t bytes = wire::kPrefixBytes + frame.fields.size();
  for (const auto& each : frame.buffers) bytes += each.size();
  return bytes;
}

std::unexpected<CallError> refused_call(CallError::Kind kind, std::string why) {
  return std::unexpected(CallError{.kind = kind, .child = 0, .message = std::move(why)});
}

}  // namespace

class PoolReleases::Lease final : public detail::BufferMemory {
 public:
  Lease(std::shared_ptr<PoolReleases> releases, Release release,
        link::ArenaExchange::SharedView view)
      : releases_(std::move(releases)), release_(release), view_(std::move(view)) {}
  Lease(Lease&&) = delete;
  Lease& operator=(Lease&&) = delete;
  ~Lease() override { releases_->add(release_); }
  [[nodiscard]] std::span<const std::byte> bytes() const override { return view_.bytes; }

 private:
  std::shared_ptr<PoolReleases> releases_;
  Release release_;
  link::ArenaExchange::SharedView view_;
};

Result<std::shared_ptr<detail::BufferMemory>> PoolReleases::open(std::uint64_t connection,
                                                                 const wire::SharedBuffer& buffer,
                                                                 link::ArenaExchange& arenas) {
  auto view = arenas.view_of(buffer);
  if (!view) return std::unexpected(std::move(view.error()));
  return std::make_shared<Lease>(shared_from_this(),
                                 Release{.connection = connection, .arena = buffer.arena},
                                 *std::move(view));
}

std::vector<PoolReleases::Release> PoolReleases::take() {
  const std::scoped_lock lock(mutex_);
  return std::exchange(gathered_, {});
}

void PoolReleases::add(Release release) {
  bool first = false;
  {
    const std::scoped_lock lock(mutex_);
    first = gathered_.empty();
    gathered_.push_back(release);
  }
  if (first && on_first_) on_first_();
}

std::expected<void, CallError> PoolLink::add(const Parcel& parcel, std::shared_ptr<PoolCall> call) {
  const std::size_t bytes = unshared_bytes_of(parcel.frame);
  if (open_.size() >= options_.open_max) {
    return refused_call(CallError::Kind::Full, too_many_open(options_.open_max));
  }
  const std::size_t unsent = waiting_bytes_ + (socket_ ? socket_->unsent() : 0);
  if (unsent > 0 && unsent + bytes > kUnsentMax) {
    return refused_call(
        CallError::Kind::Full,
        fmt::format("{} bytes wait for it, and no more than {} may", unsent, kUnsentMax));
  }
  open_.emplace(++last_call_, std::move(call));
  if (is_open_) {
    wire::Frame frame = parcel.frame;
    frame.sequence = last_call_;
    send(frame);
    return {};
  }
  Waiting& last = waiting_.emplace_back(parcel, bytes);
  last.parcel.frame.sequence = last_call_;
  waiting_bytes_ += bytes;
  return {};
}

std::vector<std::shared_ptr<PoolCall>> PoolLink::take_open() {
  std::vector<std::shared_ptr<PoolCall>> calls;
  for (auto& [number, call] : std::exchange(open_, {})) calls.push_back(std::move(call));
  waiting_.clear();
  waiting_bytes_ = 0;
  return calls;
}

void PoolLink::connect(sys::Descriptor socket, std::uint64_t number) {
  socket_ = std::make_unique<link::FrameSocket>(std::move(socket), kPoolLimits);
  number_ = number;
}

void PoolLink::open() {
  is_open_ = true;
  for (const Waiting& each : std::exchange(waiting_, {})) send(each.parcel.frame);
  waiting_bytes_ = 0;
}

void PoolLink::close() {
  is_open_ = false;
  if (!socket_) return;
  options_.arenas->with_pool([this](link::ArenaPool& pool) { socket_->arenas().drop_all(pool); });
  socket_.reset();
}

void PoolLink::shut_down() const {
  if (socket_) socket_->shut_down();
}

void PoolLink::send(const wire::Frame& frame) {
  options_.arenas->with_pool([&](link::ArenaPool& pool) {
    // within_limit() has seen to the JSON, and pack() to the buffers.
    check(socket_->send(frame, &pool).has_value(), "a call within the limits");
  });
}

void PoolLink::write_some() {
  if (socket_) socket_->write_some();
}

void PoolLink::release(const PoolReleases::Release& release) {
  if (!socket_ || release.connection != number_) return;
  send({.kind = wire::FrameKind::Release, .topic = release.arena});
}

Result<bool> PoolLink::read() {
  const bool goes_on = socket_->read_some().has_value();
  while (true) {
    auto next = socket_->next();
    if (!next) return std::unexpected(std::move(next.error()));
    std::optional<wire::Frame>& frame = *next;
    if (!frame) return goes_on;
    if (Result<void> taken = take(*std::move(frame)); !taken) {
      return std::unexpected(std::move(taken.error()));
    }
  }
}

Result<void> PoolLink::take(wire::Frame frame) {
  if (frame.kind == wire::FrameKind::Release) {
    return options_.arenas->with_pool(
        [&](link::ArenaPool& pool) { return socket_->arenas().released(frame.topic, pool); });
  }
  if (frame.kind != wire::FrameKind::Reply) {
    return std::unexpected(Error{"it said something that is no answer"});
  }
  return take_reply(std::move(frame));
}

Result<void> PoolLink::take_reply(wire::Frame frame) {
  const std::uint64_t sequence = frame.sequence;
  std::optional<CallError> failure;
  if (is_failure(frame)) failure = read_failure_reply(frame);
  if (sequence == kMadeSequence) {
    if (failure) {
      made_ = std::unexpected(*std::move(failure));
    } else {
      made_.emplace();
    }
    return {};
  }
  Settled settled;
  const auto call = open_.find(sequence);
  if (call != open_.end()) settled.call = std::move(call->second);
  if (call != open_.end()) open_.erase(call);
  if (failure) {
    settled.answer = std::unexpected(*std::move(failure));
  } else {
    // The answer to a call that nobody waits for is unpacked, too, so that its memory is released.
    auto payload = unpack(std::move(frame), [this](const wire::SharedBuffer& buffer) {
      return options_.releases->open(number_, buffer, socket_->arenas());
    });
    if (payload) {
      settled.answer = *std::move(payload);
    } else {
      settled.answer = refused_call(CallError::Kind::NotCarried, payload.error().message);
    }
  }
  settled_.push_back(std::move(settled));
  return {};
}

}  // namespace trainyard::workers
