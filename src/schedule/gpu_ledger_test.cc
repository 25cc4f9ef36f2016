#include "schedule/gpu_ledger.h"

#include <utility>

#include <gtest/gtest.h>

#include "schedule/test_yard.h"

namespace trainyard::schedule {
namespace {

const model::Capacity kTwo{
    .gpus = {{.number = 0, .memory = gb(10)}, {.number = 1, .memory = gb(20)}}};
const model::Policy kNothingKept{.gpu_memory_remain = Bytes{0}, .gpu_linger_max = Duration{10'000}};

/// A reading of the memory in use on the first GPU, and of the parts that tasks have there.
model::GpusSampled first_uses(Bytes used, const std::vector<std::pair<std::uint32_t, Bytes>>& tasks,
                              bool known = true) {
  model::GpusSampled seen{.gpus = {{.used = used, .processes_known = known}, {}}, .uses = {}};
  for (const auto& [task, memory] : tasks) {
    seen.uses.push_back({.key = {.task = {task}}, .gpu = {0}, .memory = memory});
  }
  return seen;
}

class GpuLedgerTest : public testing::Test {
 protected:
  [[nodiscard]] Bytes free(std::uint32_t gpu = 0) const { return ledger_.room()[gpu].free; }

  GpuLedger ledger_{kNothingKept, kTwo};
};

TEST_F(GpuLedgerTest, HoldsWhatIsPromisedBeforeItIsTaken) {
  ledger_.promise({1}, {{0}}, gb(3));
  ledger_.promise({2}, {{0}, {1}}, gb(4));
  EXPECT_EQ(free(0), gb(3));
  EXPECT_EQ(free(1), gb(16));
  ledger_.see(at(1), first_uses(gb(3), {{1, gb(3)}}));
  EXPECT_EQ(free(0), gb(3));
}

TEST_F(GpuLedgerTest, CountsWhatATaskHasBeyondItsPromise) {
  ledger_.promise({1}, {{0}}, gb(3));
  ledger_.see(at(1), first_uses(gb(5), {{1, gb(5)}}));
  EXPECT_EQ(free(), gb(5));
  EXPECT_EQ(ledger_.peak_of({1}), gb(5));
  ledger_.see(at(2), first_uses(gb(1), {{1, gb(1)}}));
  EXPECT_EQ(free(), gb(7));
  EXPECT_EQ(ledger_.peak_of({1}), gb(5));
}

TEST_F(GpuLedgerTest, IsMadeSmallerByOthersAndNotGivenUp) {
  ledger_.promise({1}, {{0}}, gb(3));
  ledger_.see(at(1), first_uses(gb(6), {{1, gb(2)}}));
  EXPECT_EQ(ledger_.of_others({0}), gb(4));
  EXPECT_EQ(free(), gb(3));
  ledger_.see(at(2), first_uses(gb(2), {{1, gb(2)}}));
  EXPECT_EQ(free(), gb(7));
}

TEST_F(GpuLedgerTest, TakesWhatIsInUseForOursWhereNobodySaysWhose) {
  ledger_.promise({1}, {{0}}, gb(3));
  ledger_.see(at(1), first_uses(gb(2), {}, false));
  EXPECT_EQ(free(), gb(7));
  ledger_.see(at(2), first_uses(gb(5), {}, false));
  EXPECT_EQ(free(), gb(5));
  EXPECT_EQ(ledger_.of_others({0}), Bytes{}) << "it may have more than it was promised";
  ledger_.release({1}, at(3));
  ledger_.see(at(14), first_uses(gb(5), {}, false));
  EXPECT_EQ(ledger_.of_others({0}), gb(5)) << "nobody of ours is there";
}

TEST_F(GpuLedgerTest, KeepsWhatAnEndedTaskHadUntilTheDriverShowsItFree) {
  ledger_.promise({1}, {{0}}, gb(3));
  ledger_.see(at(1), first_uses(gb(4), {{1, gb(3)}}));
  ledger_.release({1}, at(2));
  EXPECT_EQ(free(), gb(6));
  EXPECT_EQ(ledger_.room()[0].holders, 1);
  ledger_.see(at(3), first_uses(gb(4), {}));
  EXPECT_EQ(free(), gb(6));
  EXPECT_EQ(ledger_.lingering().size(), 1U);
  ledger_.see(at(4), first_uses(gb(1), {}));
  EXPECT_EQ(free(), gb(9));
  EXPECT_EQ(ledger_.room()[0].holders, 0);
  EXPECT_EQ(ledger_.first_linger_end(), std::nullopt);
}

TEST_F(GpuLedgerTest, KeepsWhatWasPromisedAndNeverSeenUntilTheNextReading) {
  ledger_.promise({1}, {{0}}, gb(3));
  ledger_.release({1}, at(1));
  EXPECT_EQ(free(), gb(7));
  ledger_.see(at(2), first_uses({}, {}));
  EXPECT_EQ(free(), gb(10));
}

TEST_F(GpuLedgerTest, WaitsForTheDriverNoLongerThanTheBound) {
  ledger_.promise({1}, {{0}}, {});
  ledger_.see(at(1), first_uses(gb(3), {{1, gb(3)}}));
  ledger_.release({1}, at(2));
  ledger_.see(at(11), first_uses(gb(3), {}));
  EXPECT_EQ(ledger_.room()[0].holders, 1);
  EXPECT_EQ(ledger_.first_linger_end(), at(12));
  EXPECT_LE(free(), Bytes{}) << "it was its own";
  ledger_.let_go(at(12));
  EXPECT_EQ(ledger_.room()[0].holders, 0);
  // Memory that is still in use belongs to others.
  EXPECT_EQ(free(), gb(7));
  ledger_.see(at(13), first_uses(gb(3), {}));
  EXPECT_EQ(ledger_.of_others({0}), gb(3));
  EXPECT_EQ(free(), gb(7));
}

TEST_F(GpuLedgerTest, DoesNotTakeWhatLingersForThatOfOthers) {
  ledger_.promise({1}, {{0}}, gb(3));
  ledger_.see(at(1), first_uses(gb(4), {{1, gb(3)}}));
  ledger_.release({1}, at(2));
  ledger_.see(at(3), first_uses(gb(4), {}));
  EXPECT_EQ(ledger_.of_others({0}), gb(1));
}

TEST_F(GpuLedgerTest, HasNoRoomOnAGpuThatDoesNotAnswer) {
  ledger_.see(at(5), {.gpus = {{.present = false}, {}}, .uses = {}});
  EXPECT_FALSE(ledger_.room()[0].present);
  EXPECT_EQ(ledger_.presence_of({0}).gone_since(), at(5));
  ledger_.see(at(6), {.gpus = {{.present = false}, {}}, .uses = {}});
  EXPECT_EQ(ledger_.presence_of({0}).gone_since(), at(5));
  ledger_.see(at(7), first_uses({}, {}));
  EXPECT_FALSE(ledger_.room()[0].present);
  EXPECT_EQ(ledger_.presence_of({0}).gone_since(), std::nullopt);
  ledger_.see(at(17), first_uses({}, {}));
  EXPECT_TRUE(ledger_.room()[0].present);
}

TEST_F(GpuLedgerTest, HasRoomOnAGpuAsALastResortUntilTheEndOfALongerQuietTime) {
  for (const int from : {1, 20}) {
    ledger_.see(at(from), {.gpus = {{.present = false}, {}}, .uses = {}});
    ledger_.see(at(from + 3), first_uses({}, {}));
  }
  ledger_.see(at(32), first_uses({}, {}));
  EXPECT_FALSE(ledger_.room()[0].present);
  EXPECT_TRUE(ledger_.last_resorts().empty());
  ledger_.see(at(33), first_uses({}, {}));
  EXPECT_TRUE(ledger_.room()[0].present);
  EXPECT_EQ(ledger_.last_resorts(), (GpuSet{{0}}));
  ledger_.see(at(43), first_uses({}, {}));
  EXPECT_TRUE(ledger_.room()[0].present);
  EXPECT_TRUE(ledger_.last_resorts().empty());
}

TEST_F(GpuLedgerTest, KnowsTheSharesOfATask) {
  ledger_.promise({1}, {{0}, {1}}, gb(2));
  ledger_.see(at(1), first_uses(gb(5), {{1, gb(5)}}));
  const auto shares = ledger_.shares_of({1});
  ASSERT_EQ(shares.size(), 2U);
  EXPECT_EQ(shares[0].memory, gb(5));
  EXPECT_EQ(shares[1].memory, gb(2));
  EXPECT_TRUE(ledger_.shares_of({2}).empty());
}

}  // namespace
}  // namespace trainyard::schedule
