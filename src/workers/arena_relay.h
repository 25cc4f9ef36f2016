// Buffers in memory of their sender, on their way through the router: it passes the descriptors on
// and does not touch the content.
//
// A sender counts for each of its arenas how often it was named and not released. The relay records
// the receivers that still have it, and releases it to the sender when the last one has. Each
// receiver has its own number for an arena, a new one each time the descriptor is sent.
//
// One thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "link/arena.h"
#include "sys/descriptor.h"
#include "wire/frame.h"

namespace trainyard::workers {

class ArenaRelay {
 public:
  /// An end of a connection: a worker in one of its lives, whose number has 32 bits.
  using End = std::uint64_t;
  /// Holds the arenas of retained events, which outlive their sender.
  static constexpr End kRetained = std::numeric_limits<End>::max();
  /// An arena, as its sender numbers it.
  struct Arena {
    End sender = 0;
    std::uint64_t number = 0;
    auto operator<=>(const Arena&) const = default;
  };
  /// So many arenas of one sender are remembered, those that were named last.
  static constexpr std::size_t kKnownMax = 64;
  /// So many arenas a receiver is taken to have mapped (it has more, ArenaExchange::kMappedMax).
  static constexpr std::size_t kMappedMax = 48;

  /// A descriptor that came with a frame.
  Result<void> take(End sender, sys::Descriptor descriptor);

  /// A frame names it; all of these get it. An error: it did not come.
  Result<void> named(const Arena& arena, const std::vector<End>& receivers);
  /// The number of an arena at its receiver, and the descriptor if it has to go with the frame.
  struct Alias {
    std::uint64_t number = 0;
    std::shared_ptr<const sys::Descriptor> descriptor;
  };
  Alias alias(const Arena& arena, End receiver);

  /// The bytes there, for a peer that takes no descriptors. Good until the arena is forgotten, or
  /// the sender writes there again. An error: it did not come, or there is no such place in it.
  Result<std::span<const std::byte>> bytes_of(End sender, const wire::SharedBuffer& place);

  /// The receiver has released what it calls so, or will not get it.
  void released(End receiver, std::uint64_t alias);
  /// One that has it and needs no name for it has released it.
  void released(End holder, const Arena& arena);
  /// The descriptor that was to go with a frame has not gone.
  void forget_alias(End receiver, std::uint64_t alias);
  /// The end is gone: all that it has is released, and its own arenas are closed. Those of retained
  /// events stay until they are released.
  void forget(End end);

  /// Arenas that all receivers have released since the last call.
  std::vector<Arena> take_releases() { return std::exchange(releases_, {}); }

 private:
  struct Known {
    std::shared_ptr<const sys::Descriptor> descriptor;
    std::shared_ptr<const link::ArenaView> view;  ///< None: nobody has looked into it.
    std::deque<std::multiset<End>> namings;       ///< Who still has each of them.
    std::uint64_t named = 0;                      ///< When: a count of namings.
    bool is_orphan = false;                       ///< Its sender is gone.

    [[nodiscard]] bool is_retained() const;
  };
  struct Mapped {
    Arena arena;
    std::uint64_t named = 0;
  };
  struct Receiver {
    std::map<std::uint64_t, Mapped> aliases;  ///< All that it may still release.
    std::map<Arena, std::uint64_t> current;   ///< Arenas that it is assumed to have mapped.
  };
  void make_room(End sender);
  void make_room(Receiver& receiver);

  std::map<Arena, Known> known_;
  std::map<End, std::deque<sys::Descriptor>> unnamed_;
  std::map<End, Receiver> receivers_;
  std::vector<Arena> releases_;
  std::uint64_t namings_ = 0;
  std::uint64_t last_alias_ = 0;
};

using SharedBytes = std::function<Result<std::span<const std::byte>>(const wire::SharedBuffer&)>;

/// Returns an event as it can leave the machine: buffers in memory that others can map are put into
/// the frame. `frame` is a whole event with this prefix. An error: its buffers have more than
/// wire::kEventBuffersBytesMax together, or it is not what it says.
Result<std::string> raw_event(const wire::FramePrefix& prefix, std::string_view frame,
                              const SharedBytes& bytes_of);

}  // namespace trainyard::workers
