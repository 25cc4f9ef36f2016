#include "wire/frame.h"

#include <algorithm>
#include <expected>
#include <limits>
#include <utility>

#include <fmt/format.h>

namespace trainyard::wire {
namespace {

constexpr std::string_view kMagic = "TYRD";
constexpr std::size_t kLengthBytes = 8;
constexpr std::size_t kSharedBytes = 24;

/// Puts numbers one behind the other, little-endian.
class Writer {
 public:
  explicit Writer(char* at) : at_(at) {}

  template <class Number>
  void number(Number number) {
    for (std::size_t i = 0; i < sizeof number; ++i) {
      *at_++ = static_cast<char>((static_cast<std::uint64_t>(number) >> (8 * i)) & 0xFFU);
    }
  }
  void bytes(std::string_view bytes) { at_ = std::ranges::copy(bytes, at_).out; }

 private:
  char* at_;
};

/// Takes numbers off the front of bytes that are known to be enough.
class Cursor {
 public:
  explicit Cursor(std::string_view bytes) : bytes_(bytes) {}

  template <class Number>
  Number number() {
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < sizeof(Number); ++i) {
      value |= std::uint64_t{static_cast<unsigned char>(bytes_[i])} << (8 * i);
    }
    bytes_.remove_prefix(sizeof(Number));
    return static_cast<Number>(value);
  }

  std::string_view bytes(std::size_t count) {
    const std::string_view taken = bytes_.substr(0, count);
    bytes_.remove_prefix(count);
    return taken;
  }

 private:
  std::string_view bytes_;
};

bool is_kind(std::uint8_t kind) {
  return kind >= static_cast<std::uint8_t>(FrameKind::Hello) &&
         kind <= static_cast<std::uint8_t>(FrameKind::Event);
}

/// Compares an announced frame with the limits.
Result<void> within(const FramePrefix& announced, const FrameLimits& limits) {
  const auto over = [](std::string_view what, std::uint64_t is, std::size_t max) {
    return std::unexpected(
        Error{fmt::format("a frame with {} {}, at most {} are allowed", is, what, max)});
  };
  if (announced.fields_bytes > limits.fields_bytes_max) {
    return over("bytes of fields", announced.fields_bytes, limits.fields_bytes_max);
  }
  if (announced.buffers > limits.buffers_max) {
    return over("buffers", announced.buffers, limits.buffers_max);
  }
  if (announced.buffers_bytes > limits.buffers_bytes_max) {
    return over("bytes of buffers", announced.buffers_bytes, limits.buffers_bytes_max);
  }
  if (announced.shared > limits.shared_max) {
    return over("shared buffers", announced.shared, limits.shared_max);
  }
  return {};
}

}  // namespace

Result<std::string> encode(const Frame& frame, const FrameLimits& limits) {
  std::string bytes;
  const Result<void> done = encode_behind(bytes, frame, limits);
  if (!done) return std::unexpected(done.error());
  return bytes;
}

Result<void> encode_behind(std::string& bytes, const Frame& frame, const FrameLimits& limits) {
  FramePrefix prefix{.fields_bytes = frame.fields.size(),
                     .buffers = frame.buffers.size(),
                     .shared = frame.shared.size()};
  for (const std::string& buffer : frame.buffers) prefix.buffers_bytes += buffer.size();
  if (Result<void> fits = within(prefix, limits); !fits) return fits;
  const std::size_t before = bytes.size();
  bytes.resize(before + prefix.bytes());
  Writer writer(bytes.data() + before);
  writer.bytes(kMagic);
  writer.number(kProtocolVersion);
  writer.number(static_cast<std::uint8_t>(frame.kind));
  writer.number(frame.flags);
  writer.number(frame.topic);
  writer.number(frame.sequence);
  writer.number(frame.origin);
  writer.number(static_cast<std::uint32_t>(prefix.fields_bytes));
  writer.number(static_cast<std::uint32_t>(prefix.buffers));
  writer.number(static_cast<std::uint32_t>(prefix.shared));
  writer.number(std::uint64_t{prefix.buffers_bytes});
  for (const std::string& buffer : frame.buffers) writer.number(std::uint64_t{buffer.size()});
  for (const SharedBuffer& buffer : frame.shared) {
    writer.number(buffer.arena);
    writer.number(buffer.offset);
    writer.number(buffer.bytes);
  }
  writer.bytes(frame.fields);
  for (const std::string& buffer : frame.buffers) writer.bytes(buffer);
  return {};
}

std::size_t FramePrefix::bytes() const {
  return kPrefixBytes + (buffers * kLengthBytes) + (shared * kSharedBytes) + fields_bytes +
         buffers_bytes;
}

void FrameReader::add(std::string_view bytes) {
  if (error_) return;
  if (taken_ > 0) {
    bytes_.erase(0, taken_);
    taken_ = 0;
  }
  bytes_ += bytes;
}

