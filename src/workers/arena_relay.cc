#include "workers/arena_relay.h"

#include <algorithm>
#include <expected>
#include <iterator>

#include <fmt/format.h>

#include "wire/worker.h"

namespace trainyard::workers {

bool ArenaRelay::Known::is_retained() const {
  return std::ranges::any_of(namings, [](const auto& it) { return it.contains(kRetained); });
}

Result<void> ArenaRelay::take(End sender, sys::Descriptor descriptor) {
  auto& unnamed = unnamed_[sender];
  // Frames that wait until all are settled have named nothing yet.
  if (unnamed.size() >= kKnownMax) {
    return std::unexpected(Error{"more descriptors than frames have named"});
  }
  unnamed.push_back(std::move(descriptor));
  return {};
}

Result<void> ArenaRelay::named(const Arena& arena, const std::vector<End>& receivers) {
  auto found = known_.find(arena);
  if (found == known_.end()) {
    auto& unnamed = unnamed_[arena.sender];
    if (unnamed.empty()) {
      return std::unexpected(Error{fmt::format("arena {} was not handed over", arena.number)});
    }
    make_room(arena.sender);
    found = known_.emplace(arena, Known{}).first;
    found->second.descriptor = std::make_shared<const sys::Descriptor>(std::move(unnamed.front()));
    unnamed.pop_front();
  }
  found->second.named = ++namings_;
  if (receivers.empty()) {
    releases_.push_back(arena);
  } else {
    found->second.namings.emplace_back(receivers.begin(), receivers.end());
  }
  return {};
}

void ArenaRelay::make_room(End sender) {
  const auto first = known_.lower_bound({.sender = sender, .number = 0});
  const auto last = known_.lower_bound({.sender = sender + 1, .number = 0});
  if (static_cast<std::size_t>(std::distance(first, last)) < kKnownMax) return;
  auto oldest = last;
  for (auto it = first; it != last; ++it) {
    if (!it->second.namings.empty()) continue;
    if (oldest == last || it->second.named < oldest->second.named) oldest = it;
  }
  if (oldest != last) known_.erase(oldest);
}

ArenaRelay::Alias ArenaRelay::alias(const Arena& arena, End receiver) {
  Receiver& to = receivers_[receiver];
  const auto found = to.current.find(arena);
  if (found != to.current.end()) {
    to.aliases.at(found->second).named = ++namings_;
    return {.number = found->second};
  }
  make_room(to);
  const std::uint64_t number = ++last_alias_;
  to.current.emplace(arena, number);
  to.aliases.emplace(number, Mapped{.arena = arena, .named = ++namings_});
  return {.number = number, .descriptor = known_.at(arena).descriptor};
}

void ArenaRelay::make_room(Receiver& receiver) {
  if (receiver.current.size() < kMappedMax) return;
  receiver.current.erase(std::ranges::min_element(
      receiver.current, {}, [&](const auto& it) { return receiver.aliases.at(it.second).named; }));
  // An arena that is not mapped may still be released; beyond this it is no honest receiver.
  constexpr std::size_t kAliasesMax = 4'096;
  if (receiver.aliases.size() <= kAliasesMax) return;
  std::erase_if(receiver.aliases, [&](const auto& it) {
    const auto current = receiver.current.find(it.second.arena);
    return current == receiver.current.end() || current->second != it.first;
  });
}

Result<std::span<const std::byte>> ArenaRelay::bytes_of(End sender,
                                                        const wire::SharedBuffer& place) {
  const auto found = known_.find({.sender = sender, .number = place.arena});
  if (found == known_.end()) {
    return std::unexpected(Error{fmt::format("arena {} is not there any more", place.arena)});
  }
  Known& known = found->second;
  if (!known.view) {
    auto view = link::ArenaView::map(*known.descriptor, link::ArenaExchange::kArenaBytesMax);
    if (!view) return std::unexpected(std::move(view.error()));
    known.view = std::make_shared<const link::ArenaView>(*std::move(view));
  }
  const std::span<const std::byte> all = known.view->bytes();
  if (place.offset > all.size() || place.bytes > all.size() - place.offset) {
    return std::unexpected(Error{"a buffer outside its arena"});
  }
  return all.subspan(static_cast<std::size_t>(place.offset), static_cast<std::size_t>(place.bytes));
}

void ArenaRelay::released(End receiver, std::uint64_t alias) {
  const auto to = receivers_.find(receiver);
  if (to == receivers_.end()) return;
  const auto found = to->second.aliases.find(alias);
  if (found != to->second.aliases.end()) released(receiver, found->second.arena);
}

void ArenaRelay::released(End holder, const Arena& arena) {
  const auto known = known_.find(arena);
  if (known == known_.end()) return;
  auto& namings = known->second.namings;
  for (auto naming = namings.begin(); naming != namings.end(); ++naming) {
    const auto has = naming->find(holder);
    if (has == naming->end()) continue;
    naming->erase(has);
    if (naming->empty()) {
      namings.erase(naming);
      releases_.push_back(arena);
    }
    if (known->second.is_orphan && !known->second.is_retained()) known_.erase(known);
    return;
  }
}

void ArenaRelay::forget_alias(End receiver, std::uint64_t alias) {
  Receiver& to = receivers_[receiver];
  const auto found = to.aliases.find(alias);
  if (found == to.aliases.end()) return;
  to.current.erase(found->second.arena);
}

void ArenaRelay::forget(End end) {
  receivers_.erase(end);
  unnamed_.erase(end);
  std::erase_if(known_,
                [&](const auto& it) { return it.first.sender == end && !it.second.is_retained(); });
  for (auto& [arena, known] : known_) {
    known.is_orphan = known.is_orphan || arena.sender == end;
    for (auto naming = known.namings.begin(); naming != known.namings.end();) {
      naming->erase(end);
      if (!naming->empty()) {
        ++naming;
        continue;
      }
      naming = known.namings.erase(naming);
      releases_.push_back(arena);
    }
  }
}

Result<std::string> raw_event(const wire::FramePrefix& prefix, std::string_view frame,
                              const SharedBytes& bytes_of) {
  auto whole = wire::read_frame(prefix, frame);
  if (!whole) return std::unexpected(std::move(whole.error()));
  if (whole->buffers.empty()) return std::unexpected(Error{"an event without shapes"});
  auto shapes = wire::read_shapes(whole->buffers.front());
  if (!shapes) return std::unexpected(std::move(shapes.error()));
  const std::uint64_t in_frame = prefix.buffers_bytes - whole->buffers.front().size();
  const std::uint64_t in_memory = wire::shared_bytes(frame, prefix);
  if (in_memory > wire::kEventBuffersBytesMax ||
      in_frame > wire::kEventBuffersBytesMax - in_memory) {
    return std::unexpected(Error{fmt::format(
        "its buffers have {} bytes, and at most {} can go to another machine",
        in_frame + std::min(in_memory, std::numeric_limits<std::uint64_t>::max() - in_frame),
        wire::kEventBuffersBytesMax)});
  }
  std::vector<std::string> buffers(1);
  std::size_t raw = 1;
  std::size_t shared = 0;
  for (wire::BufferShape& shape : *shapes) {
    if (!std::exchange(shape.shared, false)) {
      if (raw == whole->buffers.size()) return std::unexpected(Error{"a buffer is not there"});
      buffers.push_back(std::move(whole->buffers[raw++]));
      continue;
    }
    if (shared == whole->shared.size()) return std::unexpected(Error{"a buffer is not there"});
    const wire::SharedBuffer& place = whole->shared[shared++];
    const auto bytes = bytes_of(place);
    if (!bytes) return std::unexpected(bytes.error());
    buffers.emplace_back(reinterpret_cast<const char*>(bytes->data()), bytes->size());
  }
  buffers.front() = wire::shapes_text(*shapes);
  whole->buffers = std::move(buffers);
  whole->shared.clear();
  return wire::encode(*whole, wire::kWorkerLimits);
}

}  // namespace trainyard::workers
