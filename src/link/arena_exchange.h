// The shared arenas of one connection, as one end knows them: descriptors that were sent, arenas
// that the other end still reads, and arenas that are mapped here.
//
// Sends and receives nothing itself; descriptors come and go with the bytes of frames
// (sys/passing.h). One thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <vector>

#include "base/result.h"
#include "link/arena.h"
#include "link/arena_pool.h"
#include "sys/descriptor.h"
#include "wire/frame.h"

namespace trainyard::link {

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
