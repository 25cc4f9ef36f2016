// The arenas of one sender, used again and again: a fresh one for each message would cost more than
// the copy it saves, as all its pages would be new.
//
// One thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <utility>

#include "base/result.h"
#include "link/arena.h"
#include "sys/descriptor.h"
#include "wire/frame.h"

namespace trainyard::link {

class ArenaPool {
 public:
  struct Options {
    std::size_t arenas_max = 16;
    std::size_t bytes_max = std::size_t{64} << 30;  ///< Of all; only what was written takes memory.
  };
  explicit ArenaPool(Options options) : options_(options) {}
  ArenaPool(ArenaPool&&) = delete;
  ArenaPool& operator=(ArenaPool&&) = delete;
  ~ArenaPool() = default;

  /// A buffer to be filled and then sent, to however many. Its arena is used again when this is
  /// gone and all who got it have released it. The pool must outlive it.
  class Loan {
   public:
    Loan(Loan&& other) noexcept
        : pool_(std::exchange(other.pool_, nullptr)),
          buffer_(other.buffer_),
          bytes_(other.bytes_) {}
    Loan& operator=(Loan&& other) noexcept {
      std::swap(pool_, other.pool_);
      std::swap(buffer_, other.buffer_);
      std::swap(bytes_, other.bytes_);
      return *this;
    }
    ~Loan() {
      if (pool_ != nullptr) pool_->drop(buffer_.arena);
    }

    [[nodiscard]] std::span<std::byte> bytes() const { return bytes_; }
    /// The description that goes into the frame.
    [[nodiscard]] const wire::SharedBuffer& buffer() const { return buffer_; }

   private:
    friend class ArenaPool;
    Loan(ArenaPool* pool, wire::SharedBuffer buffer, std::span<std::byte> bytes)
        : pool_(pool), buffer_(buffer), bytes_(bytes) {}
    ArenaPool* pool_;
    wire::SharedBuffer buffer_;
    std::span<std::byte> bytes_;
  };

  /// Lends a buffer of this size, whose content is undefined. If no free arena is large enough and
  /// the pool is full, the smallest free arena is removed. Readers keep that mapped, which costs
  /// them its memory, until their connection ends. An error if all arenas of a full pool are in
  /// use, or if the system has no memory for one more.
  Result<Loan> lend(std::size_t bytes);

  /// One more who has it, and one less.
  void hold(std::uint64_t arena);
  void drop(std::uint64_t arena);

  [[nodiscard]] const sys::Descriptor& descriptor_of(std::uint64_t arena) const;
  [[nodiscard]] std::size_t in_use() const;

 private:
  [[nodiscard]] bool has_room(std::size_t size) const;
  void make_room(std::size_t size);

  struct Kept {
    Arena arena;
    int holders = 0;
  };
  Options options_;
  std::map<std::uint64_t, Kept> arenas_;
  std::size_t bytes_ = 0;
  std::uint64_t last_number_ = 0;
};

}  // namespace trainyard::link
