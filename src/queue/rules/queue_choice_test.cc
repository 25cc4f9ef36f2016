#include "queue/rules/queue_choice.h"

#include <map>
#include <utility>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace trainyard::queue {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

FateOf fates(std::map<std::uint32_t, Fate> known) {
  return [known = std::move(known)](std::uint32_t number) {
    const auto found = known.find(number);
    return found == known.end() ? Fate::Unknown : found->second;
  };
}

std::vector<RunWithoutRoom> runs_without_room(std::size_t count, const QueuedSubmission& each,
                                              const RoomNeed& need = {}) {
  return std::vector<RunWithoutRoom>(count, {.submission = each, .need = need});
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
  EXPECT_EQ(choose_next(waiting, {}, fates({})).begin.size(), kWithoutRoomMax);
  const auto begun_beside = [&](std::size_t without_room) {
    return choose_next(waiting,
                       {.without_room = runs_without_room(without_room, {}), .at_work = 20},
                       fates({}))
        .begin;
  };
  EXPECT_THAT(begun_beside(kWithoutRoomMax - 1), ElementsAre(1));
  EXPECT_THAT(begun_beside(kWithoutRoomMax), IsEmpty());
  EXPECT_THAT(choose_next(waiting, {.at_work = kAtWorkMax - 2}, fates({})).begin,
              ElementsAre(1, 2));
}

TEST(QueueChoice, LetsAHigherPriorityLookWhoeverLooks) {
  const QueueLoad load{.without_room = runs_without_room(kWithoutRoomMax, {.priority = 3}),
                       .at_work = 20};
  const QueueChoice choice = choose_next(
      {{.number = 1, .priority = 3}, {.number = 2, .priority = 4}, {.number = 3}}, load, fates({}));
  EXPECT_THAT(choice.begin, ElementsAre(2));
  EXPECT_THAT(choose_next({{.number = 2, .priority = 4}},
                          {.without_room = load.without_room, .at_work = kAtWorkMax}, fates({}))
                  .begin,
              IsEmpty());
}

TEST(QueueChoice, CountsRunsThatNeedAGpuApartFromTheOthers) {
  const std::vector<QueuedSubmission> waiting{{.number = 1, .needs_gpu = true}, {.number = 2}};
  const auto begun_beside = [&](std::vector<RunWithoutRoom> without_room) {
    return choose_next(waiting, {.without_room = std::move(without_room), .at_work = 20}, fates({}))
        .begin;
  };
  EXPECT_THAT(begun_beside(runs_without_room(kWithoutRoomMax, {.needs_gpu = true})),
              ElementsAre(2));
  EXPECT_THAT(begun_beside(runs_without_room(kWithoutRoomMax, {.needs_gpu = false})),
              ElementsAre(1));
  std::vector<QueuedSubmission> many;
  for (std::uint32_t number = 1; number <= 100; ++number) {
    many.push_back({.number = number, .needs_gpu = number <= 50});
  }
  EXPECT_EQ(choose_next(many, {}, fates({})).begin.size(), 2 * kWithoutRoomMax);
}

TEST(QueueChoice, CountsRunsThatLackMemoryOrCpusForWhatRequestsAsMuch) {
  const std::vector<QueuedSubmission> waiting{
      {.number = 1, .needs_gpu = true, .memory = gb(2), .cpus = model::cpus(8)},
      {.number = 2, .needs_gpu = true, .memory = gb(8), .cpus = model::cpus(2)},
      {.number = 3, .memory = gb(2), .cpus = model::cpus(2)},
      {.number = 4, .priority = 1, .memory = gb(8), .cpus = model::cpus(8)}};
  const auto begun_behind = [&](model::Cause cause) {
    return choose_next(waiting,
                       {.without_room = runs_without_room(
                            kWithoutRoomMax, {.needs_gpu = true},
                            {.cause = cause, .memory = gb(4), .cpus = model::cpus(4)}),
                        .at_work = 20},
                       fates({}))
        .begin;
  };
  EXPECT_THAT(begun_behind(model::Cause::Memory), ElementsAre(4, 1, 3));
  EXPECT_THAT(begun_behind(model::Cause::Cpus), ElementsAre(4, 2, 3));
  EXPECT_THAT(begun_behind(model::Cause::OthersUseCpu), ElementsAre(4, 2, 3));
  EXPECT_THAT(begun_behind(model::Cause::Gpus), ElementsAre(4, 3));
  EXPECT_FALSE(holds_back(
      {.submission = {.needs_gpu = true}, .need = {.cause = model::Cause::Memory}}, waiting[2]))
      << "it requests no memory, as one whose need is learned";
}

