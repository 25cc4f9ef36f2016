#include "link/arena_pool.h"

#include <algorithm>
#include <bit>
#include <expected>

#include <fmt/format.h>

#include "base/check.h"

namespace trainyard::link {
namespace {

/// Sizes are rounded up to powers of two from here on, so that buffers of nearly one size share
/// their arenas.
constexpr std::size_t kSmallest = std::size_t{64} << 10;

}  // namespace

Result<ArenaPool::Loan> ArenaPool::lend(std::size_t bytes) {
  auto best = arenas_.end();
  for (auto it = arenas_.begin(); it != arenas_.end(); ++it) {
    const std::size_t size = it->second.arena.bytes().size();
    if (it->second.holders > 0 || size < bytes) continue;
    if (best == arenas_.end() || size < best->second.arena.bytes().size()) best = it;
  }
  if (best == arenas_.end()) {
    const std::size_t size = std::bit_ceil(std::max(bytes, kSmallest));
    make_room(size);
    if (!has_room(size)) {
      return std::unexpected(Error{
          fmt::format("no room for a buffer of {} bytes: {} arenas are in use", bytes, in_use())});
    }
    Result<Arena> made = Arena::make(size);
    if (!made) return std::unexpected(std::move(made.error()));
    bytes_ += size;
    best = arenas_.emplace(++last_number_, Kept{.arena = std::move(*made)}).first;
  }
  ++best->second.holders;
  return Loan(this, {.arena = best->first, .offset = 0, .bytes = bytes},
              best->second.arena.bytes().first(bytes));
}

bool ArenaPool::has_room(std::size_t size) const {
  return arenas_.size() < options_.arenas_max && bytes_ <= options_.bytes_max &&
         size <= options_.bytes_max - bytes_;
}

void ArenaPool::make_room(std::size_t size) {
  while (!has_room(size)) {
    auto smallest = arenas_.end();
    for (auto it = arenas_.begin(); it != arenas_.end(); ++it) {
      const auto size_of = [](const auto& one) { return one->second.arena.bytes().size(); };
      if (it->second.holders > 0) continue;
      if (smallest == arenas_.end() || size_of(it) < size_of(smallest)) smallest = it;
    }
    if (smallest == arenas_.end()) return;
    bytes_ -= smallest->second.arena.bytes().size();
    arenas_.erase(smallest);
  }
}

std::size_t ArenaPool::in_use() const {
  return static_cast<std::size_t>(
      std::ranges::count_if(arenas_, [](const auto& it) { return it.second.holders > 0; }));
}

void ArenaPool::hold(std::uint64_t arena) { ++arenas_.at(arena).holders; }

void ArenaPool::drop(std::uint64_t arena) {
  Kept& kept = arenas_.at(arena);
  check(kept.holders > 0, "an arena that somebody has");
  --kept.holders;
}

const sys::Descriptor& ArenaPool::descriptor_of(std::uint64_t arena) const {
  return arenas_.at(arena).arena.descriptor();
}

}  // namespace trainyard::link
