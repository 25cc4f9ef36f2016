#include "model/promises.h"

#include <gtest/gtest.h>

namespace trainyard::model {
namespace {

constexpr std::int64_t kDayBegins = 1'764'115'200;

TEST(Promises, AnotherUsersRunIsCalledByTheNameOfItsUser) {
  EXPECT_EQ(name_of({.user = 1001, .user_name = "alice"}), "another user's run (alice)");
  EXPECT_EQ(name_of({.user = 1001}), "another user's run (uid 1001)");
}

TEST(Promises, OurOwnRunIsCalledByItsNumber) {
  EXPECT_EQ(name_of({.is_ours = true, .its = {.run = 46, .name = "sweep"}}), "your run 46 (sweep)");
  EXPECT_EQ(name_of({.is_ours = true, .its = {.name = "sweep"}}), "your run (sweep)");
  EXPECT_EQ(name_of({.is_ours = true, .its = {.run = 46}}), "your run 46");
}

TEST(Promises, ATimeIsThatOfTheDayAndSaysHowManyDaysAgoThatWas) {
  const Neighbour seen_by{.midnight_unix_s = kDayBegins};
  EXPECT_EQ(time_of_day(kDayBegins + 7'800, seen_by), "02:10");
  EXPECT_EQ(time_of_day(kDayBegins, seen_by), "00:00");
  EXPECT_EQ(time_of_day(kDayBegins - 60, seen_by), "23:59 yesterday");
  EXPECT_EQ(time_of_day(kDayBegins - 86'400, seen_by), "00:00 yesterday");
  EXPECT_EQ(time_of_day(kDayBegins - 176'400, seen_by), "23:00, 3 days ago");
}

TEST(Promises, ASumHasEachCardOnceAndTheEarliestTime) {
  const HeldPromise one{.memory = gb(2),
                        .unused = gb(1),
                        .cpus = cpus(1),
                        .tasks = 1,
                        .since_unix_s = 20,
                        .cards = {{.uuid = "GPU-b",
                                   .memory = gb(5),
                                   .unused = gb(5),
                                   .tasks = 1,
                                   .sharing = {.utilization = 300, .max_per_gpu = 4},
                                   .since_unix_s = 20}}};
  const HeldPromise other{.memory = gb(3),
                          .cpus = cpus(2),
                          .tasks = 2,
                          .since_unix_s = 10,
                          .cards = {{.uuid = "GPU-a", .tasks = 1, .whole = true},
                                    {.uuid = "GPU-b",
                                     .memory = gb(1),
                                     .tasks = 1,
                                     .sharing = {.utilization = 200, .max_per_gpu = 2}}}};
  const HeldPromise sum{.memory = gb(5),
                        .unused = gb(1),
                        .cpus = cpus(3),
                        .tasks = 3,
                        .since_unix_s = 10,
                        .cards = {{.uuid = "GPU-a", .tasks = 1, .whole = true},
                                  {.uuid = "GPU-b",
                                   .memory = gb(6),
                                   .unused = gb(5),
                                   .tasks = 2,
                                   .sharing = {.utilization = 500, .max_per_gpu = 2},
                                   .since_unix_s = 20}}};
  EXPECT_EQ(sum_of(one, other), sum);
  EXPECT_EQ(sum_of(other, one), sum);
  EXPECT_EQ(sum_of(one, {}), one);
  EXPECT_EQ(find_card(sum, "GPU-a")->tasks, 1);
  EXPECT_EQ(find_card(sum, "GPU-c"), nullptr);
}

}  // namespace
}  // namespace trainyard::model
