#include "workers/parcel.h"

#include <cstdint>
#include <cstring>
#include <expected>
#include <optional>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "wire/worker.h"

namespace trainyard::workers {
namespace {

constexpr std::size_t kAlignment = 64;
static_assert(kBuffersMax == 63, "as many as shapes can be read of");
static_assert(kPoolLimits.buffers_max == wire::kWorkerLimits.buffers_max &&
                  kPoolLimits.buffers_bytes_max <= wire::kWorkerLimits.buffers_bytes_max,
              "as much as a frame of either may carry");
constexpr std::size_t kInFrameAtMost = kPoolLimits.buffers_bytes_max - (std::size_t{1} << 20);

std::size_t aligned(std::size_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

/// A buffer on its way, and where it lies, if that is an arena.
struct Going {
  const Buffer* buffer;
  std::optional<wire::SharedBuffer> place;
};

std::size_t size_of_those_without_place(const std::vector<Going>& all) {
  std::size_t bytes = 0;
  for (const Going& each : all) bytes += each.place ? 0 : each.buffer->bytes().size();
  return bytes;
}

/// Those that have no place, into one arena, behind each other.
Result<std::shared_ptr<detail::BufferMemory>> copy_together(std::vector<Going>& all,
                                                            ranks::SharedArenas& arenas) {
  std::size_t needed = 0;
  for (const Going& each : all) {
    if (!each.place) needed = aligned(needed) + each.buffer->bytes().size();
  }
  auto memory = arenas.lend(needed);
  if (!memory) return memory;
  const wire::SharedBuffer whole = arenas.find(memory->get()).value_or(wire::SharedBuffer{});
  const std::span<std::byte> to = (*memory)->writable();
  std::size_t offset = 0;
  for (Going& each : all) {
    if (each.place) continue;
    offset = aligned(offset);
    const std::span<const std::byte> from = each.buffer->bytes();
    if (!from.empty()) std::memcpy(to.subspan(offset).data(), from.data(), from.size());
    each.place = wire::SharedBuffer{
        .arena = whole.arena, .offset = whole.offset + offset, .bytes = from.size()};
    offset += from.size();
  }
  return memory;
}

/// Puts the shapes of the buffers into the frame, and those that have no place elsewhere.
void put_in_frame(const std::vector<Going>& all, wire::Frame& frame) {
  std::vector<wire::BufferShape> shapes;
  frame.buffers.emplace_back();
  for (const Going& each : all) {
    shapes.push_back({.dtype = static_cast<std::uint8_t>(each.buffer->dtype()),
                      .shared = each.place.has_value(),
                      .shape = each.buffer->shape()});
    if (each.place) {
      frame.shared.push_back(*each.place);
    } else {
      const std::span<const std::byte> bytes = each.buffer->bytes();
      frame.buffers.emplace_back(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    }
  }
  frame.buffers.front() = wire::shapes_text(shapes);
}

}  // namespace

Result<Parcel> pack(detail::RemotePayload payload, ranks::SharedArenas& arenas,
                    const WaitForArena& wait) {
  Parcel parcel{.frame = {.fields = std::move(payload.json)}};
  if (payload.buffers.empty()) return parcel;
  if (payload.buffers.size() > kBuffersMax) {
    return std::unexpected(Error{fmt::format("{} buffers, at most {} can be sent at once",
                                             payload.buffers.size(), kBuffersMax)});
  }
  std::vector<Going> all;
  for (const Buffer& buffer : payload.buffers) {
    Going& going = all.emplace_back(&buffer, std::nullopt);
    auto place = arenas.find(buffer.memory().get());
    if (!place || parcel.held.size() == ranks::kInPlaceMax) continue;
    place->bytes = buffer.bytes().size();
    going.place = place;
    parcel.held.push_back(buffer.memory());
  }
  const std::size_t bytes = size_of_those_without_place(all);
  if (bytes > ranks::kInFrameMax) {
    auto memory = copy_together(all, arenas);
    // Where no arena is free, as the other side keeps what it got, the frame carries what it may.
    if (bytes > kInFrameAtMost) {
      while (!memory && wait && wait()) memory = copy_together(all, arenas);
      if (!memory) return std::unexpected(std::move(memory.error()));
    }
    if (memory) parcel.held.push_back(*std::move(memory));
  }
  put_in_frame(all, parcel.frame);
  return parcel;
}

Result<detail::RemotePayload> unpack(wire::Frame frame, const ranks::OpenShared& open) {
  detail::RemotePayload payload{.json = std::move(frame.fields)};
  if (frame.buffers.empty()) return payload;
  // First, so that whatever else is wrong they are released.
  std::vector<std::shared_ptr<detail::BufferMemory>> shared;
  for (const wire::SharedBuffer& each : frame.shared) {
    auto memory = open(each);
    if (!memory) return std::unexpected(std::move(memory.error()));
    shared.push_back(*std::move(memory));
  }
  const auto shapes = wire::read_shapes(frame.buffers.front());
  if (!shapes) return std::unexpected(shapes.error());
  std::size_t raw = 1;
  std::size_t next_shared = 0;
  for (const wire::BufferShape& shape : *shapes) {
    const auto type = static_cast<DType>(shape.dtype);
    const auto count = count_of(shape.shape);
    if (shape.dtype > static_cast<std::uint8_t>(DType::Float64) || !count) {
      return std::unexpected(Error{"it carries a buffer of a type that is not known"});
    }
    const std::size_t bytes = *count * bytes_of(type);
    if (shape.shared && next_shared < shared.size() &&
        shared[next_shared]->bytes().size() == bytes) {
      payload.buffers.emplace_back(type, shape.shape, std::move(shared[next_shared++]));
    } else if (!shape.shared && raw < frame.buffers.size() && frame.buffers[raw].size() == bytes) {
      Buffer buffer(type, shape.shape);
      if (bytes > 0) std::memcpy(buffer.writable().data(), frame.buffers[raw].data(), bytes);
      ++raw;
      payload.buffers.push_back(std::move(buffer));
    } else {
      return std::unexpected(Error{"it carries a buffer of another size than its shape needs"});
    }
  }
  return payload;
}

}  // namespace trainyard::workers
