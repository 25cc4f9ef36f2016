#include "wire/frame.h"

#include <cstddef>
#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/result.h"

namespace trainyard::wire {
namespace {

constexpr std::string_view kMagic = "TYRD";
constexpr std::size_t kLengthBytes = 8;
constexpr std::size_t kSharedBytes = 24;

template <class Number>
void append(std::string& bytes, Number number) {
  for (std::size_t i = 0; i < sizeof number; ++i) {
    bytes += static_cast<char>((static_cast<std::uint64_t>(number) >> (8 * i)) & 0xFFU);
  }
}

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
         kind <= static_cast<std::uint8_t>(FrameKind::Release);
}

struct Announced {
  std::size_t fields_bytes = 0;
  std::size_t buffers = 0;
  std::uint64_t buffers_bytes = 0;
  std::size_t shared = 0;
};

/// What is announced, against what may be.
Result<void> within(const Announced& announced, const FrameLimits& limits) {
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
  std::uint64_t buffers_bytes = 0;
  for (const std::string& buffer : frame.buffers) buffers_bytes += buffer.size();
  auto fits = within({.fields_bytes = frame.fields.size(),
                      .buffers = frame.buffers.size(),
                      .buffers_bytes = buffers_bytes,
                      .shared = frame.shared.size()},
                     limits);
  if (!fits) return std::unexpected(std::move(fits.error()));
  std::string bytes;
  bytes.reserve(kPrefixBytes + (frame.buffers.size() * kLengthBytes) +
                (frame.shared.size() * kSharedBytes) + frame.fields.size() + buffers_bytes);
  bytes += kMagic;
  append(bytes, kProtocolVersion);
  append(bytes, static_cast<std::uint8_t>(frame.kind));
  append(bytes, std::uint16_t{0});  // flags
  append(bytes, frame.topic);
  append(bytes, frame.sequence);
  append(bytes, frame.origin);
  append(bytes, static_cast<std::uint32_t>(frame.fields.size()));
  append(bytes, static_cast<std::uint32_t>(frame.buffers.size()));
  append(bytes, static_cast<std::uint32_t>(frame.shared.size()));
  append(bytes, buffers_bytes);
  for (const std::string& buffer : frame.buffers) append(bytes, std::uint64_t{buffer.size()});
  for (const SharedBuffer& buffer : frame.shared) {
    append(bytes, buffer.arena);
    append(bytes, buffer.offset);
    append(bytes, buffer.bytes);
  }
  bytes += frame.fields;
  for (const std::string& buffer : frame.buffers) bytes += buffer;
  return bytes;
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
  // A stranger is turned away at the first wrong byte, not after 48 of them.
  if (!rest.starts_with(kMagic.substr(0, rest.size()))) {
    return fail("this is not trainyard's protocol");
  }
  if (rest.size() < kPrefixBytes) return std::nullopt;
  auto prefix = read_prefix(rest.substr(0, kPrefixBytes));
  if (!prefix) return fail(std::move(prefix.error().message));
  const std::size_t body_bytes = (prefix->buffers * kLengthBytes) +
                                 (prefix->shared * kSharedBytes) + prefix->fields_bytes +
                                 prefix->buffers_bytes;
  if (rest.size() - kPrefixBytes < body_bytes) return std::nullopt;
  auto frame = read_body(std::move(*prefix), rest.substr(kPrefixBytes, body_bytes));
  if (!frame) return fail(std::move(frame.error().message));
  taken_ += kPrefixBytes + body_bytes;
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

Result<FrameReader::Prefix> FrameReader::read_prefix(std::string_view bytes) const {
  Cursor cursor(bytes.substr(kMagic.size()));
  const auto version = cursor.number<std::uint8_t>();
  if (version != kProtocolVersion) {
    return std::unexpected(Error{fmt::format("version {} of the protocol is spoken there, {} here",
                                             version, kProtocolVersion)});
  }
  const auto kind = cursor.number<std::uint8_t>();
  if (!is_kind(kind))
    return std::unexpected(Error{fmt::format("a frame of unknown kind {}", kind)});
  const auto flags = cursor.number<std::uint16_t>();
  if (flags != 0)
    return std::unexpected(Error{fmt::format("a frame with unknown flags {}", flags)});
  Prefix prefix;
  prefix.frame.kind = static_cast<FrameKind>(kind);
  prefix.frame.topic = cursor.number<std::uint64_t>();
  prefix.frame.sequence = cursor.number<std::uint64_t>();
  prefix.frame.origin = cursor.number<std::uint32_t>();
  prefix.fields_bytes = cursor.number<std::uint32_t>();
  prefix.buffers = cursor.number<std::uint32_t>();
  prefix.shared = cursor.number<std::uint32_t>();
  const auto buffers_bytes = cursor.number<std::uint64_t>();
  auto fits = within({.fields_bytes = prefix.fields_bytes,
                      .buffers = prefix.buffers,
                      .buffers_bytes = buffers_bytes,
                      .shared = prefix.shared},
                     limits_);
  if (!fits) return std::unexpected(std::move(fits.error()));
  prefix.buffers_bytes = static_cast<std::size_t>(buffers_bytes);
  return prefix;
}

Result<Frame> FrameReader::read_body(Prefix prefix, std::string_view body) {
  Cursor lengths(body.substr(0, prefix.buffers * kLengthBytes));
  Cursor rest(body.substr(prefix.buffers * kLengthBytes));
  Frame frame = std::move(prefix.frame);
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

}  // namespace trainyard::wire
