#include "link/arena.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <expected>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include <fmt/format.h>

#include "base/check.h"

namespace trainyard::link {
namespace {

/// It keeps its size, and nobody but who has it mapped already can write to it.
constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL;

Result<Mapping> map_shared(const sys::Descriptor& descriptor, std::size_t size, int protection) {
  void* const start = ::mmap(nullptr, size, protection, MAP_SHARED, descriptor.get(), 0);
  if (start == MAP_FAILED) return std::unexpected(sys::system_error("cannot map an arena", errno));
  return Mapping(start, size);
}

}  // namespace

Mapping::Mapping(Mapping&& other) noexcept
    : start_(std::exchange(other.start_, nullptr)), size_(std::exchange(other.size_, 0)) {}

Mapping& Mapping::operator=(Mapping&& other) noexcept {
  std::swap(start_, other.start_);
  std::swap(size_, other.size_);
  return *this;
}

Mapping::~Mapping() {
  if (start_ != nullptr) ::munmap(start_, size_);
}

Result<Arena> Arena::make(std::size_t size) {
  sys::Descriptor descriptor(::memfd_create("trainyard-arena", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!descriptor.is_open() || ::ftruncate(descriptor.get(), static_cast<off_t>(size)) != 0) {
    return std::unexpected(sys::system_error("cannot make an arena", errno));
  }
  Result<Mapping> mapping = map_shared(descriptor, size, PROT_READ | PROT_WRITE);
  if (!mapping) return std::unexpected(std::move(mapping.error()));
  if (::fcntl(descriptor.get(), F_ADD_SEALS, kSeals) != 0) {
    return std::unexpected(sys::system_error("cannot seal an arena", errno));
  }
  return Arena(std::move(descriptor), std::move(*mapping));
}

Result<ArenaView> ArenaView::map(const sys::Descriptor& descriptor, std::size_t size_max) {
  const int seals = ::fcntl(descriptor.get(), F_GET_SEALS);
  struct stat about{};
  if (seals < 0 || (seals & F_SEAL_SHRINK) == 0 || ::fstat(descriptor.get(), &about) != 0) {
    return std::unexpected(Error{"a descriptor that is not of an arena"});
  }
  const auto size = static_cast<std::size_t>(about.st_size);
  if (size == 0 || size > size_max) {
    return std::unexpected(
        Error{fmt::format("an arena of {} bytes, at most {} are allowed", size, size_max)});
  }
  Result<Mapping> mapping = map_shared(descriptor, size, PROT_READ);
  if (!mapping) return std::unexpected(std::move(mapping.error()));
  return ArenaView(std::move(*mapping));
}

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
