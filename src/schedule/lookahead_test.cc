#include "schedule/lookahead.h"

#include <algorithm>

#include <gtest/gtest.h>

namespace trainyard::schedule {
namespace {

Duration s(std::int64_t seconds) { return Duration{seconds * 1000}; }

Prospect on_gpu(Bytes gpu_memory, Duration train, Duration load = {}, Bytes memory = gb(1)) {
  return {.load = load,
          .train = train,
          .request = {.memory = memory, .gpus = 1, .gpu_memory = gpu_memory},
          .two_phase = load > Duration{0}};
}

const Stock kOneCard{.memory = gb(10), .cpus = model::cpus(8), .gpus = {gb(8)}};

TEST(LookAhead, PutsTheLongestFirstWhereThatIsBest) {
  // Two at a time: 30 beside 10, 10, 10.
  const std::vector<Prospect> tasks{on_gpu(gb(4), s(10)), on_gpu(gb(4), s(10)),
                                    on_gpu(gb(4), s(10)), on_gpu(gb(4), s(30))};
  const Foresight seen = look_ahead(tasks, kOneCard, 100);
  EXPECT_EQ(seen.makespan, s(30));
  EXPECT_EQ(seen.order.front(), 3U);
  EXPECT_EQ(shortest_possible(tasks, kOneCard), s(30));
}

TEST(LookAhead, FindsAnOrderThatNoRuleGives) {
  // 5 beside 3 and 4 beside 4 fill the card; the largest first leave gaps.
  std::vector<Prospect> tasks;
  for (const int memory : {5, 4, 3, 4}) tasks.push_back(on_gpu(gb(memory), s(10)));
  const Foresight seen = look_ahead(tasks, kOneCard, 200);
  EXPECT_EQ(seen.makespan, s(20));
  EXPECT_EQ(shortest_possible(tasks, kOneCard), s(20));
}

TEST(LookAhead, KeepsACardForOneThatWantsItWhole) {
  std::vector<Prospect> tasks{on_gpu(gb(1), s(10)), on_gpu({}, s(5)), on_gpu(gb(8), s(5))};
  EXPECT_EQ(look_ahead(tasks, kOneCard, 100).makespan, s(20));
}

TEST(LookAhead, CountsThatThoseGoSlowerTogetherThatWantMoreThanACard) {
  std::vector<Prospect> tasks{on_gpu(gb(4), s(10)), on_gpu(gb(4), s(10))};
  EXPECT_EQ(look_ahead(tasks, kOneCard, 10).makespan, s(10));
  for (Prospect& it : tasks) it.gpu_share = 500;
  EXPECT_EQ(look_ahead(tasks, kOneCard, 10).makespan, s(10));
  for (Prospect& it : tasks) it.gpu_share = 1000;
  EXPECT_EQ(look_ahead(tasks, kOneCard, 10).makespan, s(20));
  // A third one comes when both have ended; it has the card alone.
  tasks.push_back(on_gpu(gb(4), s(10)));
  tasks.back().gpu_share = 1000;
  EXPECT_EQ(look_ahead(tasks, kOneCard, 10).makespan, s(30));
}

TEST(LookAhead, SpreadsTasksOverCardsUnlessOneWaitsForAWholeCard) {
  Stock two_cards{.memory = gb(10), .cpus = model::cpus(8), .gpus = {gb(8), gb(8)}};
  std::vector<Prospect> tasks{on_gpu(gb(4), s(10)), on_gpu(gb(4), s(10))};
  for (Prospect& it : tasks) it.gpu_share = 1000;
  EXPECT_EQ(look_ahead(tasks, two_cards, 10).makespan, s(20)) << "on one card";
  two_cards.spread_max = 2;
  EXPECT_EQ(look_ahead(tasks, two_cards, 10).makespan, s(10));
  two_cards.spread_max = 1;
  EXPECT_EQ(look_ahead(tasks, two_cards, 10).makespan, s(20));
  two_cards.spread_max = 2;
  tasks.push_back(on_gpu({}, s(5)));
  EXPECT_EQ(look_ahead(tasks, two_cards, 1).makespan, s(20))
      << "the two that take longest go first, and leave a card to the third";
}

TEST(LookAhead, CountsTheTimeToLoadAndTheMemoryThatIsHeldMeanwhile) {
  const std::vector<Prospect> one{on_gpu(gb(8), s(10), s(5))};
  EXPECT_EQ(look_ahead(one, kOneCard, 10).makespan, s(15));
  // The second loads while the first trains; with too little memory it cannot.
  const std::vector<Prospect> two(2, on_gpu(gb(8), s(10), s(5)));
  EXPECT_EQ(look_ahead(two, kOneCard, 10).makespan, s(25));
  const std::vector<Prospect> large(2, on_gpu(gb(8), s(10), s(5), gb(6)));
  EXPECT_EQ(look_ahead(large, kOneCard, 10).makespan, s(30));
}

TEST(LookAhead, CountsCpusOfThoseThatWantNoGpu) {
  const std::vector<Prospect> tasks(
      4, {.train = s(10), .request = {.memory = gb(1), .cpus = model::cpus(4)}});
  EXPECT_EQ(look_ahead(tasks, kOneCard, 10).makespan, s(20));
}

TEST(LookAhead, SaysTheSameEveryTimeAndNamesEachTaskOnce) {
  std::vector<Prospect> tasks;
  for (std::int64_t i = 0; i < 30; ++i) {
    tasks.push_back(on_gpu(mb(500 + (i * 7919 % 6000)), s(1 + (i * 31 % 60)), s(1 + (i % 5))));
  }
  const Foresight once = look_ahead(tasks, kOneCard, 300);
  EXPECT_EQ(once.order, look_ahead(tasks, kOneCard, 300).order);
  std::vector<std::uint32_t> sorted = once.order;
  std::ranges::sort(sorted);
  std::vector<std::uint32_t> all(tasks.size());
  std::ranges::generate(all, [next = 0U]() mutable { return next++; });
  EXPECT_EQ(sorted, all);
  EXPECT_LE(once.runs, 300);
  EXPECT_GE(once.makespan, shortest_possible(tasks, kOneCard));
}

TEST(LookAhead, FindsTheSameInPiecesAsAtOnce) {
  std::vector<Prospect> tasks;
  for (int i = 0; i < 30; ++i)
    tasks.push_back(on_gpu(gb(1 + (i * 7) % 5), s(3 + (i * 11) % 9), s(1)));
  const Foresight once = look_ahead(tasks, kOneCard, 300);
  LookAhead pieces(tasks, kOneCard, 300);
  int rounds = 0;
  Duration before = Duration::max();
  while (!pieces.is_done()) {
    const bool better = pieces.go_on(7);
    EXPECT_EQ(better, pieces.best().makespan < before);
    before = pieces.best().makespan;
    ++rounds;
  }
  EXPECT_GT(rounds, 1);
  EXPECT_EQ(pieces.best().order, once.order);
  EXPECT_EQ(pieces.best().makespan, once.makespan);
  EXPECT_EQ(pieces.best().runs, once.runs);
}

}  // namespace
}  // namespace trainyard::schedule
