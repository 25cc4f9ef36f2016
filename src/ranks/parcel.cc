#include "ranks/parcel.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <expected>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/result.h"
#include "ranks/shared_arenas.h"
#include "trainyard/buffer.h"
#include "trainyard/shareable.h"
#include "wire/fields.h"
#include "wire/frame.h"
#include "wire/rank.h"

namespace trainyard {
namespace {

/// Of buffers that share an arena; what vector instructions like best.
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

/// A buffer of a frame that has come.
class RawMemory final : public detail::BufferMemory {
 public:
  explicit RawMemory(std::string_view bytes)
      : words_((bytes.size() + sizeof(double) - 1) / sizeof(double)), size_(bytes.size()) {
    const std::span<const std::byte> from = std::as_bytes(std::span(bytes));
    std::ranges::copy(from, std::as_writable_bytes(std::span(words_)).begin());
  }
  [[nodiscard]] std::span<const std::byte> bytes() const override {
    return std::as_bytes(std::span(words_)).first(size_);
  }

 private:
  std::vector<double> words_;  ///< So that it lies well for every type.
  std::size_t size_;
};

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
                            .values = text_of(shareable.values()),
                            .buffers = {}}};
  // Those in place first: the order within the frame is that of the names here.
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
    // Where no arena is free, as the other side keeps what it got, the frame carries what it may.
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
    std::shared_ptr<detail::BufferMemory> memory;
    if (named.shared) {
      auto opened = open(frame.shared[shared++]);
      if (!opened) return std::unexpected(std::move(opened.error()));
      memory = std::move(*opened);
    } else {
      memory = std::make_shared<RawMemory>(frame.buffers[raw++]);
    }
    if (memory->bytes().size() != *count * bytes_of(*type)) {
      return std::unexpected(
          Error{fmt::format("the buffer '{}' has {} bytes, and its shape needs {}", named.name,
                            memory->bytes().size(), *count * bytes_of(*type))});
    }
    shareable.set_buffer(std::move(named.name), Buffer(*type, std::move(named.shape), memory));
  }
  return shareable;
}

}  // namespace trainyard
