#include "wire/frame.h"

#include <random>
#include <utility>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace trainyard::wire {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

/// Everything that came out of a reader: frames, then perhaps the error that ended it.
struct Read {
  std::vector<Frame> frames;
  std::string error;
};

void drain(FrameReader& reader, Read& read) {
  while (true) {
    auto next = reader.next();
    if (!next) read.error = next.error().message;
    std::optional<Frame> frame = next ? std::move(*next) : std::nullopt;
    if (!frame) return;
    read.frames.push_back(std::move(*frame));
  }
}

Read read_all(std::string_view bytes, const FrameLimits& limits = {}) {
  FrameReader reader(limits);
  Read read;
  reader.add(bytes);
  drain(reader, read);
  return read;
}

Frame full_frame() {
  return {.kind = FrameKind::Reply,
          .topic = 0x1122334455667788,
          .origin = 0xAABBCCDD,
          .sequence = 0x0102030405060708,
          .fields = R"({"a":1})",
          .buffers = {"xyz", "", "pq"}};
}

std::string bytes_of(const Frame& frame) { return encode(frame).value(); }

/// The bytes of a valid frame with one of them changed.
std::string spoiled(std::size_t at, char byte) {
  std::string bytes = bytes_of(full_frame());
  bytes[at] = byte;
  return bytes;
}

TEST(Frame, HasTheBytesThatTheProtocolSays) {
  using namespace std::string_literals;  // NOLINT(google-build-using-namespace): for ""s.
  EXPECT_EQ(bytes_of(full_frame()),
            "TYRD\x01\x04\0\0"s                  // magic, version, kind, flags
            "\x88\x77\x66\x55\x44\x33\x22\x11"s  // topic
            "\x08\x07\x06\x05\x04\x03\x02\x01"s  // sequence
            "\xDD\xCC\xBB\xAA"s                  // origin
            "\x07\0\0\0"s
            "\x03\0\0\0"s
            "\0\0\0\0"s            // bytes of fields, buffers, reserved
            "\x05\0\0\0\0\0\0\0"s  // bytes of buffers
            "\x03\0\0\0\0\0\0\0"s
            "\0\0\0\0\0\0\0\0"s
            "\x02\0\0\0\0\0\0\0"s  // each one's
            "{\"a\":1}"s
            "xyzpq"s);
}

TEST(Frame, IsReadAsItWasWritten) {
  const Read read = read_all(bytes_of(full_frame()));
  EXPECT_THAT(read.frames, ElementsAre(full_frame()));
  EXPECT_EQ(read.error, "");
  EXPECT_THAT(read_all(bytes_of({.kind = FrameKind::Hello})).frames,
              ElementsAre(Frame{.kind = FrameKind::Hello}));
}

TEST(FrameReader, GivesTwoFramesThatCameTogether) {
  const Read read = read_all(bytes_of(full_frame()) + bytes_of({.sequence = 9}));
  EXPECT_THAT(read.frames, ElementsAre(full_frame(), Frame{.sequence = 9}));
  EXPECT_EQ(read.error, "");
}

TEST(FrameReader, GivesTheSameFramesByteByByte) {
  const std::string bytes =
      bytes_of(full_frame()) + bytes_of({.sequence = 9}) + bytes_of(full_frame());
  FrameReader reader;
  Read read;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    reader.add(bytes.substr(i, 1));
    drain(reader, read);
    EXPECT_EQ(reader.in_frame(), i + 1 != bytes_of(full_frame()).size() &&
                                     i + 1 != bytes_of(full_frame()).size() + kPrefixBytes &&
                                     i + 1 != bytes.size());
  }
  EXPECT_THAT(read.frames, ElementsAre(full_frame(), Frame{.sequence = 9}, full_frame()));
  EXPECT_EQ(read.error, "");
}