TEST(QueueChoice, HoldsASubmissionBackByWhatTheWaitingTasksOfARunRequest) {
  // Other tasks of the run, which have finished, request no CPUs.
  const RunWithoutRoom run{.submission = {.cpus = model::cpus(0)},
                           .need = {.cause = model::Cause::Cpus, .cpus = model::cpus(2)}};
  EXPECT_FALSE(holds_back(run, {.cpus = model::cpus(0)}));
  EXPECT_FALSE(holds_back(run, {.cpus = model::cpus(1)}));
  EXPECT_TRUE(holds_back(run, {.cpus = model::cpus(2)}));
}

TEST(QueueChoice, JoinsNeedsToTheSmallestRequestsOfTheFirstCause) {
  const auto need = [](model::Cause cause, std::int64_t memory, std::int64_t cpus) {
    return RoomNeed{.cause = cause, .memory = gb(memory), .cpus = model::cpus(cpus)};
  };
  const RoomNeed few_cpus = need(model::Cause::Cpus, 8, 2);
  EXPECT_EQ(joined(few_cpus, need(model::Cause::Cpus, 4, 6)), need(model::Cause::Cpus, 4, 2));
  EXPECT_EQ(joined(few_cpus, need(model::Cause::Disk, 1, 0)), few_cpus);
  EXPECT_EQ(joined(need(model::Cause::Disk, 1, 0), few_cpus), few_cpus);
  EXPECT_EQ(joined({}, few_cpus), few_cpus);
  EXPECT_EQ(joined(few_cpus, {}), few_cpus);
}

TEST(QueueChoice, TakesTasksThatWaitForATimeOrAreHeldForNoneThatLookForRoom) {
  for (const auto cause : {model::Cause::NotYet, model::Cause::Held, model::Cause::Group}) {
    EXPECT_FALSE(waits_for_room(cause));
  }
  EXPECT_TRUE(waits_for_room(model::Cause::Gpus));
  EXPECT_TRUE(waits_for_room(model::Cause::Memory));
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
      ElementsAre(
          SkippedSubmission{.number = 12, .why = "needs run 3, which did not succeed", .needed = 3},
          SkippedSubmission{
              .number = 13, .why = "needs run 99, which did not succeed", .needed = 99}));
}

TEST(QueueChoice, SkipsAChainInOnePass) {
  const auto why = [](std::uint32_t number) {
    return fmt::format("needs run {}, which did not succeed", number);
  };
  const QueueChoice choice =
      choose_next({{.number = 12, .needs = {11}},
                   {.number = 11, .needs = {10}},
                   {.number = 10, .needs = {3}},
                   {.number = 13, .needs = {12}, .run_if = model::RunIf::Failure}},
                  {},
                  fates({{3, Fate::EndedBadly},
                         {10, Fate::NotEnded},
                         {11, Fate::NotEnded},
                         {12, Fate::NotEnded}}));
  EXPECT_THAT(choice.skip,
              ElementsAre(SkippedSubmission{.number = 10, .why = why(3), .needed = 3},
                          SkippedSubmission{.number = 11, .why = why(10), .needed = 10},
                          SkippedSubmission{.number = 12, .why = why(11), .needed = 11}));
  EXPECT_THAT(choice.begin, ElementsAre(13)) << "an alarm behind a submission that was skipped";
}

TEST(QueueChoice, GivesTheReasonOfASkipAsItIsNow) {
  const QueuedSubmission skipped{.number = 10, .needs = {1, 2}};
  const auto now = [&skipped](const char* why, Fate first, Fate second) {
    return present_reason(skipped, why, fates({{1, first}, {2, second}}));
  };
  const char* const why = "needs run 1, which did not succeed";
  const auto well = Fate::EndedWell;
  const auto bad = Fate::EndedBadly;
  const char* const at_first =
      "needs run 1, which did not succeed at first: 'trainyard retry 10' puts it back into your "
      "queue";
  EXPECT_EQ(now(why, bad, Fate::NotEnded), why);
  EXPECT_EQ(now(why, well, well), at_first);
  EXPECT_EQ(now(why, Fate::NotEnded, well), at_first);
  EXPECT_EQ(now(why, well, bad), "needs run 2, which did not succeed");
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
}  // namespace trainyard::queue
