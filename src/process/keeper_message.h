// The messages between the yard and its keeper, as bytes: a length, a kind, and the fields in the
// machine's own byte order. Private to the two, which are one program: it has no version.
//
// No sockets here. Pure; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "base/result.h"
#include "base/time.h"
#include "model/ids.h"
#include "model/launch.h"
#include "process/keeper.h"

namespace trainyard::process {

/// From the yard.
struct StartMessage {
  model::AttemptKey key;
  model::Launch launch;
};
struct SignalMessage {
  model::AttemptKey key;
  int signal = 0;
  Duration grace{0};  ///< As Keeper::signal() has it.
};

/// A directory with a socket that is to go when the yard has ended.
struct RemoveMessage {
  std::int64_t yard = 0;  ///< Its process.
  std::string directory;
};

/// The end of an attempt is in the journal.
struct WrittenMessage {
  model::AttemptKey key;
};

/// The time until which tasks may run unless a newer lease comes, on sys::boot_clock().
struct LeaseMessage {
  Duration until{0};
};

/// The last word of a yard that leaves in order.
struct Farewell {};

/// Asked for by the yard, and given back by the keeper: that it listens.
struct Pulse {};

/// In both directions. A process that gets one that is not for it has a broken partner.
using KeeperMessage =
    std::variant<StartMessage, SignalMessage, ProcessStarted, ProcessEnded, KeeperNote, Pulse,
                 RankFailed, RemoveMessage, Farewell, EndNotes, WrittenMessage, LeaseMessage>;

/// The longest body of a message.
constexpr std::size_t kKeeperMessageMax = std::size_t{16} << 20;

/// Each adds one message at the end of `bytes`. A launch that is too long is an error, and `bytes`
/// stays as it was.
Result<void> append_start(std::string& bytes, model::AttemptKey key, const model::Launch& launch);
void append_signal(std::string& bytes, const SignalMessage& message);
void append_started(std::string& bytes, const ProcessStarted& message);
void append_ended(std::string& bytes, const ProcessEnded& message);
void append_note(std::string& bytes, const KeeperNote& message);
void append_pulse(std::string& bytes);
void append_farewell(std::string& bytes);
void append_notes(std::string& bytes, const EndNotes& message);
void append_written(std::string& bytes, const WrittenMessage& message);
void append_rank_failed(std::string& bytes, const RankFailed& message);
void append_remove(std::string& bytes, const RemoveMessage& message);
void append_lease(std::string& bytes, const LeaseMessage& message);

/// Cuts a stream of bytes into messages.
class KeeperMessageReader {
 public:
  /// Takes in bytes as they came. Holds at most one unfinished message and what came with it, if
  /// next() is asked until it has no more before the next bytes are added.
  void add(std::string_view bytes);

  /// The next whole message; nothing while it is not there yet. An error means that the stream is
  /// not one of ours, and nothing after it can be trusted.
  Result<std::optional<KeeperMessage>> next();

  /// Whether the stream would break off in the middle of a message if it ended now.
  [[nodiscard]] bool holds_a_part() const { return at_ < bytes_.size(); }

 private:
  std::string bytes_;
  std::size_t at_ = 0;  ///< The number of bytes that have been handed out.
};

}  // namespace trainyard::process
