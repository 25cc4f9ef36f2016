#include "workers/waits.h"

#include <numeric>
#include <utility>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace trainyard::workers {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using wire::WaitKind;

constexpr Duration kStart{1'000};

Duration at(std::int64_t ms) { return kStart + Duration(ms); }

Wait at_barrier(std::int64_t from, std::int64_t to, std::vector<int> whom = {1}) {
  return {.kind = WaitKind::Barrier,
          .name = "epoch",
          .whom = std::move(whom),
          .from = at(from),
          .to = at(to)};
}

/// With the workers 0, 1, and so on.
Waits waits_of(int workers) {
  Waits waits(kStart);
  for (int node = 0; node < workers; ++node) waits.add(node, {"collector"});
  return waits;
}

wire::WorkerRecord first(const Waits& waits) { return waits.record(at(0), false).workers.front(); }

TEST(Waits, AreNotedWithTheLivesOfEachWorker) {
  Waits waits = waits_of(2);
  waits.begins(0, 1, at(5));
  waits.comes(0, at(8));
  waits.waited(0, at_barrier(10, 40));
  waits.ends(0, "lost", at(50));
  waits.begins(0, 2, at(70));
  EXPECT_EQ(
      waits.record(at(90), true),
      (wire::ParallelRecord{
          .span_ms = 90,
          .ended = true,
          .workers = {
              {.node = 0,
               .roles = {"collector"},
               .lives = {{.number = 1, .from_ms = 5, .came_ms = 8, .to_ms = 50, .outcome = "lost"},
                         {.number = 2, .from_ms = 70}},
               .waits = {{.kind = WaitKind::Barrier,
                          .name = "epoch",
                          .whom = {1},
                          .from_ms = 10,
                          .to_ms = 40,
                          .waited_ms = 30}},
               .totals = {{.kind = WaitKind::Barrier,
                           .name = "epoch",
                           .whom = {1},
                           .waited_ms = 30,
                           .count = 1}}},
              {.node = 1, .roles = {"collector"}}}}));
}

TEST(Waits, OfLessThanAMillisecondAndOfStrangersAreNone) {
  Waits waits = waits_of(1);
  waits.waited(0, at_barrier(10, 10));
  waits.waited(7, at_barrier(10, 90));
  waits.begins(7, 1, at(1));
  waits.ends(7, "failed", at(2));
  EXPECT_EQ(waits.record(at(0), false).workers,
            (std::vector<wire::WorkerRecord>{{.node = 0, .roles = {"collector"}}}));
}

TEST(Waits, ForTheSameWithHardlyAnythingBetweenThemAreOne) {
  Waits waits = waits_of(1);
  waits.waited(0, at_barrier(10, 20));
  waits.waited(0, at_barrier(21, 30));
  waits.waited(0, at_barrier(31, 40, {2}));
  waits.waited(0, at_barrier(42, 50, {2}));
  std::vector<std::string> shown;
  for (const wire::WorkerWait& it : first(waits).waits) {
    shown.push_back(fmt::format("{}-{} {} ms {}", it.from_ms, it.to_ms, it.waited_ms, it.count));
  }
  EXPECT_THAT(shown, ElementsAre("10-30 19 ms 2", "31-40 9 ms 1", "42-50 8 ms 1"));
}

TEST(Waits, ThatAreTooManyAreJoinedAndGoOnCoveringAllOfTheTime) {
  constexpr std::int64_t kMany = 100'000;
  Waits waits = waits_of(2);
  for (std::int64_t i = 0; i < kMany; ++i) {
    waits.waited(0, at_barrier(10 * i, (10 * i) + 4, {static_cast<int>(i % 3)}));
  }
  const wire::WorkerRecord record = first(waits);
  EXPECT_LE(record.waits.size(), wire::kRecordWaitsMax);
  EXPECT_GE(record.waits.size(), wire::kRecordWaitsMax / 2);
  EXPECT_EQ(record.waits.front().from_ms, 0);
  EXPECT_EQ(record.waits.back().to_ms, (10 * (kMany - 1)) + 4);
  const auto sum = [&](auto of) {
    return std::accumulate(record.waits.begin(), record.waits.end(), std::int64_t{0},
                           [&](std::int64_t all, const wire::WorkerWait& it) {
                             return all + static_cast<std::int64_t>(it.*of);
                           });
  };
  EXPECT_EQ(sum(&wire::WorkerWait::count), kMany);
  EXPECT_EQ(sum(&wire::WorkerWait::waited_ms), 4 * kMany);
  ASSERT_EQ(record.totals.size(), 3U);
  EXPECT_EQ(record.totals[0].count + record.totals[1].count + record.totals[2].count, kMany);
}

TEST(Waits, OfManyWorkersAreFewerForEach) {
  Waits waits = waits_of(1'024);
  for (std::int64_t i = 0; i < 1'000; ++i) waits.waited(0, at_barrier(10 * i, (10 * i) + 4));
  EXPECT_LE(first(waits).waits.size(), Waits::kAllMax / 1'024);
  EXPECT_THAT(waits_of(2'000).record(at(0), false).workers,
              ::testing::SizeIs(wire::kRecordWorkersMax));
}

TEST(Waits, ForTooManyNamesAreCountedTogether) {
  Waits waits = waits_of(1);
  for (std::size_t i = 0; i < wire::kRecordTotalsMax + 10; ++i) {
    Wait wait = at_barrier(0, 5);
    wait.name = fmt::format("{:0100}", i);
    waits.waited(0, wait);
  }
  // The beginning of a long name is what is kept of it.
  EXPECT_EQ(first(waits).totals.size(), 1U);
  for (std::size_t i = 0; i < wire::kRecordTotalsMax + 9; ++i) {
    Wait wait = at_barrier(0, 5);
    wait.name = fmt::format("{}", i);
    waits.waited(0, wait);
  }
  EXPECT_EQ(first(waits).totals.size(), wire::kRecordTotalsMax);
  EXPECT_EQ(first(waits).waited_beside_ms, 50);
}

TEST(Waits, OfAWorkerThatBeginsAgainAndAgainKeepTheLastLives) {
  Waits waits = waits_of(1);
  for (std::uint32_t life = 1; life <= wire::kRecordLivesMax + 3; ++life) {
    waits.begins(0, life, at(life));
  }
  EXPECT_EQ(first(waits).lives.size(), wire::kRecordLivesMax);
  EXPECT_EQ(first(waits).lives.front().number, 4U);
  EXPECT_EQ(first(waits).lives_left_out, 3U);
  EXPECT_THAT(first(waits).waits, IsEmpty());
}

TEST(Waits, ThatCanBeReadHoweverManyThereAre) {
  Waits waits = waits_of(64);
  for (int node = 0; node < 64; ++node) {
    for (std::int64_t i = 0; i < 1'000; ++i) {
      Wait wait = at_barrier(10 * i, (10 * i) + 4, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10});
      wait.name = std::string(300, 'n') + std::to_string(i);
      waits.waited(node, wait);
    }
  }
  const wire::ParallelRecord record = waits.record(at(90), true);
  const auto read = wire::read_parallel_record(wire::to_text(record));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(*read, record);
}

}  // namespace
}  // namespace trainyard::workers
