// Memory that one process writes and others read: a buffer of megabytes is copied once, into an
// arena, and not again for each reader. An arena belongs to who sends; the descriptor goes over the
// socket once for each reader, who maps it once and cannot write to it.
//
// Sends and receives nothing itself: descriptors come and go with the bytes of frames
// (sys/passing.h). One thread each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "base/result.h"
#include "sys/descriptor.h"
#include "wire/frame.h"

namespace trainyard::link {

/// A piece of mapped memory.
class Mapping {
 public:
  Mapping() = default;
  Mapping(void* start, std::size_t size) : start_(start), size_(size) {}
  Mapping(Mapping&& other) noexcept;
  Mapping& operator=(Mapping&& other) noexcept;
  ~Mapping();

  [[nodiscard]] std::span<std::byte> bytes() const {
    return {static_cast<std::byte*>(start_), size_};
  }

 private:
  void* start_ = nullptr;
  std::size_t size_ = 0;
};

/// The sender's side. It has pages where something was written.
class Arena {
 public:
  static Result<Arena> make(std::size_t size);

  [[nodiscard]] std::span<std::byte> bytes() const { return mapping_.bytes(); }
  [[nodiscard]] const sys::Descriptor& descriptor() const { return descriptor_; }

 private:
  Arena(sys::Descriptor descriptor, Mapping mapping)
      : descriptor_(std::move(descriptor)), mapping_(std::move(mapping)) {}
  sys::Descriptor descriptor_;
  Mapping mapping_;
};

/// The reader's side.
class ArenaView {
 public:
  /// Refuses what is no memory that was sealed by Arena: what could be cut short while it is read
  /// would end the reader by a signal.
  static Result<ArenaView> map(const sys::Descriptor& descriptor, std::size_t size_max);

  [[nodiscard]] std::span<const std::byte> bytes() const { return mapping_.bytes(); }

 private:
  explicit ArenaView(Mapping mapping) : mapping_(std::move(mapping)) {}
  Mapping mapping_;
};

/// The arenas of one sender, used again and again: a fresh one for each message would cost more than
/// the copy it saves, as all its pages would be new.
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

/// The shared arenas of one connection, as one end knows them: descriptors that were sent, arenas
/// that the other end still reads, and arenas that are mapped here.
class ArenaExchange {
 public:
  /// Descriptors that came and that no frame has named yet: those of two frames. One read may bring
  /// the end of a frame and the beginning of the next, with its descriptors.
  static constexpr std::size_t kUnnamedMax = 2 * wire::kDescriptorsMax;
  /// Arenas of the other end that are mapped here. One more takes the place of the one that was
  /// named the longest ago.
  static constexpr std::size_t kMappedMax = 64;
  static constexpr std::size_t kArenaBytesMax = std::size_t{64} << 30;

  // --- of the sender ---

  /// A frame is about to be sent: its arenas are held for the other end until it releases them.
  /// Returns the descriptors to send with its first byte: those of arenas that were not sent yet,
  /// in their order.
  std::vector<int> descriptors_with(const wire::Frame& frame, ArenaPool& pool);
  /// The other end has released one. An error: it did not have it.
  Result<void> released(std::uint64_t arena, ArenaPool& pool);
  /// The other end is gone.
  void drop_all(ArenaPool& pool);
  /// Arenas that the other end has, and how often.
  [[nodiscard]] const std::map<std::uint64_t, int>& held() const { return held_; }

  // --- of the receiver ---

  /// A descriptor that came. An error: too many of them.
  Result<void> take(sys::Descriptor descriptor);
  /// Where the shared buffers of a frame lie, until they are released. An error: a buffer outside
  /// its arena, or an arena that did not come.
  Result<std::vector<std::span<const std::byte>>> open(const wire::Frame& frame);
  /// A shared buffer, mapped for as long as somebody has its arena.
  struct SharedView {
    std::span<const std::byte> bytes;
    std::shared_ptr<const ArenaView> arena;
  };
  /// Maps one buffer of a frame. The view may outlive this object.
  Result<SharedView> view_of(const wire::SharedBuffer& buffer);
  /// The first descriptor that no frame has named; an error when there is none.
  Result<sys::Descriptor> take_unnamed();

 private:
  Result<std::shared_ptr<const ArenaView>> arena_of(std::uint64_t arena);

  std::set<std::uint64_t> sent_;
  std::map<std::uint64_t, int> held_;  ///< By the other end, how often.
  std::deque<sys::Descriptor> unnamed_;
  struct Mapped {
    std::shared_ptr<const ArenaView> view;
    std::uint64_t named = 0;  ///< When: a count of names.
  };
  std::map<std::uint64_t, Mapped> mapped_;
  std::uint64_t names_ = 0;
};

}  // namespace trainyard::link
