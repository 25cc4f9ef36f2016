// The arenas of one side, for buffers that are filled in place, sent without a copy, and used again
// when nobody reads them any more.
//
// Any thread; what it guards is link::ArenaPool, which is for one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/result.h"
#include "link/arena.h"
#include "trainyard/buffer.h"
#include "wire/frame.h"

namespace trainyard::ranks {

class SharedArenas : public std::enable_shared_from_this<SharedArenas> {
 public:
  explicit SharedArenas(link::ArenaPool::Options options) : pool_(options) {}

  /// A buffer in an arena of its own, of unknown content. The arena is free again when the last
  /// copy of the buffer is gone, here, and has been released by all who got it.
  Result<Buffer> alloc(DType type, Dimensions shape);
  /// An arena for several buffers, for as long as somebody has the memory.
  Result<std::shared_ptr<detail::BufferMemory>> lend(std::size_t bytes);

  /// The place of a memory of ours; nothing for any other.
  std::optional<wire::SharedBuffer> find(const detail::BufferMemory* memory) const;

  /// For link::FrameSocket::send and release, under the lock.
  template <class Call>
  auto with_pool(Call call) {
    const std::scoped_lock lock(mutex_);
    return call(pool_);
  }

 private:
  class Memory;
  std::mutex mutex_;
  link::ArenaPool pool_;
};

/// A buffer in memory of this process alone, all zero. An error: there is less memory.
Result<Buffer> alloc_own(DType type, Dimensions shape);

/// A piece of memory of the other side. Its owner is let go of when nobody has it any more.
class ForeignMemory final : public detail::BufferMemory {
 public:
  ForeignMemory(std::span<const std::byte> bytes, std::shared_ptr<const void> owner)
      : bytes_(bytes), owner_(std::move(owner)) {}
  [[nodiscard]] std::span<const std::byte> bytes() const override { return bytes_; }

 private:
  std::span<const std::byte> bytes_;
  std::shared_ptr<const void> owner_;
};

}  // namespace trainyard::ranks