Result<std::optional<Frame>> FrameReader::next() {
  if (error_) return std::unexpected(*error_);
  const std::string_view rest = std::string_view(bytes_).substr(taken_);
  auto begun = read_prefix(rest, limits_);
  if (!begun) return fail(std::move(begun.error().message));
  const std::optional<FramePrefix>& prefix = *begun;
  if (!prefix || rest.size() < prefix->bytes()) return std::nullopt;
  auto frame = read_frame(*prefix, rest.substr(0, prefix->bytes()));
  if (!frame) return fail(std::move(frame.error().message));
  taken_ += prefix->bytes();
  if (taken_ == bytes_.size()) {
    // A large frame's memory is not kept for the small ones that follow.
    bytes_ = {};
    taken_ = 0;
  }
  return std::move(*frame);
}

Result<std::optional<Frame>> FrameReader::fail(std::string what) {
  error_ = Error{std::move(what)};
  bytes_ = {};
  taken_ = 0;
  return std::unexpected(*error_);
}

Result<std::optional<FramePrefix>> read_prefix(std::string_view bytes, const FrameLimits& limits) {
  // A stranger is turned away at the first wrong byte, not after 48 of them.
  if (!bytes.starts_with(kMagic.substr(0, bytes.size()))) {
    return std::unexpected(Error{"this is not trainyard's protocol"});
  }
  if (bytes.size() < kPrefixBytes) return std::nullopt;
  Cursor cursor(bytes.substr(kMagic.size()));
  const auto version = cursor.number<std::uint8_t>();
  if (version != kProtocolVersion) {
    return std::unexpected(Error{fmt::format("version {} of the protocol is spoken there, {} here",
                                             version, kProtocolVersion)});
  }
  const auto kind = cursor.number<std::uint8_t>();
  if (!is_kind(kind))
    return std::unexpected(Error{fmt::format("a frame of unknown kind {}", kind)});
  FramePrefix prefix;
  prefix.kind = static_cast<FrameKind>(kind);
  prefix.flags = cursor.number<std::uint16_t>();
  if (prefix.flags != 0 && (prefix.kind != FrameKind::Event || prefix.flags != kRetainedFlag)) {
    return std::unexpected(Error{fmt::format("a frame with unknown flags {}", prefix.flags)});
  }
  prefix.topic = cursor.number<std::uint64_t>();
  prefix.sequence = cursor.number<std::uint64_t>();
  prefix.origin = cursor.number<std::uint32_t>();
  prefix.fields_bytes = cursor.number<std::uint32_t>();
  prefix.buffers = cursor.number<std::uint32_t>();
  prefix.shared = cursor.number<std::uint32_t>();
  prefix.buffers_bytes = cursor.number<std::uint64_t>();
  if (Result<void> fits = within(prefix, limits); !fits) {
    return std::unexpected(std::move(fits.error()));
  }
  return prefix;
}

Result<Frame> read_frame(const FramePrefix& prefix, std::string_view bytes) {
  const std::string_view body = bytes.substr(kPrefixBytes);
  Cursor lengths(body.substr(0, prefix.buffers * kLengthBytes));
  Cursor rest(body.substr(prefix.buffers * kLengthBytes));
  Frame frame{.kind = prefix.kind,
              .flags = prefix.flags,
              .topic = prefix.topic,
              .origin = prefix.origin,
              .sequence = prefix.sequence};
  frame.shared.reserve(prefix.shared);
  for (std::size_t i = 0; i < prefix.shared; ++i) {
    const auto arena = rest.number<std::uint64_t>();
    const auto offset = rest.number<std::uint64_t>();
    frame.shared.push_back(
        {.arena = arena, .offset = offset, .bytes = rest.number<std::uint64_t>()});
  }
  frame.fields = rest.bytes(prefix.fields_bytes);
  std::size_t left = prefix.buffers_bytes;
  frame.buffers.reserve(prefix.buffers);
  for (std::size_t i = 0; i < prefix.buffers; ++i) {
    const auto length = lengths.number<std::uint64_t>();
    if (length > left)
      return std::unexpected(Error{"a frame whose buffers are longer than announced"});
    left -= static_cast<std::size_t>(length);
    frame.buffers.emplace_back(rest.bytes(static_cast<std::size_t>(length)));
  }
  if (left > 0) return std::unexpected(Error{"a frame whose buffers are shorter than announced"});
  return frame;
}

namespace {

std::size_t place_of_arena(const FramePrefix& prefix, std::size_t index) {
  return kPrefixBytes + (prefix.buffers * kLengthBytes) + (index * kSharedBytes);
}

}  // namespace

std::uint64_t arena_at(std::string_view frame, const FramePrefix& prefix, std::size_t index) {
  return Cursor(frame.substr(place_of_arena(prefix, index))).number<std::uint64_t>();
}

std::uint64_t shared_bytes(std::string_view frame, const FramePrefix& prefix) {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < prefix.shared; ++i) {
    // The last of its numbers.
    const std::size_t at = place_of_arena(prefix, i + 1) - sizeof(std::uint64_t);
    const auto bytes = Cursor(frame.substr(at)).number<std::uint64_t>();
    sum += std::min(bytes, std::numeric_limits<std::uint64_t>::max() - sum);
  }
  return sum;
}

void set_arena_at(std::string& bytes, std::size_t frame_at, const FramePrefix& prefix,
                  std::size_t index, std::uint64_t arena) {
  Writer(bytes.data() + frame_at + place_of_arena(prefix, index)).number(arena);
}

}  // namespace trainyard::wire
