#include "schedule/queue_choice.h"

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/terms.h"

namespace trainyard::schedule {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

FateOf fates(std::map<std::uint32_t, Fate> known) {
  return [known = std::move(known)](std::uint32_t number) {
    const auto found = known.find(number);
    return found == known.end() ? Fate::Unknown : found->second;
  };
}

TEST(QueueChoice, BeginsTheMostImportantAndOfTheseTheOldestFirst) {
  const QueueChoice choice = choose_next(
      {{.number = 3}, {.number = 9, .priority = 5}, {.number = 2}, {.number = 4, .priority = -1}},
      {}, fates({}));
  EXPECT_THAT(choice.begin, ElementsAre(9, 2, 3, 4));
  EXPECT_THAT(choice.skip, IsEmpty());
}

TEST(QueueChoice, KeepsNoMoreLookingForRoomThanItsBound) {
  std::vector<QueuedSubmission> waiting;
  for (std::uint32_t number = 1; number <= 1000; ++number) waiting.push_back({.number = number});
  EXPECT_EQ(choose_next(waiting, {}, fates({})).begin.size(), kLookingMax);
  EXPECT_THAT(choose_next(waiting, {.looking = kLookingMax - 1, .at_work = 20}, fates({})).begin,
              ElementsAre(1));
  EXPECT_THAT(choose_next(waiting, {.looking = kLookingMax, .at_work = 20}, fates({})).begin,
              IsEmpty());
  EXPECT_THAT(choose_next(waiting, {.looking = 0, .at_work = kAtWorkMax - 2}, fates({})).begin,
              ElementsAre(1, 2));
}

TEST(QueueChoice, WaitsForWhatASubmissionNeedsAndSkipsItWhereThatFailed) {
  const FateOf fate = fates({{1, Fate::EndedWell}, {2, Fate::NotEnded}, {3, Fate::EndedBadly}});
  const QueueChoice choice = choose_next({{.number = 10, .needs = {1}},
                                          {.number = 11, .needs = {1, 2}},
                                          {.number = 12, .needs = {2, 3}},
                                          {.number = 13, .needs = {99}}},
                                         {}, fate);
  EXPECT_THAT(choice.begin, ElementsAre(10));
  EXPECT_THAT(
      choice.skip,
      ElementsAre(SkippedSubmission{.number = 12, .why = "needs run 3, which did not succeed"},
                  SkippedSubmission{.number = 13, .why = "needs run 99, which did not succeed"}));
}

TEST(QueueChoice, BeginsWhatIsForAFailureOnlyWhereThereWasOne) {
  const FateOf fate = fates({{1, Fate::EndedWell}, {2, Fate::NotEnded}, {3, Fate::EndedBadly}});
  const auto failure = model::RunIf::Failure;
  const QueueChoice choice = choose_next({{.number = 10, .needs = {1}, .run_if = failure},
                                          {.number = 11, .needs = {1, 2}, .run_if = failure},
                                          {.number = 12, .needs = {1, 3}, .run_if = failure},
                                          {.number = 13, .needs = {2, 3}, .run_if = failure}},
                                         {}, fate);
  EXPECT_THAT(choice.begin, ElementsAre(12));
  EXPECT_THAT(choice.skip,
              ElementsAre(SkippedSubmission{
                  .number = 10,
                  .why = "the runs that it needs succeeded, and it starts only after a failure",
                  .not_needed = true}));
}

TEST(QueueChoice, BeginsWhatIsForAnyEndWhenAllHasEnded) {
  const FateOf fate = fates({{1, Fate::EndedWell}, {2, Fate::NotEnded}, {3, Fate::EndedBadly}});
  const auto always = model::RunIf::Always;
  const QueueChoice choice = choose_next({{.number = 10, .needs = {1, 3}, .run_if = always},
                                          {.number = 11, .needs = {2, 3}, .run_if = always}},
                                         {}, fate);
  EXPECT_THAT(choice.begin, ElementsAre(10));
  EXPECT_THAT(choice.skip, IsEmpty());
}

}  // namespace
}  // namespace trainyard::schedule
