// Another machine of the run: which workers it has, and the stream to it and back.
//
// Belongs to the thread of its loop. workers/machines.h has all of them, and gives each what comes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/time.h"
#include "workers/datagram.h"
#include "workers/machine_words.h"
#include "workers/outbox.h"

namespace trainyard::workers {

/// The bytes that go from this machine to another one and back, whole and in order over something
/// that loses some: sent pieces are kept until the other machine acknowledges them, and lost ones
/// are sent again.
///
/// Frames that wait to be sent are in an Outbox, where they can still be dropped, and be counted
/// exactly. The bytes in flight are limited by the room of the other machine. Pure; callers pass
/// the time.
class MachineStream {
 public:
  /// So much may be on its way, and so much may have come and not have been taken.
  static constexpr std::size_t kWindowBytes = std::size_t{8} << 20;
  static constexpr Duration kResendAfter{500};
  /// Time in which bytes that were sent again are not requested once more.
  static constexpr Duration kResendPause{50};

  explicit MachineStream(std::size_t piece_bytes_max) : piece_bytes_max_(piece_bytes_max) {}

  // --- what goes ---

  /// With room for the head of a datagram before the bytes.
  struct Piece {
    std::uint64_t offset = 0;
    std::string text;
    [[nodiscard]] std::string_view bytes() const {
      return std::string_view(text).substr(kDatagramHeadBytes);
    }
  };
  /// The next one, which is on its way from now on; nullptr: there is none, or no room.
  Piece* next(Outbox& outbox, Duration now);
  /// Pieces that were sent and are not acknowledged.
  [[nodiscard]] std::deque<Piece>& on_its_way() { return on_its_way_; }
  [[nodiscard]] bool is_idle() const { return on_its_way_.empty(); }
  /// Takes what the other end acknowledges. True: all pieces in flight are to be sent again.
  bool told(std::uint64_t received, std::uint64_t window, bool missing, Duration now);
  /// Returns whether nothing was acknowledged for long: the first piece in flight is to be sent
  /// again. The others follow by told() once it has arrived. All of them each time would pile up on
  /// their way to a machine that is suspended or busy.
  bool is_overdue(Duration now);
  /// Called when all pieces in flight are sent again for another reason.
  void resent(Duration now) { moved_at_ = now; }

  /// Pieces have at most so many bytes from now on, also those that were sent and are not
  /// acknowledged.
  void limit_pieces(std::size_t bytes_max);

  // --- what comes ---

  /// A piece: what of it is new and next. Nothing where it came before, or something is missing.
  std::string_view take(std::uint64_t offset, std::string_view bytes);
  [[nodiscard]] std::uint64_t received() const { return received_; }
  [[nodiscard]] bool is_missing() const { return missing_; }

 private:
  std::size_t piece_bytes_max_;
  std::deque<Piece> on_its_way_;
  std::size_t bytes_on_its_way_ = 0;
  std::uint64_t sent_ = 0;
  std::uint64_t window_ = kWindowBytes;
  Duration moved_at_{0};  ///< When something was said to have come, or was sent again.
  bool probes_ = false;   ///< The first piece was overdue, and nothing has been acknowledged since.
  std::uint64_t received_ = 0;
  bool missing_ = false;
};

class Machine {
 public:
  struct Options {
    MachineId own = 0;
    /// Number of this machine among the receivers of events: below 0, as workers count from 0.
    int number = 0;
    Duration now{0};
    /// The end of the run is sent again after this time.
    Duration repeat_end_after{0};
    /// Returns the number of received bytes that the router has not taken yet, for want of room.
    std::function<std::size_t()> untaken;
  };
  Machine(MachineEntry entry, Bridge& bridge, Options options);

  [[nodiscard]] MachineId id() const { return entry_.id; }
  [[nodiscard]] int number() const { return options_.number; }
  [[nodiscard]] const MachineEntry& entry() const { return entry_; }
  [[nodiscard]] bool has(int node) const;
  /// "host-b (workers 4, 5)"
  [[nodiscard]] std::string name() const;

  /// Sends from the outbox as many bytes as may be in flight; none while the connection is down.
  void send_from(Outbox& outbox, Duration now);
  /// Returns the bytes that are new and next.
  std::string_view take(const Datagram& datagram, Duration now);
  /// Says what has come, sends again what was lost, or only shows that it is there. When it is to
  /// be called again at the latest.
  Duration tick(Duration now, Duration show_every);
  /// Called when received bytes were taken; reports that where there were many.
  void show_room(Duration now);
  /// Things go through from now on, or not.
  void set_up(bool is_up, Duration now);
  /// Notifies the other machine at once that the run ends, and repeats that, as it may be lost.
  void end(const MachineEnd& why, Duration now);
  /// The other machine has said that the run ends.
  void take_end(Duration now);
  /// The other machine has all that was sent. Where the run ends, it knows that: it may have exited
  /// then, and acknowledges nothing more.
  [[nodiscard]] bool is_drained() const { return end_ ? ends_there_ : stream_.is_idle(); }
  [[nodiscard]] Duration last_message_at() const { return last_message_at_; }

 private:
  /// Says what has come.
  void say(Duration now);
  /// Nothing where the run goes on.
  void say_end(Duration now);
  void send(MachineStream::Piece& piece, Duration now);
  /// The head of a datagram, which also reports how far the other stream has come.
  [[nodiscard]] Datagram head(std::uint64_t offset, Duration now);
  void send_again(Duration now);
  [[nodiscard]] std::uint64_t window() const;

  MachineEntry entry_;
  Bridge& bridge_;
  Options options_;
  MachineStream stream_;
  bool is_up_ = true;
  Duration last_message_at_;
  Duration shown_at_;
  std::optional<MachineEnd> end_;  ///< Why the run ends; none: it goes on.
  Duration end_said_at_{0};
  bool ends_there_ = false;
  Duration missed_at_{0};  ///< When this end last reported that something is missing.
  std::uint64_t told_received_ = 0;
  std::uint64_t told_window_ = MachineStream::kWindowBytes;
};

}  // namespace trainyard::workers
