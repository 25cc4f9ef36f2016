#include "schedule/neighbours.h"

#include <gtest/gtest.h>

#include "schedule/test_yard.h"

namespace trainyard::schedule {
namespace {

const model::Capacity kFourCards{.memory = gb(64),
                                 .cpus = model::cpus(8),
                                 .gpus = {{.uuid = "GPU-0", .memory = gb(10)},
                                          {.uuid = "GPU-1", .memory = gb(10)},
                                          {.uuid = "GPU-2", .memory = gb(10)},
                                          {.uuid = "GPU-3", .memory = gb(10)}}};

/// It has these cards for itself.
model::Neighbour with_cards(std::string ticket, std::uint32_t user,
                            std::vector<std::string> cards) {
  model::Neighbour it{.user = user, .is_ours = user == 0, .its = {.ticket = std::move(ticket)}};
  for (std::string& uuid : cards) {
    it.its.held.cards.push_back({.uuid = std::move(uuid), .tasks = 1, .whole = true});
    ++it.its.held.tasks;
  }
  return it;
}

model::Neighbour waiting(model::Neighbour it, Duration waits, bool goes_first) {
  it.its.want = model::Want{.gpus = 1, .since_unix_s = 7};
  it.waits = waits;
  it.goes_first = goes_first;
  return it;
}

NeighbourBook::Starter starter(double has) {
  return {.request = {.gpus = 1}, .gpus = {{3}}, .has = has};
}

constexpr Duration kMinute{60'000};

TEST(NeighbourBook, AddsUpWhatAllHoldAndAreAboutToHold) {
  NeighbourBook book(kFourCards);
  model::Neighbour one{.its = {.ticket = "1",
                               .held = {.memory = gb(3), .unused = gb(1), .cpus = model::cpus(2)},
                               .claimed = {.memory = gb(2), .unused = gb(2)}}};
  one.its.claimed.cards = {{.uuid = "GPU-1", .memory = gb(4), .unused = gb(4), .tasks = 1}};
  book.see({one, with_cards("2", 7, {"GPU-0", "GPU-unknown"})});
  EXPECT_EQ(book.on_host(),
            (HostNeighbours{.memory = gb(5), .unused = gb(3), .cpus = model::cpus(2)}));
  EXPECT_EQ(book.on_cards()[0], (CardNeighbours{.tasks = 1, .whole = true}));
  EXPECT_EQ(book.on_cards()[1], (CardNeighbours{.memory = gb(4), .unused = gb(4), .tasks = 1}));
  EXPECT_EQ(book.on_cards()[2], CardNeighbours{});
}

TEST(NeighbourBook, AllTogetherHoldNoMoreThanTheMachineHas) {
  NeighbourBook book(kFourCards);
  model::Neighbour one{
      .its = {.ticket = "1", .held = {.memory = gb(40), .unused = gb(40), .cpus = model::cpus(5)}}};
  one.its.held.cards = {{.uuid = "GPU-1", .memory = gb(8), .unused = gb(8), .tasks = 1}};
  model::Neighbour other = one;
  other.its.ticket = "2";
  book.see({one, other});
  EXPECT_EQ(book.on_host(),
            (HostNeighbours{.memory = gb(64), .unused = gb(64), .cpus = model::cpus(8)}));
  EXPECT_EQ(book.on_cards()[1], (CardNeighbours{.memory = gb(10), .unused = gb(10), .tasks = 2}));
}

TEST(NeighbourBook, WhatIsSaidToBeTakenCountsAsUntakenUntilTheMachineWasLookedAt) {
  NeighbourBook book(kFourCards);
  model::Neighbour one{.its = {.ticket = "1", .held = {.memory = gb(8), .unused = gb(8)}}};
  book.see({one});
  book.host_was_read();
  one.its.held.unused = gb(1);
  book.see({one});
  EXPECT_EQ(book.on_host().unused, gb(8)) << "the last reading shows nothing of it yet";
  book.host_was_read();
  EXPECT_EQ(book.on_host().unused, gb(1));
  one.its.held = {};
  book.see({one});
  EXPECT_EQ(book.on_host().unused, Bytes{}) << "what it does not hold any more it will not take";
}

TEST(NeighbourBook, TheSameOfGpus) {
  NeighbourBook book(kFourCards);
  model::Neighbour one{.its = {.ticket = "1"}};
  one.its.held.cards = {{.uuid = "GPU-2", .memory = gb(8), .unused = gb(8), .tasks = 1}};
  book.see({one});
  book.gpus_were_read();
  one.its.held.cards.front().unused = {};
  book.see({one});
  EXPECT_EQ(book.on_cards()[2].unused, gb(8));
  book.gpus_were_read();
  EXPECT_EQ(book.on_cards()[2].unused, Bytes{});
}

TEST(NeighbourBook, WhoMayHaveMoreThanWeIsNotCountedInWhatWeMayHave) {
  NeighbourBook book(kFourCards);
  book.see({{.its = {.ticket = "1",
                     .memory_total = gb(65),
                     .cpus_total = model::cpus(8),
                     .held = {.memory = gb(60), .cpus = model::cpus(3)}}}});
  EXPECT_EQ(book.on_host(), (HostNeighbours{.cpus = model::cpus(3)}));
}

TEST(Fairness, WhoHasMoreThanItsShareGivesWayToWhoWaitsWithLess) {
  NeighbourBook book(kFourCards);
  EXPECT_FALSE(book.gives_way(starter(3), at(0))) << "nobody is there";
  book.see({waiting(with_cards("9", 7, {}), kMinute, false)});
  EXPECT_TRUE(book.gives_way(starter(2), at(0))) << "two users, two cards each";
  EXPECT_FALSE(book.gives_way(starter(1), at(0))) << "the second is within our share";
  book.see({with_cards("9", 7, {})});
  EXPECT_FALSE(book.gives_way(starter(3), at(0))) << "it does not wait";
}

TEST(Fairness, AUserHasTheSameShareWithTwoRunsAsWithOne) {
  NeighbourBook book(kFourCards);
  // Two runs of another user beside ours, who has one each of its two cards.
  book.see({with_cards("1", 7, {"GPU-0"}), waiting(with_cards("2", 7, {"GPU-1"}), kMinute, true)});
  EXPECT_FALSE(book.gives_way(starter(1), at(0))) << "two of four are ours";
  // Another run of ours: one card each is our share.
  book.see({waiting(with_cards("1", 0, {}), kMinute, true), with_cards("2", 7, {"GPU-1"})});
  EXPECT_TRUE(book.gives_way(starter(1), at(0)));
}

TEST(Fairness, OfTwoWithAsMuchTheOneGoesFirstThatHasWaitedLonger) {
  const model::Capacity one_card{
      .memory = gb(64), .cpus = model::cpus(8), .gpus = {{.uuid = "GPU-0", .memory = gb(10)}}};
  NeighbourBook book(one_card);
  const NeighbourBook::Starter we{.request = {.gpus = 1}, .gpus = {{0}}, .has = 0};
  book.see({waiting(with_cards("9", 7, {}), kMinute, true)});
  EXPECT_TRUE(book.gives_way(we, at(0)));
  book.see({waiting(with_cards("9", 7, {}), kMinute, false)});
  EXPECT_FALSE(book.gives_way(we, at(0)));
}

TEST(Fairness, WhoHasOnlyJustBegunToWaitMayBeStartingItself) {
  NeighbourBook book(kFourCards);
  book.see({waiting(with_cards("9", 7, {}), NeighbourBook::kFreshWait - Duration{1}, true)});
  EXPECT_FALSE(book.gives_way(starter(3), at(0)));
  book.see({waiting(with_cards("9", 7, {}), NeighbourBook::kFreshWait, true)});
  EXPECT_TRUE(book.gives_way(starter(3), at(0)));
}

TEST(Fairness, WhoWaitsForWhatWouldNotDoIsNotInTheWay) {
  NeighbourBook book(kFourCards);
  model::Neighbour large = waiting(with_cards("9", 7, {}), kMinute, true);
  large.its.want->gpu_memory = gb(11);
  model::Neighbour of_cpus = waiting(with_cards("8", 7, {}), kMinute, true);
  of_cpus.its.want = model::Want{.cpus = model::cpus(1), .since_unix_s = 7};
  book.see({large, of_cpus});
  EXPECT_FALSE(book.gives_way(starter(3), at(0)));
}

TEST(Fairness, WhoHasWaitedForVeryLongIsLetThroughWhateverItHas) {
  NeighbourBook book(kFourCards);
  const model::Neighbour much = with_cards("9", 7, {"GPU-0", "GPU-1", "GPU-2"});
  book.see({waiting(much, NeighbourBook::kLongWait - Duration{1}, true)});
  EXPECT_FALSE(book.gives_way(starter(0), at(0)));
  book.see({waiting(much, NeighbourBook::kLongWait, true)});
  EXPECT_TRUE(book.gives_way(starter(0), at(0)));
  book.see({waiting(much, NeighbourBook::kLongWait, false)});
  EXPECT_FALSE(book.gives_way(starter(0), at(0))) << "we have waited longer";
}

TEST(Fairness, ExactlyOneOfTwoRunsThatWaitForAGpuGivesWay) {
  for (const Duration much_waits : {kMinute, NeighbourBook::kLongWait}) {
    const Duration little_waits = kMinute / 2;
    const bool is_long = much_waits == NeighbourBook::kLongWait;
    NeighbourBook with_much(kFourCards);
    model::Neighbour little = waiting(with_cards("9", 7, {}), little_waits, /*goes_first=*/false);
    little.we_wait = much_waits;
    with_much.see({little});
    EXPECT_EQ(with_much.gives_way(starter(3), at(0)), !is_long);
    NeighbourBook with_little(kFourCards);
    model::Neighbour much = with_cards("8", 8, {"GPU-0", "GPU-1", "GPU-2"});
    much = waiting(std::move(much), much_waits, /*goes_first=*/true);
    much.we_wait = little_waits;
    with_little.see({much});
    EXPECT_EQ(with_little.gives_way(starter(0), at(0)), is_long);
  }
}

TEST(Fairness, ALargeTaskThatHasWaitedForVeryLongIsNotPassedOnTheHostBySmallerOnes) {
  NeighbourBook book(kFourCards);
  model::Neighbour large = waiting(with_cards("9", 7, {}), NeighbourBook::kLongWait, true);
  large.its.want = model::Want{.memory = gb(60), .since_unix_s = 7};
  book.see({large});
  const NeighbourBook::Starter small{.request = {.memory = gb(1)}, .gpus = {}, .has = 0};
  EXPECT_TRUE(book.gives_way(small, at(0)));
}

TEST(Fairness, NobodyGivesWayForEverToAUserWhoStartsNothing) {
  NeighbourBook book(kFourCards);
  model::Neighbour other = waiting(with_cards("9", 7, {}), kMinute, true);
  book.see({other});
  EXPECT_TRUE(book.gives_way(starter(3), at(10)));
  EXPECT_TRUE(book.gives_way(starter(3), at(10) + (NeighbourBook::kPatience - Duration{1})));
  const Instant lost = at(10) + NeighbourBook::kPatience;
  EXPECT_FALSE(book.gives_way(starter(3), lost));
  other.its.want->since_unix_s = 8;
  book.see({other, waiting(with_cards("8", 7, {}), kMinute, true)});
  EXPECT_FALSE(book.gives_way(starter(3), lost + kMinute)) << "another wait, and another file";
  book.see({});
  book.see({other});
  EXPECT_FALSE(book.gives_way(starter(3), lost + 2 * kMinute)) << "a new file";
  book.see({waiting(with_cards("7", 8, {}), kMinute, true)});
  EXPECT_TRUE(book.gives_way(starter(3), lost + 3 * kMinute)) << "another user";
  book.see({other});
  EXPECT_FALSE(book.gives_way(starter(3), lost + 3 * kMinute));
  book.see({waiting(with_cards("9", 7, {"GPU-0"}), kMinute, true)});
  EXPECT_TRUE(book.gives_way(starter(3), lost + 4 * kMinute)) << "it has started something";
}

TEST(Fairness, ARunThatStartsSomethingRenewsTheTurnOfNoOtherRunOfItsUser) {
  NeighbourBook book(kFourCards);
  const model::Neighbour waits =
      waiting(with_cards("1", 7, {}), NeighbourBook::kLongWait, /*goes_first=*/true);
  book.see({waits, with_cards("2", 7, {})});
  EXPECT_TRUE(book.gives_way(starter(0), at(0)));
  book.see({waits, with_cards("2", 7, {"GPU-0"})});
  const Instant lost = at(0) + NeighbourBook::kPatience;
  EXPECT_TRUE(book.gives_way(starter(0), at(0) + (NeighbourBook::kPatience - Duration{1})));
  EXPECT_FALSE(book.gives_way(starter(0), lost));
  book.see({waits, with_cards("2", 7, {"GPU-0", "GPU-1"})});
  EXPECT_FALSE(book.gives_way(starter(0), lost + kMinute));
  model::Neighbour has_started = waits;
  has_started.its.held = with_cards("1", 7, {"GPU-2"}).its.held;
  book.see({has_started, with_cards("2", 7, {"GPU-0", "GPU-1"})});
  EXPECT_TRUE(book.gives_way(starter(0), lost + 2 * kMinute));
}

TEST(Fairness, AUserWhoStartsNothingLosesTheTurnForLongerEachTime) {
  NeighbourBook book(kFourCards);
  model::Neighbour other = waiting(with_cards("9", 7, {}), kMinute, true);
  constexpr int kMinutesOfADay = 1'440;
  int given = 0;
  for (int minute = 0; minute < kMinutesOfADay; ++minute) {
    if (minute % 5 == 0) ++other.its.want->since_unix_s;
    book.see({other});
    if (book.gives_way(starter(3), at(0) + minute * kMinute)) ++given;
  }
  // Fifteen minutes each, then none for 15, 30, 60, 120, 240, 480 and 480.
  EXPECT_EQ(given, 7 * 15);
}

TEST(Fairness, AUserWhoHasTheirShareInOneRunIsNotLetThroughInAnother) {
  NeighbourBook book(kFourCards);
  const model::Neighbour has = with_cards("1", 7, {"GPU-0", "GPU-1"});
  const model::Neighbour waits = waiting(with_cards("2", 7, {}), kMinute, false);
  book.see({has, waits});
  EXPECT_FALSE(book.gives_way(starter(2), at(0))) << "both users have two of four GPUs";
  book.see({with_cards("1", 7, {"GPU-0"}), waits});
  EXPECT_TRUE(book.gives_way(starter(2), at(0)));
}

TEST(Fairness, OfTheHostTheLargerPartOfMemoryAndCpusCounts) {
  NeighbourBook book(kFourCards);
  EXPECT_DOUBLE_EQ(book.size_of({.memory = gb(16), .cpus = model::cpus(1)}, {}), 0.25);
  EXPECT_DOUBLE_EQ(book.size_of({.cpus = model::cpus(4)}, {}), 0.5);
  EXPECT_DOUBLE_EQ(book.size_of({.gpus = 2, .gpu_memory = gb(5)}, {{0}, {1}}), 1.0);
  EXPECT_DOUBLE_EQ(book.size_of({.gpus = 2}, {{0}, {1}}), 2.0);
}

}  // namespace
}  // namespace trainyard::schedule
