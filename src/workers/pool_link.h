// The parent's end of its connection to one child of a pool, and the calls that the child has not
// answered: those that wait until it is up, and those that it has been sent.
//
// Knows no processes (workers/pool_processes.h does). One thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <expected>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "link/arena.h"
#include "link/frame_socket.h"
#include "ranks/shared_arenas.h"
#include "sys/descriptor.h"
#include "trainyard/buffer.h"
#include "trainyard/detail/pool_core.h"
#include "trainyard/pool_options.h"
#include "wire/control.h"
#include "wire/field_reader.h"
#include "wire/frame.h"
#include "workers/parcel.h"
#include "workers/pool_backend.h"

namespace trainyard::workers {

/// Pieces of memory of the other side that are not read here any more, until they are released.
///
/// The last copy of a buffer is destroyed on any thread, with any lock held; one thread takes the
/// collected pieces and releases them.
class PoolReleases : public std::enable_shared_from_this<PoolReleases> {
 public:
  /// An arena by its connection and its number there.
  struct Release {
    std::uint64_t connection = 0;
    std::uint64_t arena = 0;
  };

  /// `on_first` is called when there is something to take. It may be missing.
  explicit PoolReleases(std::function<void()> on_first) : on_first_(std::move(on_first)) {}

  /// The memory of a shared buffer that came over a connection; its arena is released when nobody
  /// has it any more.
  Result<std::shared_ptr<detail::BufferMemory>> open(std::uint64_t connection,
                                                     const wire::SharedBuffer& buffer,
                                                     link::ArenaExchange& arenas);
  std::vector<Release> take();

 private:
  class Lease;
  void add(Release release);

  const std::function<void()> on_first_;
  std::mutex mutex_;
  std::vector<Release> gathered_;  ///< Guarded.
};

/// The number of the frame with which a child reports that its object is made, or the reason why it
/// is not.
inline constexpr std::uint64_t kMadeSequence = 0;

/// The reply to a call that failed: the topic of the frame is the kind of the error, its fields have
/// the message for people.
inline wire::Frame failure_reply(std::uint64_t sequence, const CallError& error) {
  return {.kind = wire::FrameKind::Reply,
          .topic = static_cast<std::uint64_t>(error.kind) + 1,
          .sequence = sequence,
          .fields = wire::failure_fields(wire::last_of(error.message, wire::kTracebackBytesMax))};
}

inline bool is_failure(const wire::Frame& reply) { return reply.topic != 0; }

inline CallError read_failure_reply(const wire::Frame& reply) {
  // A child says only these three of itself.
  using Kind = CallError::Kind;
  Kind kind = Kind::Threw;
  for (const Kind each : {Kind::NotMade, Kind::NotCarried}) {
    if (reply.topic == static_cast<std::uint64_t>(each) + 1) kind = each;
  }
  return {.kind = kind, .child = 0, .message = wire::read_failure(reply.fields)};
}

class PoolLink {
 public:
  /// Bytes that one child has not read yet, or that wait until it is up.
  static constexpr std::size_t kUnsentMax = std::size_t{64} << 20;

  struct Options {
    std::size_t open_max = 1;
    std::shared_ptr<ranks::SharedArenas> arenas;
    std::shared_ptr<PoolReleases> releases;
  };
  /// An answer and whose it is; of a call that nobody waits for any more no call.
  struct Settled {
    std::shared_ptr<PoolCall> call;
    detail::PoolAnswer answer;
  };

  explicit PoolLink(Options options) : options_(std::move(options)) {}

  /// The frame goes, or waits for open(). An error: the call cannot be made, and is not open.
  std::expected<void, CallError> add(const Parcel& parcel, std::shared_ptr<PoolCall> call);
  [[nodiscard]] bool has_open_calls() const { return !open_.empty(); }
  /// No call is open any more.
  std::vector<std::shared_ptr<PoolCall>> take_open();

  /// A child that has said hello. Nothing is sent before it is up. `number`: of this connection.
  void connect(sys::Descriptor socket, std::uint64_t number);
  [[nodiscard]] bool is_connected() const { return socket_ != nullptr; }
  [[nodiscard]] int descriptor() const { return socket_->descriptor(); }
  /// It has made its object: what waits goes.
  void open();
  /// Calls that are added from now on wait for the next open().
  void hold() { is_open_ = false; }
  /// Calls that it has been sent are lost; those that wait for it stay.
  void close();
  /// Nothing goes or comes any more; the descriptor stays until close().
  void shut_down() const;

  /// Takes what has come; whether there may be more. An error: it does not speak the protocol.
  Result<bool> read();
  std::vector<Settled> take_settled() { return std::exchange(settled_, {}); }
  /// Whether it has made its object, and why not: once.
  std::optional<std::expected<void, CallError>> take_made() { return std::exchange(made_, {}); }

  void release(const PoolReleases::Release& release);
  [[nodiscard]] bool has_unsent() const { return socket_ != nullptr && socket_->unsent() > 0; }
  void write_some();

 private:
  void send(const wire::Frame& frame);
  Result<void> take(wire::Frame frame);
  Result<void> take_reply(wire::Frame frame);

  Options options_;
  std::unique_ptr<link::FrameSocket> socket_;
  std::uint64_t number_ = 0;
  bool is_open_ = false;
  struct Waiting {
    Parcel parcel;
    std::size_t bytes = 0;
  };
  std::deque<Waiting> waiting_;
  std::size_t waiting_bytes_ = 0;
  std::map<std::uint64_t, std::shared_ptr<PoolCall>> open_;  ///< By the numbers of their frames.
  std::uint64_t last_call_ = 0;  ///< Over all connections: a number is never used again.
  std::vector<Settled> settled_;
  std::optional<std::expected<void, CallError>> made_;
};

}  // namespace trainyard::workers
