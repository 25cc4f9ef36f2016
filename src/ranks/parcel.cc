#include "ranks/parcel.h"

#include <algorithm>
#include <cstring>
#include <expected>
#include <span>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "trainyard/buffer.h"
#include "wire/field_reader.h"

namespace trainyard::ranks {
namespace {

/// Alignment of buffers that share an arena; vector instructions like it best.
constexpr std::size_t kAlignment = 64;

std::size_t aligned(std::size_t offset) {
  return (offset + kAlignment - 1) / kAlignment * kAlignment;
}

std::string text_of(const Json& object) {
  if (object.empty()) return {};
  return wire::fields_text(object);
}

Json object_of(const std::string& text) {
  return text.empty() ? Json::object() : Json::parse(text, nullptr, /*allow_exceptions=*/false);
}

/// Copies those buffers into one arena.
Result<void> copy_together(const std::vector<const Buffer*>& buffers, SharedArenas& arenas,
                           Parcel& parcel) {
  std::size_t needed = 0;
  for (const Buffer* const each : buffers) needed = aligned(needed) + each->bytes().size();
  auto memory = arenas.lend(needed);
  if (!memory) return std::unexpected(std::move(memory.error()));
  const wire::SharedBuffer all = arenas.find(memory->get()).value_or(wire::SharedBuffer{});
  std::size_t offset = 0;
  for (const Buffer* const each : buffers) {
    offset = aligned(offset);
    const std::span<const std::byte> from = each->bytes();
    if (!from.empty()) {
      std::memcpy((*memory)->writable().subspan(offset).data(), from.data(), from.size());
    }
    parcel.shared.push_back(
        {.arena = all.arena, .offset = all.offset + offset, .bytes = from.size()});
    offset += from.size();
  }
  parcel.held.push_back(std::move(*memory));
  return {};
}

Error wrong_size(const std::string& name, std::size_t bytes, std::size_t needed) {
  return Error{
      fmt::format("the buffer '{}' has {} bytes, and its shape needs {}", name, bytes, needed)};
}

}  // namespace

Result<Parcel> pack(const Shareable& shareable, SharedArenas& arenas) {
  for (const Json* const object :
       {&shareable.headers(), &shareable.cookies(), &shareable.values()}) {
    if (wire::nests_within(*object, wire::kValueLevelsMax)) continue;
    return std::unexpected(
        Error{fmt::format("values that are nested deeper than {}", wire::kValueLevelsMax)});
  }
  Parcel parcel{.payload = {.headers = text_of(shareable.headers()),
                            .cookies = text_of(shareable.cookies()),
                            .values = text_of(shareable.values())}};
  // Buffers in place come first: the order within the frame is that of the names here.
  std::vector<wire::NamedBuffer> copied_names;
  std::vector<const Buffer*> copied;
  std::size_t copied_bytes = 0;
  for (const auto& [name, buffer] : shareable.buffers()) {
    wire::NamedBuffer named{
        .name = name, .dtype = std::string(to_text(buffer.dtype())), .shape = buffer.shape()};
    const auto place = arenas.find(buffer.memory().get());
    if (place && parcel.held.size() < kInPlaceMax) {
      named.shared = true;
      parcel.shared.push_back(*place);
      parcel.held.push_back(buffer.memory());
      parcel.payload.buffers.push_back(std::move(named));
    } else {
      copied_names.push_back(std::move(named));
      copied.push_back(&buffer);
      copied_bytes += buffer.bytes().size();
    }
  }
  bool in_frame = copied_bytes <= kInFrameMax;
  if (!in_frame) {
    const Result<void> copied_in = copy_together(copied, arenas, parcel);
    // If no arena is free, as the other side keeps what it got, the frame carries what it may.
    in_frame = !copied_in && copied_bytes <= wire::kRankLimits.buffers_bytes_max;
    if (!copied_in && !in_frame) return std::unexpected(copied_in.error());
  }
  for (wire::NamedBuffer& named : copied_names) {
    named.shared = !in_frame;
    parcel.payload.buffers.push_back(std::move(named));
  }
  if (parcel.payload.buffers.size() > wire::kRankLimits.buffers_max) {
    return std::unexpected(
        Error{fmt::format("{} buffers, at most {} can be sent at once",
                          parcel.payload.buffers.size(), wire::kRankLimits.buffers_max)});
  }
  if (!in_frame) return parcel;
  for (const Buffer* const each : copied) {
    const std::span<const std::byte> from = each->bytes();
    parcel.raw.emplace_back(reinterpret_cast<const char*>(from.data()), from.size());
  }
  return parcel;
}

Result<Shareable> unpack(wire::Payload payload, wire::Frame frame, const OpenShared& open) {
  Shareable shareable;
  shareable.set_values(object_of(payload.values));
  const Json headers = object_of(payload.headers);
  for (const auto& [name, value] : headers.items()) {
    shareable.set_header(name, value);
  }
  const Json cookies = object_of(payload.cookies);
  for (const auto& [name, value] : cookies.items()) {
    shareable.set_cookie(name, value);
  }
  std::size_t raw = 0;
  std::size_t shared = 0;
  for (wire::NamedBuffer& named : payload.buffers) {
    const auto type = parse_dtype(named.dtype);
    const auto count = count_of(named.shape);
    const bool is_there = named.shared ? shared < frame.shared.size() : raw < frame.buffers.size();
    if (!type || !count || !is_there) {
      return std::unexpected(
          Error{fmt::format("the buffer '{}' makes no sense or did not come", named.name)});
    }
    const std::size_t needed = *count * bytes_of(*type);
    if (named.shared) {
      auto memory = open(frame.shared[shared++]);
      if (!memory) return std::unexpected(std::move(memory.error()));
      const std::size_t bytes = (*memory)->bytes().size();
      if (bytes != needed) return std::unexpected(wrong_size(named.name, bytes, needed));
      shareable.set_buffer(std::move(named.name),
                           Buffer(*type, std::move(named.shape), std::move(*memory)));
    } else {
      const std::string& bytes = frame.buffers[raw++];
      if (bytes.size() != needed) {
        return std::unexpected(wrong_size(named.name, bytes.size(), needed));
      }
      Buffer buffer(*type, std::move(named.shape));
      std::ranges::copy(std::as_bytes(std::span(bytes)), buffer.writable().begin());
      shareable.set_buffer(std::move(named.name), std::move(buffer));
    }
  }
  return shareable;
}

}  // namespace trainyard::ranks
