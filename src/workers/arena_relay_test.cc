#include "workers/arena_relay.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sys/passing.h"

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
}  // namespace trainyard::workers