Frame made_up(std::mt19937_64& random) {
  Frame frame{.kind = static_cast<FrameKind>(1 + (random() % 7)),
              .topic = random(),
              .origin = static_cast<std::uint32_t>(random()),
              .sequence = random(),
              .fields = std::string(random() % 40, 'f')};
  for (std::uint64_t i = random() % 4; i > 0; --i) {
    frame.buffers.emplace_back(random() % 60, static_cast<char>(random()));
  }
  return frame;
}

TEST(FrameReader, GivesTheSameFramesHoweverTheyAreSplit) {
  for (std::uint64_t seed = 1; seed <= 1'000; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    std::mt19937_64 random(seed);
    std::vector<Frame> frames;
    std::string bytes;
    for (std::uint64_t i = random() % 6; i > 0; --i) {
      frames.push_back(made_up(random));
      bytes += bytes_of(frames.back());
    }
    FrameReader reader;
    Read read;
    for (std::size_t at = 0; at < bytes.size();) {
      const std::size_t length = 1 + (random() % 100);
      reader.add(std::string_view(bytes).substr(at, length));
      at += length;
      if (random() % 3 != 0) drain(reader, read);
    }
    drain(reader, read);
    EXPECT_EQ(read.frames, frames);
    EXPECT_EQ(read.error, "");
    EXPECT_FALSE(reader.in_frame());
  }
}

TEST(FrameReader, TurnsAStrangerAwayAtTheFirstWrongByte) {
  EXPECT_EQ(read_all("GET / HTTP/1.1\r\n").error, "this is not trainyard's protocol");
  EXPECT_EQ(read_all("TYX").error, "this is not trainyard's protocol");
  EXPECT_EQ(read_all("TY").error, "");
}

TEST(FrameReader, SaysWhatIsWrongWithAPrefix) {
  EXPECT_EQ(read_all(spoiled(4, 7)).error, "version 7 of the protocol is spoken there, 1 here");
  EXPECT_EQ(read_all(spoiled(5, 0)).error, "a frame of unknown kind 0");
  EXPECT_EQ(read_all(spoiled(5, 10)).error, "a frame of unknown kind 10");
  EXPECT_EQ(read_all(spoiled(7, 1)).error, "a frame with unknown flags 256");
}

TEST(FrameReader, SaysWhenBuffersAreNotAsLongAsAnnounced) {
  EXPECT_EQ(read_all(spoiled(48, 9)).error, "a frame whose buffers are longer than announced");
  EXPECT_EQ(read_all(spoiled(48 + 7, '\xFF')).error,
            "a frame whose buffers are longer than announced");
  EXPECT_EQ(read_all(spoiled(48, 1)).error, "a frame whose buffers are shorter than announced");
}

TEST(FrameReader, GivesTheFramesBeforeAnErrorAndNoneBehindIt) {
  FrameReader reader;
  reader.add(bytes_of({.sequence = 1}) + spoiled(5, 99));
  Read read;
  drain(reader, read);
  EXPECT_THAT(read.frames, ElementsAre(Frame{.sequence = 1}));
  EXPECT_EQ(read.error, "a frame of unknown kind 99");
  reader.add(bytes_of({.sequence = 2}));
  drain(reader, read);
  EXPECT_THAT(read.frames, SizeIs(1));
  EXPECT_EQ(read.error, "a frame of unknown kind 99");
  EXPECT_FALSE(reader.in_frame());
}

TEST(FrameReader, KeepsToItsLimits) {
  const FrameLimits limits{.fields_bytes_max = 7, .buffers_max = 3, .buffers_bytes_max = 5};
  EXPECT_THAT(read_all(bytes_of(full_frame()), limits).frames, SizeIs(1));
  EXPECT_EQ(read_all(bytes_of(full_frame()), {.fields_bytes_max = 6}).error,
            "a frame with 7 bytes of fields, at most 6 are allowed");
  EXPECT_EQ(read_all(bytes_of(full_frame()), {.buffers_max = 2}).error,
            "a frame with 3 buffers, at most 2 are allowed");
  EXPECT_EQ(read_all(bytes_of(full_frame()), {.buffers_bytes_max = 4}).error,
            "a frame with 5 bytes of buffers, at most 4 are allowed");
  EXPECT_EQ(read_all(bytes_of(full_frame()), kControlLimits).error,
            "a frame with 3 buffers, at most 0 are allowed");
}

