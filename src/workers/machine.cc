#include "workers/machine.h"

#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace trainyard::workers {

MachineStream::Piece* MachineStream::next(Outbox& outbox, Duration now) {
  if (outbox.empty() || sent_ >= window_ || bytes_on_its_way_ >= kWindowBytes) return nullptr;
  const auto room = std::min<std::uint64_t>(
      {piece_bytes_max_, window_ - sent_, kWindowBytes - bytes_on_its_way_});
  if (on_its_way_.empty()) moved_at_ = now;
  Piece& piece = on_its_way_.emplace_back(Piece{.offset = sent_});
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
      Piece& piece = on_its_way_.emplace_back(Piece{.offset = each.offset + at});
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

namespace {

/// One message each. A larger one saves nothing, and holds up what is behind it.
constexpr std::size_t kPieceBytesMax = std::size_t{128} << 10;
/// Received bytes are acknowledged after so many, or so long.
constexpr std::uint64_t kTellAfterBytes = MachineStream::kWindowBytes / 32;
constexpr Duration kTellAfter{20};

std::size_t piece_bytes_max(const Bridge& bridge) {
  return std::min(kPieceBytesMax, bridge.message_bytes_max() - kDatagramHeadBytes);
}

}  // namespace

Machine::Machine(MachineEntry entry, Bridge& bridge, Options options)
    : entry_(std::move(entry)),
      bridge_(bridge),
      options_(std::move(options)),
      stream_(piece_bytes_max(bridge)),
      last_message_at_(options_.now),
      shown_at_(options_.now) {}

bool Machine::has(int node) const {
  return std::ranges::any_of(entry_.nodes,
                             [node](const MachineNode& it) { return it.node == node; });
}

std::string Machine::name() const {
  std::vector<int> nodes;
  nodes.reserve(entry_.nodes.size());
  for (const MachineNode& each : entry_.nodes) nodes.push_back(each.node);
  return fmt::format("{} ({} {})", entry_.host, nodes.size() == 1 ? "worker" : "workers",
                     fmt::join(nodes, ", "));
}

std::uint64_t Machine::window() const {
  return stream_.received() - std::min<std::uint64_t>(stream_.received(), options_.untaken()) +
         MachineStream::kWindowBytes;
}

Datagram Machine::head(std::uint64_t offset, Duration now) {
  const Datagram head{.kind = Datagram::Kind::Piece,
                      .from = options_.own,
                      .to = entry_.id,
                      .offset = offset,
                      .received = stream_.received(),
                      .window = window(),
                      .missing = stream_.is_missing()};
  told_received_ = head.received;
  told_window_ = head.window;
  shown_at_ = now;
  return head;
}

void Machine::say(Duration now) { bridge_.send(entry_.id, datagram_text(head(0, now))); }

void Machine::say_end(Duration now) {
  if (!end_) return;
  end_said_at_ = now;
  bridge_.send(
      entry_.id,
      datagram_text({.kind = Datagram::Kind::End,
                     .from = options_.own,
                     .to = entry_.id,
                     .bytes = to_fields(*end_, bridge_.message_bytes_max() - kDatagramHeadBytes)}));
}

void Machine::end(const MachineEnd& why, Duration now) {
  end_ = why;
  if (is_up_) say_end(now);
}

void Machine::take_end(Duration now) {
  last_message_at_ = now;
  ends_there_ = true;
}

void Machine::send(MachineStream::Piece& piece, Duration now) {
  write_datagram_head(head(piece.offset, now), piece.text);
  bridge_.send(entry_.id, piece.text);
}

void Machine::send_again(Duration now) {
  stream_.resent(now);
  for (MachineStream::Piece& each : stream_.on_its_way()) send(each, now);
}

void Machine::send_from(Outbox& outbox, Duration now) {
  if (!is_up_) return;
  while (MachineStream::Piece* const piece = stream_.next(outbox, now)) send(*piece, now);
}

std::string_view Machine::take(const Datagram& datagram, Duration now) {
  last_message_at_ = now;
  if (stream_.told(datagram.received, datagram.window, datagram.missing, now)) send_again(now);
  const std::string_view fresh = stream_.take(datagram.offset, datagram.bytes);
  if (stream_.is_missing() && now - missed_at_ >= MachineStream::kResendPause) {
    missed_at_ = now;
    say(now);
  } else if (fresh.empty() && !datagram.bytes.empty()) {
    told_received_ = 0;  // The other machine does not know yet that this has come.
  }
  return fresh;
}

void Machine::show_room(Duration now) {
  if (is_up_ && window() >= told_window_ + kTellAfterBytes) say(now);
}

Duration Machine::tick(Duration now, Duration show_every) {
  if (!is_up_) return show_every;
  if (now - end_said_at_ >= options_.repeat_end_after) say_end(now);
  if (stream_.is_overdue(now)) send(stream_.on_its_way().front(), now);
  const bool owes = stream_.received() != told_received_ || window() > told_window_;
  const bool owes_much = stream_.received() >= told_received_ + kTellAfterBytes ||
                         window() >= told_window_ + kTellAfterBytes ||
                         (owes && now - shown_at_ >= kTellAfter);
  if (owes_much || now - shown_at_ >= show_every) {
    say(now);
  } else if (owes) {
    return kTellAfter;
  }
  Duration next = show_every;
  if (end_) next = std::min(next, options_.repeat_end_after);
  if (!stream_.is_idle()) next = std::min(next, MachineStream::kResendAfter);
  return next;
}

void Machine::set_up(bool is_up, Duration now) {
  if (is_up == is_up_) return;
  is_up_ = is_up;
  if (!is_up) return;
  last_message_at_ = now;
  // The server may be another one, which takes smaller messages.
  stream_.limit_pieces(piece_bytes_max(bridge_));
  // First: pieces say what becomes of workers that end by it.
  say_end(now);
  // Bytes that were sent last before it broke may be lost, or not.
  send_again(now);
}

}  // namespace trainyard::workers
