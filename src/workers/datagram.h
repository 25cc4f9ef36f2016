// A message from one machine of a run to another, over the bridge that passes messages on between
// them: a greeting, a piece of the stream of frames from the one to the other, or the end of the
// run.
//
// A message may be lost, or come twice: workers/machine.h sees to that for pieces, and the
// others are sent again. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace trainyard::workers {

/// A machine of a run in one of its lives: a random number.
using MachineId = std::uint64_t;

struct Datagram {
  /// The version of the protocol, for the datagram and the frames in it.
  std::uint8_t version = 0;
  enum class Kind : std::uint8_t {
    Hello = 1,    ///< A machine joins or begins the run: MachineHello says what `to` means.
    Welcome = 2,  ///< The answer, good or bad.
    Piece = 3,    ///< Bytes of the stream; without any it only acknowledges the other one.
    End = 4,      ///< The run ends: MachineEnd. It needs no room in the stream.
  };
  Kind kind = Kind::Piece;
  MachineId from = 0;
  MachineId to = 0;
  std::uint64_t offset = 0;    ///< Place of the first of the bytes in the stream.
  std::uint64_t received = 0;  ///< So much of the stream in the other direction has come.
  std::uint64_t window = 0;    ///< And it may be sent up to there.
  bool missing = false;        ///< Later bytes have come, but not those between.
  std::string_view bytes;

  friend bool operator==(const Datagram&, const Datagram&) = default;
};

constexpr std::size_t kDatagramHeadBytes = 48;

/// With the version of here.
std::string datagram_text(const Datagram& datagram);
/// Over the first kDatagramHeadBytes of what has the bytes behind them.
void write_datagram_head(const Datagram& datagram, std::string& text);
/// Reads a datagram, which points into `text`; nothing if it is not one. For another version, reads
/// only the version, the kind, the sender and the receiver, which each version has in these places.
std::optional<Datagram> read_datagram(std::string_view text);

/// How the machines of a run reach each other: messages that arrive once, twice or not at all, and
/// from one machine to another in their order. NATS implements it (workers/nats_bridge.h).
///
/// One thread, that of the loop, which also calls the listener, and not before start().
class Bridge {
 public:
  struct Listener {
    std::function<void(std::string_view message)> on_message;
    /// No machine that has begun the run has received what was sent to it.
    std::function<void()> on_no_hub;
    /// Nothing goes through now; or it does again, and what was sent may be lost.
    std::function<void(bool is_up)> on_change;
    /// The connection has ended for good, for this reason: "NATS: 127.0.0.1:4222: ...".
    std::function<void(const std::string& why)> on_end;
    /// Worth knowing: "3 messages came faster than they were read".
    std::function<void(const std::string& what)> on_trouble;
  };

  Bridge() = default;
  Bridge(Bridge&&) = delete;
  Bridge& operator=(Bridge&&) = delete;
  virtual ~Bridge() = default;

  virtual void start(Listener listener) = 0;
  virtual void send(MachineId to, std::string_view message) = 0;
  /// Sends to the machine that has begun the run, whose id need not be known. Never delivered to
  /// this machine.
  virtual void send_to_hub(std::string_view message) = 0;
  /// Returns whether no sent message waits for room in the connection; true without a connection.
  /// Messages that wait when the bridge is destroyed are lost.
  [[nodiscard]] virtual bool is_drained() const = 0;
  /// The largest message, in bytes, that the present server accepts, or the last server.
  [[nodiscard]] virtual std::size_t message_bytes_max() const = 0;
  /// The address of that server: "127.0.0.1:4222".
  [[nodiscard]] virtual std::string name() const = 0;
};

}  // namespace trainyard::workers
