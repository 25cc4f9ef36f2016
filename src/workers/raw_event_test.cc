#include "workers/raw_event.h"

#include <cstdint>
#include <expected>
#include <limits>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "wire/worker.h"

namespace trainyard::workers {
namespace {

using testing::HasSubstr;

/// Bytes that a shared buffer may have next to the other one, of 2 bytes.
constexpr std::uint64_t kMost = wire::kEventBuffersBytesMax - 2;

wire::Frame event(std::uint64_t shared_bytes) {
  return {.kind = wire::FrameKind::Event,
          .flags = wire::kRetainedFlag,
          .topic = 5,
          .origin = 3,
          .sequence = 9,
          .fields = "{}",
          .buffers = {wire::shapes_text({{.dtype = 0, .shared = true, .shape = {3}},
                                         {.dtype = 0, .shared = false, .shape = {2}}}),
                      "yz"},
          .shared = {{.arena = 8, .offset = 16, .bytes = shared_bytes}}};
}

Result<std::string> raw_of(const wire::Frame& frame, const SharedBytes& bytes_of) {
  const std::string text = wire::encode(frame, wire::kWorkerLimits).value();
  return raw_event(**wire::read_prefix(text, wire::kWorkerLimits), text, bytes_of);
}

TEST(RawEvent, HasAllItsBuffersInTheFrame) {
  const std::string memory = "abc";
  const auto raw = raw_of(event(3), [&](const wire::SharedBuffer& place) {
    EXPECT_EQ(place, event(3).shared.front());
    return Result<std::span<const std::byte>>(std::as_bytes(std::span(memory)));
  });
  wire::FrameReader reader(wire::kWorkerLimits);
  reader.add(raw.value());
  wire::Frame expected = event(3);
  expected.shared.clear();
  expected.buffers = {wire::shapes_text({{.dtype = 0, .shared = false, .shape = {3}},
                                         {.dtype = 0, .shared = false, .shape = {2}}}),
                      "abc", "yz"};
  EXPECT_EQ(**reader.next(), expected);
}

/// The description of their shapes does not count.
TEST(RawEvent, HasBuffersOf64MiBTogether) {
  const std::string memory(kMost, 'x');
  const auto raw = raw_of(event(kMost), [&](const wire::SharedBuffer&) {
    return Result<std::span<const std::byte>>(std::as_bytes(std::span(memory)));
  });
  wire::FrameReader reader(wire::kWorkerLimits);
  reader.add(raw.value());
  const wire::Frame frame = **reader.next();
  EXPECT_EQ(frame.buffers.at(1).size() + frame.buffers.at(2).size(), wire::kEventBuffersBytesMax);
}

TEST(RawEvent, IsNoneWhereItIsTooLargeOrIsNotWhatItSays) {
  const auto never = [](const wire::SharedBuffer&) -> Result<std::span<const std::byte>> {
    return std::unexpected(Error{"it is gone"});
  };
  EXPECT_EQ(raw_of(event(kMost + 1), never).error().message,
            "its buffers have 67108865 bytes, and at most 67108864 can go to another machine");
  EXPECT_THAT(raw_of(event(std::numeric_limits<std::uint64_t>::max()), never).error().message,
              HasSubstr("at most 67108864 can go to another machine"));
  EXPECT_EQ(raw_of(event(3), never).error().message, "it is gone");
  wire::Frame less = event(3);
  less.buffers.pop_back();
  const std::string memory = "abc";
  const auto there = [&](const wire::SharedBuffer&) {
    return Result<std::span<const std::byte>>(std::as_bytes(std::span(memory)));
  };
  EXPECT_EQ(raw_of(less, there).error().message, "a buffer is not there");
  wire::Frame none = event(3);
  none.buffers.clear();
  EXPECT_EQ(raw_of(none, there).error().message, "an event without shapes");
}

}  // namespace
}  // namespace trainyard::workers
