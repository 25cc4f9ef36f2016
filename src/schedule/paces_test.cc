#include "schedule/paces.h"

#include <algorithm>
#include <iterator>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/bytes.h"
#include "model/command.h"
#include "model/plan.h"
#include "schedule/test_yard.h"

namespace trainyard::schedule {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr model::ShapeIndex kAlike{3};
model::Site on(std::vector<model::GpuIndex> gpus) {
  return {.machine = {}, .gpus = std::move(gpus)};
}
const model::Site kFirst = on({{0}});
/// Three were measured alone, and more to a GPU gain nothing.
constexpr Paces::Gain kOneAlone{.to_a_gpu = 1, .factor = 1, .tasks = 3};

/// A number of rounds of tasks that share a GPU, each of which takes the same number of seconds.
class Rounds {
 public:
  void play(int rounds, int together, int seconds) {
    for (int round = 0; round < rounds; ++round) {
      const std::uint32_t first = next_;
      for (int i = 0; i < together; ++i) paces.began({next_++}, kAlike, kFirst, at(now_));
      now_ += seconds;
      for (std::uint32_t task = first; task < next_; ++task) paces.ended({task}, true, at(now_));
    }
  }
  Paces paces;

 private:
  std::uint32_t next_ = 0;
  int now_ = 0;
};

TEST(Paces, SayNothingBeforeThreeOfEachNumberWereMeasured) {
  Rounds rounds;
  rounds.play(3, 1, 100);
  rounds.play(1, 2, 500);
  EXPECT_EQ(rounds.paces.price(kAlike), Paces::Price{});
  EXPECT_EQ(rounds.paces.price({4}), Paces::Price{});
  EXPECT_THAT(rounds.paces.take_news(), ElementsAre(kAlike));
  EXPECT_THAT(rounds.paces.take_news(), IsEmpty());
}

TEST(Paces, AllowOneMoreAsLongAsTheWorkRises) {
  Rounds rounds;
  rounds.play(3, 1, 100);
  rounds.play(2, 2, 120);  // 1.67 x
  EXPECT_EQ(rounds.paces.price(kAlike).to_a_gpu_max, 0);
  EXPECT_EQ(rounds.paces.price(kAlike).best->to_a_gpu, 2);
  EXPECT_NEAR(rounds.paces.price(kAlike).best->factor, 1.667, 0.001);
  EXPECT_EQ(rounds.paces.price(kAlike).best->tasks, 4);
  rounds.play(1, 3, 179);  // 1.676 x: not enough more.
  EXPECT_EQ(rounds.paces.price(kAlike).to_a_gpu_max, 2);
  EXPECT_EQ(rounds.paces.price(kAlike).best->to_a_gpu, 2);
}

TEST(Paces, ForbidANumberThatIsNoFasterThanASmallerOneThoughNobodyMeasuredThoseBetween) {
  Rounds rounds;
  rounds.play(3, 1, 100);
  rounds.play(1, 4, 400);
  EXPECT_EQ(rounds.paces.price(kAlike), (Paces::Price{.to_a_gpu_max = 3, .best = kOneAlone}));
}

TEST(Paces, CompareTwoNumbersOfWhichNeitherIsOne) {
  Rounds rounds;
  rounds.play(1, 3, 300);
  rounds.play(1, 4, 401);
  EXPECT_EQ(rounds.paces.price(kAlike), (Paces::Price{.to_a_gpu_max = 3, .best = {}}));
}

TEST(Paces, DoNotCountOneThatFailedOrSpentItsTimeWithDifferentNumbers) {
  Paces paces;
  for (std::uint32_t task = 0; task < 6; task += 2) {
    const int start = static_cast<int>(task) * 100;
    paces.began({task}, kAlike, kFirst, at(start));
    paces.ended({task}, false, at(start + 50));
    // A quarter of its time it has company.
    paces.began({task}, kAlike, kFirst, at(start + 60));
    paces.began({task + 1}, {9}, kFirst, at(start + 100));
    paces.ended({task + 1}, false, at(start + 125));
    paces.ended({task}, true, at(start + 160));
  }
  EXPECT_THAT(paces.take_news(), IsEmpty());
}

TEST(Paces, MeasureAtWorkWhatSaysHowFarItIs) {
  Paces paces;
  for (std::uint32_t task = 0; task < 3; ++task) paces.began({task}, kAlike, on({{task}}), at(0));
  const auto tell = [&paces](double fraction, int when) {
    for (std::uint32_t task = 0; task < 3; ++task) paces.progressed({task}, fraction, at(when));
  };
  tell(0.1, 10);
  tell(0.3, 30);
  // Others come: what was alone till then is measured.
  for (std::uint32_t task = 10; task < 13; ++task) {
    paces.began({task}, {9}, on({{task - 10}}), at(40));
  }
  tell(0.4, 50);
  tell(0.5, 80);
  for (std::uint32_t task = 10; task < 13; ++task) paces.ended({task}, true, at(90));
  // Alone 100 s, beside one other 300 s: sharing costs more than it brings.
  EXPECT_EQ(paces.price(kAlike), (Paces::Price{.to_a_gpu_max = 1, .best = kOneAlone}));
}

TEST(Paces, TakeNoProgressBackwardsOrOfAMoment) {
  Paces paces;
  for (std::uint32_t task = 0; task < 3; ++task) {
    paces.began({task}, kAlike, kFirst, at(0));
    paces.progressed({task}, 0.5, at(1));
    paces.progressed({task}, 0.2, at(5));
    paces.progressed({task}, 0.9, at(2));
    paces.progressed({task + 100}, 0.9, at(2));
    paces.ended({task}, false, at(10));
  }
  EXPECT_THAT(paces.take_news(), IsEmpty());
}

TEST(Paces, TellGpusOfTwoMachinesApart) {
  Rounds rounds;
  rounds.play(3, 1, 100);
  for (std::uint32_t task = 100; task < 103; ++task) {
    const int start = 1000 * static_cast<int>(task);
    rounds.paces.began({task}, kAlike, kFirst, at(start));
    rounds.paces.began({task + 10}, {9}, {.machine = {1}, .gpus = {{0}}}, at(start));
    rounds.paces.ended({task}, true, at(start + 100));
    rounds.paces.ended({task + 10}, true, at(start + 100));
  }
  EXPECT_EQ(rounds.paces.price(kAlike), Paces::Price{}) << "nobody shared one";
}

TEST(Paces, CountTheFullestOfSeveralGpusAndNoMoreThanTheyCanCount) {
  Paces paces;
  for (std::uint32_t i = 0; i < 40; ++i) paces.began({i}, {9}, on({{1}}), at(0));
  for (std::uint32_t i = 0; i < 3; ++i) {
    paces.began({100 + i}, kAlike, on({{i + 2}, {1}}), at(0));
    paces.ended({100 + i}, true, at(10));
  }
  for (std::uint32_t i = 0; i < 3; ++i) {
    paces.began({200 + i}, kAlike, on({{i + 2}}), at(20));
    paces.ended({200 + i}, true, at(25));
  }
  EXPECT_EQ(paces.price(kAlike).best->to_a_gpu, model::kMaxPerGpuMost);
}

TEST(Paces, ForgetTheFirstWhereThereAreMany) {
  Rounds rounds;
  rounds.play(static_cast<int>(Paces::kTasksMax), 1, 10);
  rounds.play(static_cast<int>(Paces::kTasksMax), 1, 100);
  rounds.play(2, 2, 100);
  EXPECT_NEAR(rounds.paces.price(kAlike).best->factor, 2, 0.001);
}

/// One task of 2 GB fits onto the first, four onto the second.
const model::Capacity kRoomForOneAndFour{.memory = gb(100),
                                         .cpus = model::cpus(64),
                                         .gpus = {{.number = 0, .pci = "a", .memory = gb(2)},
                                                  {.number = 1, .pci = "b", .memory = gb(8)}}};
const model::Policy kAllOfAGpu{
    .memory_remain = Bytes{0}, .gpu_memory_remain = Bytes{0}, .gpu_linger_max = Duration{0}};

TEST(PricedSharing, LetsNoMoreOntoAGpuThanGainsAndTellsIt) {
  Yard yard(PlanBuilder().tasks(20, gb(1)).on_gpus(1, gb(2)), kAllOfAGpu, kRoomForOneAndFour);
  // Each of four on the large one takes four times as long as the one on the small one.
  EXPECT_THAT(commands(yard.go(yard.first, kStart)),
              ElementsAre("start 0#1 with 1 GB, 2 GB on 0", "start 1#1 with 1 GB, 2 GB on 1",
                          "start 2#1 with 1 GB, 2 GB on 1", "start 3#1 with 1 GB, 2 GB on 1",
                          "start 4#1 with 1 GB, 2 GB on 1"));
  const auto next = [&yard](std::uint32_t task, int when) {
    const model::Decision decision = yard.go(yard.ended(task, at(when)), at(when));
    EXPECT_THAT(changes(decision), Not(Contains(::testing::HasSubstr("per GPU"))));
    return commands(decision);
  };
  EXPECT_THAT(next(0, 100), ElementsAre("start 5#1 with 1 GB, 2 GB on 0"));
  EXPECT_THAT(next(5, 200), ElementsAre("start 6#1 with 1 GB, 2 GB on 0"));
  EXPECT_THAT(next(6, 300), ElementsAre("start 7#1 with 1 GB, 2 GB on 0"));
  EXPECT_THAT(next(1, 400), ElementsAre("start 8#1 with 1 GB, 2 GB on 1"));
  EXPECT_THAT(next(2, 400), ElementsAre("start 9#1 with 1 GB, 2 GB on 1"));
  const model::Decision third = yard.ended(3, at(400));
  EXPECT_THAT(commands(third), IsEmpty());
  EXPECT_THAT(changes(third), Contains("shape 0: at most 3 per GPU, as more gain nothing"));
  EXPECT_THAT(next(4, 400), ElementsAre("start 10#1 with 1 GB, 2 GB on 1"));
}

TEST(PricedSharing, BeginsWithWhatEarlierRunsHaveMeasuredAndTriesNoMoreThanGained) {
  model::Plan plan = PlanBuilder().tasks(20, gb(1)).on_gpus(1, gb(2)).build();
  plan.sharing = {{.shape = {0}, .to_a_gpu = 2, .factor = 1.5, .tasks = 6, .to_a_gpu_max = 2}};
  Yard yard(plan, kAllOfAGpu, kRoomForOneAndFour);
  EXPECT_THAT(commands(yard.go(yard.first, kStart)),
              ElementsAre("start 0#1 with 1 GB, 2 GB on 0", "start 1#1 with 1 GB, 2 GB on 1",
                          "start 2#1 with 1 GB, 2 GB on 1"));
  // Two take as long as one alone: in this run they do twice the work.
  std::vector<std::string> all;
  for (const int when : {100, 200, 300}) {
    for (const std::uint32_t task : {0U, 1U, 2U}) {
      const auto first = static_cast<std::uint32_t>((when / 100 - 1) * 3);
      const model::Decision decision = yard.go(yard.ended(first + task, at(when)), at(when));
      std::ranges::copy(changes(decision), std::back_inserter(all));
    }
  }
  EXPECT_THAT(all, Contains("shape 0: 2 tasks per GPU do 2.0 times the work of 1 (measured on 4 "
                            "tasks); at most 2 per GPU, as more gain nothing"));
  EXPECT_THAT(all, Contains("11#1 AVAILABLE"));
  EXPECT_THAT(all, Not(Contains("12#1 AVAILABLE"))) << "two on the large one, and one";
}

TEST(PricedSharing, TakesTheSmallerOfWhatIsWrittenAndWhatIsMeasured) {
  Yard yard(PlanBuilder().tasks(20, gb(1)).on_gpus(1, gb(2)).sharing({.max_per_gpu = 2}),
            kAllOfAGpu, kRoomForOneAndFour);
  static_cast<void>(yard.go(yard.first, kStart));
  const auto end = [&yard](std::uint32_t task, int when) {
    static_cast<void>(yard.go(yard.ended(task, at(when)), at(when)));
  };
  // Two share the large card, each of which takes twice as long: one alone is as good.
  end(0, 100);
  end(3, 200);
  end(1, 200);
  end(2, 200);
  end(4, 300);
  EXPECT_THAT(commands(yard.ended(5, at(400))), IsEmpty()) << "one is still there";
  EXPECT_THAT(commands(yard.ended(6, at(400))), ElementsAre("start 8#1 with 1 GB, 2 GB on 1"));
}

}  // namespace
}  // namespace trainyard::schedule
