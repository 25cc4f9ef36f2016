#include "workers/outbox.h"

#include <algorithm>
#include <cerrno>

#include <sys/socket.h>
#include <sys/types.h>

#include "sys/passing.h"

namespace trainyard::workers {
namespace {

/// Frames are put together up to so much: one system call takes them.
constexpr std::size_t kChunkBytes = std::size_t{64} << 10;
/// And at most so large a part of what may wait: they are dropped together.
constexpr std::size_t kChunksLeast = 8;

}  // namespace

void Outbox::add_event(std::string_view frame, std::uint64_t topic, BoundBy bound) {
  const bool joins = !chunks_.empty() && chunks_.back().count > 0 && chunks_.back().sent == 0 &&
                     chunks_.back().shares.empty() &&
                     chunks_.back().bytes.size() + frame.size() <= kChunkBytes &&
                     chunks_.back().count < limits_.events_max / kChunksLeast;
  if (!joins) chunks_.emplace_back();
  Chunk& chunk = chunks_.back();
  last_at_ = chunk.bytes.size();
  chunk.bytes += frame;
  ++chunk.count;
  ++events_;
  bytes_ += frame.size();
  if (bound == BoundBy::Sender) {
    for (Amount* const each : {&chunk.bound_by_sender, &bound_by_sender_}) {
      ++each->events;
      each->bytes += frame.size();
    }
  }
  if (chunk.events.empty() || chunk.events.back().first != topic) {
    chunk.events.emplace_back(topic, 1);
  } else {
    ++chunk.events.back().second;
  }
}

void Outbox::add_share(std::uint64_t alias, std::shared_ptr<const sys::Descriptor> descriptor) {
  Chunk& last = chunks_.back();
  if (last_at_ > 0) {
    // Descriptors go with the first byte of a chunk, so this frame gets a chunk to itself.
    Chunk own;
    own.bytes = last.bytes.substr(last_at_);
    last.bytes.resize(last_at_);
    own.events.emplace_back(last.events.back().first, 1);
    own.count = 1;
    --last.count;
    if (--last.events.back().second == 0) last.events.pop_back();
    chunks_.push_back(std::move(own));
    last_at_ = 0;
  }
  chunks_.back().shares.push_back({.alias = alias, .descriptor = std::move(descriptor)});
}

void Outbox::add_word(std::string_view frame) {
  Chunk& chunk = chunks_.emplace_back();
  chunk.bytes = frame;
  bytes_ += frame.size();
  last_at_ = 0;
}

void Outbox::add_lost(std::uint64_t topic, std::uint64_t count) {
  if (chunks_.empty() || !chunks_.back().is_open_report()) chunks_.emplace_back();
  chunks_.back().lost[topic] += count;
  last_at_ = 0;
}

std::size_t Outbox::word_bytes() const {
  std::size_t bytes = 0;
  for (const Chunk& chunk : chunks_) {
    if (chunk.count == 0) bytes += chunk.bytes.size() - chunk.sent;
  }
  return bytes;
}

void Outbox::gone(const Chunk& chunk) {
  events_ -= chunk.count;
  bytes_ -= chunk.bytes.size();
  bound_by_sender_.events -= chunk.bound_by_sender.events;
  bound_by_sender_.bytes -= chunk.bound_by_sender.bytes;
  events_gone_ += chunk.count;
}

void Outbox::write_report(Chunk& chunk) {
  if (!chunk.is_open_report()) return;
  bytes_ -= chunk.bytes.size();
  chunk.bytes = loss_words_(chunk.lost);
  bytes_ += chunk.bytes.size();
}

void Outbox::join_reports(std::size_t at) {
  if (at + 1 >= chunks_.size()) return;
  Chunk& first = chunks_[at];
  const Chunk& second = chunks_[at + 1];
  if (!first.is_open_report() || !second.is_open_report()) return;
  for (const auto& [topic, count] : second.lost) first.lost[topic] += count;
  gone(second);
  chunks_.erase(chunks_.begin() + static_cast<std::ptrdiff_t>(at) + 1);
}

bool Outbox::send_some(int socket) {
  while (!chunks_.empty()) {
    Chunk& chunk = chunks_.front();
    write_report(chunk);
    std::vector<int> descriptors;
    if (chunk.sent == 0) {
      for (const Share& each : chunk.shares) {
        if (each.descriptor) descriptors.push_back(each.descriptor->get());
      }
    }
    const ssize_t count = sys::send_with(socket, std::string_view(chunk.bytes).substr(chunk.sent),
                                         descriptors, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return errno == EAGAIN;
    chunk.sent += static_cast<std::size_t>(count);
    if (chunk.sent < chunk.bytes.size()) continue;
    gone(chunk);
    chunks_.pop_front();
  }
  return true;
}

void Outbox::take(std::size_t bytes_max, std::string& to) {
  while (!chunks_.empty() && bytes_max > 0) {
    Chunk& chunk = chunks_.front();
    write_report(chunk);
    const std::string_view rest = std::string_view(chunk.bytes).substr(chunk.sent);
    const std::string_view some = rest.substr(0, bytes_max);
    to += some;
    bytes_max -= some.size();
    chunk.sent += some.size();
    if (some.size() < rest.size()) break;
    gone(chunk);
    chunks_.pop_front();
  }
}

bool Outbox::hand_on(std::size_t at, Share& share) {
  for (std::size_t behind = at + 1; behind < chunks_.size(); ++behind) {
    for (Share& each : chunks_[behind].shares) {
      if (each.alias != share.alias) continue;
      each.descriptor = std::move(share.descriptor);
      return true;
    }
  }
  return false;
}

Outbox::DroppedEvents Outbox::drop_oldest() {
  const auto oldest =
      std::ranges::find_if(chunks_, [](const Chunk& it) { return it.count > 0 && it.sent == 0; });
  if (oldest == chunks_.end()) return {};
  DroppedEvents dropped{.events = std::move(oldest->events)};
  std::vector<Share> shares = std::move(oldest->shares);
  gone(*oldest);
  *oldest = {};
  for (const auto& [topic, count] : dropped.events) oldest->lost[topic] += count;
  const auto at = static_cast<std::size_t>(oldest - chunks_.begin());
  for (Share& each : shares) {
    dropped.aliases.push_back(each.alias);
    if (each.descriptor && !hand_on(at, each)) dropped.unsent.push_back(each.alias);
  }
  // Neighbours are joined, so that there are no more reports than frames that still wait.
  join_reports(at);
  if (at > 0) join_reports(at - 1);
  return dropped;
}

}  // namespace trainyard::workers
