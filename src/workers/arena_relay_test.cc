#include "workers/arena_relay.h"

#include <expected>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sys/passing.h"
#include "wire/worker.h"

namespace trainyard::workers {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr ArenaRelay::End kSender = 1;
constexpr ArenaRelay::Arena kArena{.sender = kSender, .number = 5};

sys::Descriptor some_descriptor() { return std::move(sys::socket_pair().value().first); }

TEST(ArenaRelay, ReleasesWhenTheLastHasReleased) {
  ArenaRelay relay;
  EXPECT_TRUE(relay.take(kSender, some_descriptor()));
  EXPECT_TRUE(relay.named(kArena, {2, 3}));
  const auto two = relay.alias(kArena, 2);
  const auto three = relay.alias(kArena, 3);
  EXPECT_NE(two.number, three.number);
  EXPECT_TRUE(two.descriptor && three.descriptor) << "it goes once to each";
  relay.released(2, two.number);
  EXPECT_THAT(relay.take_releases(), IsEmpty());
  relay.released(2, two.number);
  EXPECT_THAT(relay.take_releases(), IsEmpty()) << "one counts once";
  relay.released(3, three.number);
  EXPECT_THAT(relay.take_releases(), ElementsAre(kArena));
}

TEST(ArenaRelay, SendsADescriptorOnceAndCountsEachNaming) {
  ArenaRelay relay;
  EXPECT_TRUE(relay.take(kSender, some_descriptor()));
  EXPECT_TRUE(relay.named(kArena, {2}));
  const auto first = relay.alias(kArena, 2);
  EXPECT_TRUE(relay.named(kArena, {2}));
  const auto second = relay.alias(kArena, 2);
  EXPECT_EQ(first.number, second.number);
  EXPECT_EQ(second.descriptor, nullptr);
  relay.released(2, first.number);
  relay.released(2, first.number);
  EXPECT_THAT(relay.take_releases(), ElementsAre(kArena, kArena));
}

TEST(ArenaRelay, ReleasesAtOnceWhatNobodyGets) {
  ArenaRelay relay;
  EXPECT_TRUE(relay.take(kSender, some_descriptor()));
  EXPECT_TRUE(relay.named(kArena, {}));
  EXPECT_THAT(relay.take_releases(), ElementsAre(kArena));
}

TEST(ArenaRelay, ReleasesForOneThatIsGone) {
  ArenaRelay relay;
  EXPECT_TRUE(relay.take(kSender, some_descriptor()));
  EXPECT_TRUE(relay.named(kArena, {2, 3}));
  relay.forget(2);
  EXPECT_THAT(relay.take_releases(), IsEmpty());
  relay.forget(3);
  EXPECT_THAT(relay.take_releases(), ElementsAre(kArena));
}

TEST(ArenaRelay, KeepsARetainedArenaOfASenderThatIsGone) {
  ArenaRelay relay;
  const ArenaRelay::Arena sent{.sender = kSender, .number = 6};
  EXPECT_TRUE(relay.take(kSender, some_descriptor()));
  EXPECT_TRUE(relay.take(kSender, some_descriptor()));
  EXPECT_TRUE(relay.named(kArena, {2, ArenaRelay::kRetained}));
  EXPECT_TRUE(relay.named(sent, {2}));
  const auto two = relay.alias(kArena, 2);
  relay.forget(kSender);
  EXPECT_FALSE(relay.named(sent, {3})) << "nobody comes for what is not retained";
  relay.released(2, two.number);
  EXPECT_TRUE(relay.named(kArena, {3}));
  EXPECT_NE(relay.alias(kArena, 3).descriptor, nullptr) << "one that comes later has it, too";
  relay.released(ArenaRelay::kRetained, kArena);
  EXPECT_FALSE(relay.named(kArena, {4})) << "closed when it is not retained any more";
}

TEST(ArenaRelay, RefusesAnArenaThatDidNotCome) {
  ArenaRelay relay;
  EXPECT_EQ(relay.named(kArena, {2}).error().message, "arena 5 was not handed over");
  for (std::size_t i = 0; i < ArenaRelay::kKnownMax; ++i)
    EXPECT_TRUE(relay.take(kSender, some_descriptor()));
  EXPECT_EQ(relay.take(kSender, some_descriptor()).error().message,
            "more descriptors than frames have named");
}

TEST(ArenaRelay, GivesANewNumberToWhatMayNotBeMappedAnyMore) {
  ArenaRelay relay;
  const auto name = [&](std::uint64_t number) {
    const ArenaRelay::Arena arena{.sender = kSender, .number = number};
    EXPECT_TRUE(relay.take(kSender, some_descriptor()));
    EXPECT_TRUE(relay.named(arena, {2}));
    return relay.alias(arena, 2);
  };
  const auto first = name(1);
  for (std::uint64_t i = 2; i <= ArenaRelay::kMappedMax + 1; ++i) name(i);
  const ArenaRelay::Arena arena{.sender = kSender, .number = 1};
  EXPECT_TRUE(relay.named(arena, {2}));
  const auto again = relay.alias(arena, 2);
  EXPECT_NE(again.number, first.number);
  EXPECT_NE(again.descriptor, nullptr);
  relay.released(2, first.number);
  EXPECT_THAT(relay.take_releases(), ElementsAre(arena)) << "the old number is still known";
}

}  // namespace
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
