// A message from one machine of a run to another, over whatever passes messages on between
// them: a greeting, a piece of the stream of frames from the one to the other, or the end of the
// run.
//
// A message may be lost, or come twice: workers/machine.h sees to that for pieces, and the
// others are sent again. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
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

}  // namespace trainyard::workers
