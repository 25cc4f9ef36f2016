#include "workers/raw_event.h"

#include <algorithm>
#include <cstdint>
#include <expected>
#include <limits>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "wire/worker.h"

namespace trainyard::workers {

Result<std::string> raw_event(const wire::FramePrefix& prefix, std::string_view frame,
                              const SharedBytes& bytes_of) {
  auto whole = wire::read_frame(prefix, frame);
  if (!whole) return std::unexpected(std::move(whole.error()));
  if (whole->buffers.empty()) return std::unexpected(Error{"an event without shapes"});
  auto shapes = wire::read_shapes(whole->buffers.front());
  if (!shapes) return std::unexpected(std::move(shapes.error()));
  const std::uint64_t in_frame = prefix.buffers_bytes - whole->buffers.front().size();
  const std::uint64_t in_memory = wire::shared_bytes(frame, prefix);
  if (in_memory > wire::kEventBuffersBytesMax ||
      in_frame > wire::kEventBuffersBytesMax - in_memory) {
    return std::unexpected(Error{fmt::format(
        "its buffers have {} bytes, and at most {} can go to another machine",
        in_frame + std::min(in_memory, std::numeric_limits<std::uint64_t>::max() - in_frame),
        wire::kEventBuffersBytesMax)});
  }
  std::vector<std::string> buffers(1);
  std::size_t raw = 1;
  std::size_t shared = 0;
  for (wire::BufferShape& shape : *shapes) {
    if (!std::exchange(shape.shared, false)) {
      if (raw == whole->buffers.size()) return std::unexpected(Error{"a buffer is not there"});
      buffers.push_back(std::move(whole->buffers[raw++]));
      continue;
    }
    if (shared == whole->shared.size()) return std::unexpected(Error{"a buffer is not there"});
    const wire::SharedBuffer& place = whole->shared[shared++];
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
