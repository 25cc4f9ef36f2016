// The bytes that go from this machine to another one and back, whole and in order over something
// that loses some: sent pieces are kept until the other machine acknowledges them, and lost ones
// are sent again.
//
// Frames that wait to be sent are in an Outbox, where they can still be dropped, and be counted
// exactly. The bytes in flight are limited by the room of the other machine.
//
// Pure; one thread; callers pass the time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>

#include "base/time.h"
#include "workers/datagram.h"
#include "workers/outbox.h"

namespace trainyard::workers {

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

}  // namespace trainyard::workers
