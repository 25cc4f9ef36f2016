#include "workers/raw_event.h"

#include <cstddef>
#include <expected>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/result.h"
#include "wire/frame.h"
#include "wire/worker.h"

namespace trainyard::workers {

Result<std::string> raw_event(const wire::FramePrefix& prefix, std::string_view frame,
                              const SharedBytes& bytes_of) {
  auto whole = wire::read_frame(prefix, frame);
  if (!whole) return std::unexpected(std::move(whole.error()));
  if (whole->buffers.empty()) return std::unexpected(Error{"an event without shapes"});
  auto shapes = wire::read_shapes(whole->buffers.front());
  if (!shapes) return std::unexpected(std::move(shapes.error()));
  std::vector<std::string> buffers(1);
  std::size_t raw = 1;
  std::size_t shared = 0;
  std::size_t total = prefix.buffers_bytes;
  for (wire::BufferShape& shape : *shapes) {
    if (!std::exchange(shape.shared, false)) {
      if (raw == whole->buffers.size()) return std::unexpected(Error{"a buffer is not there"});
      buffers.push_back(std::move(whole->buffers[raw++]));
      continue;
    }
    if (shared == whole->shared.size()) return std::unexpected(Error{"a buffer is not there"});
    const wire::SharedBuffer& place = whole->shared[shared++];
    total += place.bytes;
    if (total > wire::kWorkerLimits.buffers_bytes_max) {
      return std::unexpected(
          Error{fmt::format("its buffers have {} bytes or more, and {} can go to another machine",
                            total, wire::kWorkerLimits.buffers_bytes_max)});
    }
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
