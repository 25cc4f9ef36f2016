#include "link/arena_exchange.h"

#include <algorithm>
#include <expected>
#include <utility>

#include <fmt/format.h>

namespace trainyard::link {

std::vector<int> ArenaExchange::descriptors_with(const wire::Frame& frame, ArenaPool& pool) {
  std::vector<int> descriptors;
  for (const wire::SharedBuffer& buffer : frame.shared) {
    pool.hold(buffer.arena);
    ++held_[buffer.arena];
    if (sent_.insert(buffer.arena).second) {
      descriptors.push_back(pool.descriptor_of(buffer.arena).get());
    }
  }
  return descriptors;
}

Result<void> ArenaExchange::released(std::uint64_t arena, ArenaPool& pool) {
  const auto held = held_.find(arena);
  if (held == held_.end()) {
    return std::unexpected(Error{fmt::format("arena {} is released, and was not sent", arena)});
  }
  pool.drop(arena);
  if (--held->second == 0) held_.erase(held);
  return {};
}

void ArenaExchange::drop_all(ArenaPool& pool) {
  for (const auto& [arena, times] : std::exchange(held_, {})) {
    for (int i = 0; i < times; ++i) pool.drop(arena);
  }
}

Result<void> ArenaExchange::take(sys::Descriptor descriptor) {
  if (unnamed_.size() >= kUnnamedMax) {
    return std::unexpected(Error{"more descriptors than frames have named"});
  }
  unnamed_.push_back(std::move(descriptor));
  return {};
}

Result<std::vector<std::span<const std::byte>>> ArenaExchange::open(const wire::Frame& frame) {
  std::vector<std::span<const std::byte>> buffers;
  buffers.reserve(frame.shared.size());
  for (const wire::SharedBuffer& buffer : frame.shared) {
    const auto view = view_of(buffer);
    if (!view) return std::unexpected(view.error());
    buffers.push_back(view->bytes);
  }
  return buffers;
}

Result<ArenaExchange::SharedView> ArenaExchange::view_of(const wire::SharedBuffer& buffer) {
  auto arena = arena_of(buffer.arena);
  if (!arena) return std::unexpected(std::move(arena.error()));
  const std::span<const std::byte> all = (*arena)->bytes();
  if (buffer.offset > all.size() || buffer.bytes > all.size() - buffer.offset) {
    return std::unexpected(Error{"a buffer that does not lie within its arena"});
  }
  return SharedView{.bytes = all.subspan(buffer.offset, buffer.bytes), .arena = *std::move(arena)};
}

Result<std::shared_ptr<const ArenaView>> ArenaExchange::arena_of(std::uint64_t arena) {
  const auto found = mapped_.find(arena);
  if (found != mapped_.end()) {
    found->second.named = ++names_;
    return found->second.view;
  }
  if (unnamed_.empty()) {
    return std::unexpected(Error{fmt::format("arena {} was not handed over", arena)});
  }
  const sys::Descriptor descriptor = std::move(unnamed_.front());
  unnamed_.pop_front();
  Result<ArenaView> view = ArenaView::map(descriptor, kArenaBytesMax);
  if (!view) return std::unexpected(std::move(view.error()));
  auto shared = std::make_shared<const ArenaView>(std::move(*view));
  // The pool of the sender is smaller than this: what was not named for so long is no more.
  if (mapped_.size() == kMappedMax) {
    mapped_.erase(
        std::ranges::min_element(mapped_, {}, [](const auto& it) { return it.second.named; }));
  }
  mapped_.emplace(arena, Mapped{.view = shared, .named = ++names_});
  return shared;
}

Result<sys::Descriptor> ArenaExchange::take_unnamed() {
  if (unnamed_.empty()) return std::unexpected(Error{"a descriptor did not come"});
  sys::Descriptor descriptor = std::move(unnamed_.front());
  unnamed_.pop_front();
  return descriptor;
}

}  // namespace trainyard::link
