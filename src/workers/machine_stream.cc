#include "workers/machine_stream.h"

#include <algorithm>
#include <utility>

namespace trainyard::workers {

MachineStream::Piece* MachineStream::next(Outbox& outbox, Duration now) {
  if (outbox.empty() || sent_ >= window_ || bytes_on_its_way_ >= kWindowBytes) return nullptr;
  const auto room = std::min<std::uint64_t>(
      {piece_bytes_max_, window_ - sent_, kWindowBytes - bytes_on_its_way_});
  if (on_its_way_.empty()) moved_at_ = now;
  Piece& piece = on_its_way_.emplace_back(Piece{.offset = sent_, .text = {}});
  piece.text.reserve(kDatagramHeadBytes + std::min(room, outbox.bytes()));
  piece.text.resize(kDatagramHeadBytes);
  outbox.take(room, piece.text);
  bytes_on_its_way_ += piece.bytes().size();
  sent_ += piece.bytes().size();
  return &piece;
}

bool MachineStream::told(std::uint64_t received, std::uint64_t window, bool missing, Duration now) {
  // Bytes that were never sent cannot have come: no honest end says so.
  if (received > sent_) return false;
  window_ = std::max(window_, window);
  bool moved = false;
  while (!on_its_way_.empty() &&
         on_its_way_.front().offset + on_its_way_.front().bytes().size() <= received) {
    bytes_on_its_way_ -= on_its_way_.front().bytes().size();
    on_its_way_.pop_front();
    moved_at_ = now;
    missing = missing && !on_its_way_.empty();
    moved = true;
  }
  if (moved && std::exchange(probes_, false)) return !on_its_way_.empty();
  if (!missing || on_its_way_.empty() || now - moved_at_ < kResendPause) return false;
  moved_at_ = now;
  return true;
}

bool MachineStream::is_overdue(Duration now) {
  if (on_its_way_.empty() || now - moved_at_ < kResendAfter) return false;
  moved_at_ = now;
  probes_ = true;
  return true;
}

void MachineStream::limit_pieces(std::size_t bytes_max) {
  piece_bytes_max_ = bytes_max;
  for (const Piece& each : std::exchange(on_its_way_, {})) {
    const std::string_view bytes = each.bytes();
    for (std::size_t at = 0; at < bytes.size(); at += bytes_max) {
      Piece& piece = on_its_way_.emplace_back(Piece{.offset = each.offset + at, .text = {}});
      piece.text.assign(kDatagramHeadBytes, '\0').append(bytes.substr(at, bytes_max));
    }
  }
}

std::string_view MachineStream::take(std::uint64_t offset, std::string_view bytes) {
  if (offset > received_) {
    missing_ = true;
    return {};
  }
  const std::uint64_t before = received_ - offset;
  if (before >= bytes.size()) return {};
  bytes.remove_prefix(static_cast<std::size_t>(before));
  received_ += bytes.size();
  missing_ = false;
  return bytes;
}

}  // namespace trainyard::workers
