// Pieces of memory of the other side that are not read here any more, until they are released.
//
// The last copy of a buffer is destroyed on any thread, with any lock held; one thread takes the
// collected pieces and releases them.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "base/result.h"
#include "link/arena.h"
#include "trainyard/buffer.h"
#include "wire/frame.h"

namespace trainyard::workers {

class PoolReleases : public std::enable_shared_from_this<PoolReleases> {
 public:
  /// An arena by its connection and its number there.
  struct Release {
    std::uint64_t connection = 0;
    std::uint64_t arena = 0;
  };

  /// `on_first` is called when there is something to take. It may be missing.
  explicit PoolReleases(std::function<void()> on_first) : on_first_(std::move(on_first)) {}

  /// The memory of a shared buffer that came over a connection; its arena is released when nobody
  /// has it any more.
  Result<std::shared_ptr<detail::BufferMemory>> open(std::uint64_t connection,
                                                     const wire::SharedBuffer& buffer,
                                                     link::ArenaExchange& arenas);
  std::vector<Release> take();

 private:
  class Lease;
  void add(Release release);

  const std::function<void()> on_first_;
  std::mutex mutex_;
  std::vector<Release> gathered_;  ///< Guarded.
};

}  // namespace trainyard::workers