TEST(FrameReader, RefusesLengthsThatAreNotThereYet) {
  // Only the prefix comes, and it announces more than there is memory.
  const std::string huge = bytes_of({}).replace(28, 4, "\xFF\xFF\xFF\xFF");
  EXPECT_EQ(read_all(huge).error,
            "a frame with 4294967295 bytes of fields, at most 1048576 are allowed");
  const std::string buffers = bytes_of({}).replace(40, 8, std::string(8, '\xFF'));
  EXPECT_EQ(read_all(buffers).error,
            "a frame with 18446744073709551615 bytes of buffers, at most 67108864 are allowed");
}

TEST(Encode, RefusesWhatNobodyWouldRead) {
  EXPECT_EQ(encode({.fields = std::string(7, 'x')}, {.fields_bytes_max = 6}).error().message,
            "a frame with 7 bytes of fields, at most 6 are allowed");
  EXPECT_EQ(encode({.buffers = {"abc", "d"}}, {.buffers_bytes_max = 3}).error().message,
            "a frame with 4 bytes of buffers, at most 3 are allowed");
  EXPECT_EQ(encode({.buffers = {""}}, kControlLimits).error().message,
            "a frame with 1 buffers, at most 0 are allowed");
}

TEST(FramePrefix, TellsAHubAllThatItNeeds) {
  const Frame frame{.kind = FrameKind::Event,
                    .flags = kRetainedFlag,
                    .topic = 0x1122334455667788,
                    .origin = 7,
                    .sequence = 9,
                    .fields = "{}",
                    .buffers = {"abc"},
                    .shared = {{.arena = 1, .offset = 2, .bytes = 3}, {.arena = 4}}};
  std::string bytes = encode(frame).value();
  EXPECT_FALSE(
      read_prefix(std::string_view(bytes).substr(0, kPrefixBytes - 1), {}).value().has_value());
  const FramePrefix prefix = read_prefix(bytes, {}).value().value();
  EXPECT_EQ(prefix.bytes(), bytes.size());
  EXPECT_EQ(prefix.topic, frame.topic);
  EXPECT_EQ(prefix.origin, 7U);
  EXPECT_EQ(prefix.flags, kRetainedFlag);
  EXPECT_EQ(read_frame(prefix, bytes).value(), frame);
  EXPECT_EQ(arena_at(bytes, prefix, 1), 4U);
  EXPECT_EQ(shared_bytes(bytes, prefix), 3U);
  set_arena_at(bytes, 0, prefix, 1, 99);
  Frame other = frame;
  other.shared[1].arena = 99;
  EXPECT_EQ(read_frame(prefix, bytes).value(), other);
}

TEST(Frame, HasFlagsOnlyWhereItIsAnEvent) {
  Frame frame{.kind = FrameKind::Report, .flags = kRetainedFlag};
  EXPECT_EQ(read_prefix(encode(frame).value(), {}).error().message, "a frame with unknown flags 1");
  frame = {.kind = FrameKind::Event, .flags = 2};
  EXPECT_EQ(read_prefix(encode(frame).value(), {}).error().message, "a frame with unknown flags 2");
}

TEST(Frame, IsEncodedBehindWhatIsThere) {
  std::string bytes = "before";
  EXPECT_TRUE(encode_behind(bytes, {.fields = "{}"}));
  EXPECT_EQ(bytes, "before" + encode({.fields = "{}"}).value());
  const std::string same = bytes;
  EXPECT_FALSE(encode_behind(bytes, {.fields = "{}"}, {.fields_bytes_max = 1}));
  EXPECT_EQ(bytes, same);
}

}  // namespace
}  // namespace trainyard::wire
