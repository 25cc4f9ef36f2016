// Attempts of an earlier execution that go on where they run.
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/bytes.h"
#include "base/time.h"
#include "model/command.h"
#include "model/event.h"
#include "model/plan.h"
#include "model/resources.h"
#include "model/status.h"
#include "schedule/test_yard.h"

namespace trainyard::schedule {
namespace {

using ::testing::Contains;
using Texts = std::vector<std::string>;

const model::Policy kGoesOn{.memory_remain = Bytes{0}, .gpu_memory_remain = Bytes{0}};

/// A yard whose batch has just been added: no task starts before the found attempts are reported.
class FoundAttempts : public testing::Test {
 protected:
  void go_on_with(const PlanBuilder& plan) { go_on_with(plan.build()); }
  void go_on_with(model::Plan plan) { yard_.add(std::move(plan), at(0), /*more_follow=*/true); }
  model::Decision found(std::uint32_t task, Bytes memory, bool more_follow = false,
                        std::uint32_t attempt = 1) {
    return yard_.on(at(100),
                    model::AttemptFound{.key = {.task = {task}, .attempt = attempt},
                                        .promise = {.memory = memory, .cpus = model::cpus(1)},
                                        .site = {},
                                        .gpu_memory_max = {},
                                        .since = at(40),
                                        .more_follow = more_follow});
  }

  Yard yard_{PlanBuilder(), kGoesOn, kTwoGpus};
};

TEST_F(FoundAttempts, GoOnAndNobodyTakesTheirRoom) {
  go_on_with(PlanBuilder().tasks(3, gb(4)));
  EXPECT_THAT(commands(found(1, gb(6), true)), Contains("start 1#1 with 6 GB"));
  EXPECT_EQ(commands(found(2, gb(1))), (Texts{"start 2#1 with 1 GB"}))
      << "3 GB are left, and the first one needs 4";
  yard_.started(1, at(100));
  EXPECT_EQ(commands(yard_.ended(1, at(110))), Texts{"start 0#1 with 4 GB"});
  yard_.started(2, at(110));
  yard_.ended(2, at(110));
  yard_.started(0, at(110));
  yard_.ended(0, at(120));
  EXPECT_TRUE(yard_.over());
}

TEST_F(FoundAttempts, AreTriedAgainAsOthersAre) {
  go_on_with(PlanBuilder().tasks(1, gb(2)).retries({.failures = 1}));
  found(0, gb(2));
  yard_.started(0, at(100));
  EXPECT_EQ(commands(yard_.ended(0, at(110), model::ExitedWith{1})), Texts{"start 0#2 with 2 GB"});
}

TEST_F(FoundAttempts, HaveTheirTimeLimitFromTheirBeginning) {
  go_on_with(PlanBuilder().tasks(1, gb(2), {}, Duration(100'000)));
  found(0, gb(2));
  yard_.started(0, at(100));
  EXPECT_EQ(yard_.wakeup(), at(140));
}

TEST_F(FoundAttempts, LetTheirGroupBeginWhichTriesOneFirst) {
  model::Plan plan = PlanBuilder().tasks(3, gb(1)).build();
  plan.groups[0].try_first = true;
  go_on_with(plan);
  EXPECT_EQ(commands(found(2, gb(1))),
            (Texts{"start 2#1 with 1 GB", "start 0#1 with 1 GB", "start 1#1 with 1 GB"}));
}

TEST_F(FoundAttempts, AreEndedWhereTheirTasksAreNotWhatTheyWere) {
  model::Plan plan = PlanBuilder().tasks(4, gb(1)).build();
  plan.tasks[0].before = model::Verdict::Finished;
  plan.tasks[1].first_attempt = 2;
  go_on_with(plan);
  for (const std::uint32_t task : {0U, 1U, 9U}) {
    EXPECT_EQ(commands(found(task, gb(1), true)), Texts{"kill " + std::to_string(task) + "#1"});
  }
  EXPECT_EQ(commands(found(2, gb(1), true)), Texts{"start 2#1 with 1 GB"});
  EXPECT_EQ(commands(found(2, gb(1), true)), Texts{"kill 2#1"}) << "it is found twice";
  EXPECT_EQ(commands(found(3, gb(1), false, 1)),
            (Texts{"start 3#1 with 1 GB", "start 1#2 with 1 GB"}));
}

TEST_F(FoundAttempts, AreEndedWhereWhatTheirGroupNeedsBeginsAnewAndOthersComeAfterIt) {
  model::Plan plan = PlanBuilder().tasks(1, gb(1)).build();
  model::Plan second = PlanBuilder().tasks(1, gb(1)).build();
  plan.groups.push_back(second.groups[0]);
  plan.groups[1].needs = {{0}};
  second.shapes[0].group = {1};
  plan.shapes.push_back(second.shapes[0]);
  plan.tasks.push_back({.shape = {1}});
  go_on_with(plan);
  EXPECT_EQ(commands(found(1, gb(1))), (Texts{"kill 1#1", "start 0#1 with 1 GB"}));
  EXPECT_EQ(commands(yard_.ended(1, at(101), model::KilledBy{.signal = 9})), Texts{});
  yard_.started(0, at(101));
  EXPECT_EQ(commands(yard_.ended(0, at(102))), Texts{"start 1#2 with 1 GB"})
      << "its number tells it from the one that was found";
}

}  // namespace
}  // namespace trainyard::schedule
