#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "run/shared_ledger.h"

namespace trainyard::run {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

const model::Capacity kOwnMachine{.memory = gb(64),
                                  .cpus = model::cpus(8),
                                  .gpus = {{.uuid = "GPU-0", .memory = gb(10)},
                                           {.number = 1, .uuid = "GPU-1", .memory = gb(10)}}};

Instant second(int seconds) { return {Duration{seconds * 1000}}; }
model::AttemptKey attempt_of(std::uint32_t task, std::uint32_t attempt = 1) {
  return {.task = {task}, .attempt = attempt};
}

model::Decision start(std::uint32_t task, std::vector<model::GpuIndex> gpus = {}, Bytes each = {}) {
  const auto count = static_cast<int>(gpus.size());
  return {
      .commands = {model::StartAttempt{
          .key = attempt_of(task),
          .promise = {.memory = gb(2), .cpus = model::cpus(1), .gpus = count, .gpu_memory = each},
          .site = {.machine = {}, .gpus = std::move(gpus)}}}};
}

model::Decision waits(std::uint32_t shape, model::Reason reason) {
  return {.changes = {model::ReasonChanged{.shape = {shape}, .reason = std::move(reason)}}};
}

class Own : public ::testing::Test {
 protected:
  void hear(int moment, model::What what, const model::Decision& decided = {}) {
    promises_.see({.at = second(moment), .what = std::move(what)}, decided, moment);
  }
  OwnPromises promises_{kOwnMachine, Duration{10'000}};
};

TEST_F(Own, AStartClaimsAllOfItAndHoldsItOnceThatIsKept) {
  const model::Decision decided = start(0, {{1}}, gb(4));
  const model::HeldPromise claim = promises_.claim_of(decided);
  EXPECT_EQ(claim,
            (model::HeldPromise{
                .memory = gb(2),
                .unused = gb(2),
                .cpus = model::cpus(1),
                .tasks = 1,
                .cards = {{.uuid = "GPU-1", .memory = gb(4), .unused = gb(4), .tasks = 1}}}));
  EXPECT_THAT(OwnPromises::attempts_of(decided), ElementsAre(attempt_of(0)));
  EXPECT_EQ(promises_.held(second(0)), model::HeldPromise{});
  promises_.hold(decided, second(5), 1'000);
  model::HeldPromise held = claim;
  held.since_unix_s = held.cards.front().since_unix_s = 1'000;
  EXPECT_EQ(promises_.held(second(5)), held);
}

TEST_F(Own, WhatATaskTakesIsNotUnusedAnyMoreAndMoreThanPromisedIsHeld) {
  promises_.hold(start(0, {{0}}, gb(4)), second(0), 10);
  hear(1, model::Sampled{.tasks = {{.key = attempt_of(0), .memory = gb(1)}}});
  hear(1, model::GpusSampled{.gpus = {{}, {}},
                             .uses = {{.key = attempt_of(0), .gpu = {0}, .memory = gb(5)}}});
  const model::HeldPromise held = promises_.held(second(1));
  EXPECT_EQ(held.memory, gb(2));
  EXPECT_EQ(held.unused, gb(1));
  EXPECT_EQ(held.cards.front().memory, gb(5));
  EXPECT_EQ(held.cards.front().unused, Bytes{});
  hear(2, model::Sampled{});
  hear(2, model::GpusSampled{.gpus = {{}, {}}});
  EXPECT_EQ(promises_.held(second(2)).unused, gb(2)) << "a reading that shows nothing of it";
  EXPECT_EQ(promises_.held(second(2)).cards.front().unused, gb(4));
}

TEST_F(Own, WhatHasEndedIsNotHeldAndAnOlderAttemptsEndIsNotItsEnd) {
  promises_.hold(start(0), second(0), 10);
  hear(1, model::AttemptEnded{.key = attempt_of(0, 2)});
  EXPECT_EQ(promises_.held(second(1)).tasks, 1);
  hear(2, model::AttemptEnded{.key = attempt_of(0)});
  EXPECT_EQ(promises_.held(second(2)), model::HeldPromise{});
}

TEST_F(Own, AGrantClaimsWhatTheTaskHadNotBefore) {
  const model::Decision load{
      .commands = {model::StartAttempt{.key = attempt_of(0), .promise = {.memory = gb(2)}}}};
  promises_.hold(load, second(0), 10);
  const model::Decision grant{
      .commands = {model::GrantDevice{
          .key = attempt_of(0),
          .promise = {.memory = gb(3), .cpus = model::cpus(2), .gpus = 1, .gpu_memory = gb(4)},
          .site = {.machine = {}, .gpus = {{0}}}}}};
  EXPECT_EQ(promises_.claim_of(grant),
            (model::HeldPromise{
                .memory = gb(1),
                .unused = gb(1),
                .cpus = model::cpus(2),
                .cards = {{.uuid = "GPU-0", .memory = gb(4), .unused = gb(4), .tasks = 1}}}));
  promises_.hold(grant, second(5), 15);
  EXPECT_EQ(promises_.claim_of(grant), model::HeldPromise{}) << "it has all of that";
  EXPECT_EQ(promises_.held(second(5)).memory, gb(3));
  EXPECT_EQ(promises_.held(second(5)).since_unix_s, 10);
  EXPECT_EQ(promises_.held(second(5)).cards.front().since_unix_s, 15);
}

TEST_F(Own, AGpuOfWhichNothingWasTakenForAQuarterOfAnHourIsNotHeld) {
  promises_.hold(start(0, {{0}}), second(0), 10);
  const Instant before = second(0) + (OwnPromises::kIdleMax - Duration{1});
  EXPECT_THAT(promises_.held(before).cards, ::testing::SizeIs(1));
  EXPECT_TRUE(promises_.held(before).cards.front().whole);
  const model::HeldPromise later = promises_.held(before + Duration{1});
  EXPECT_THAT(later.cards, ::testing::IsEmpty());
  EXPECT_EQ(later.memory, gb(2)) << "memory of the host is another matter";
  hear(901, model::GpusSampled{.gpus = {{}, {}},
                               .uses = {{.key = attempt_of(0), .gpu = {0}, .memory = mb(1)}}});
  EXPECT_THAT(promises_.held(second(902)).cards, ::testing::SizeIs(1)) << "it has begun to take it";
}

TEST_F(Own, WhereTheDriverDoesNotSayWhoHasWhatNothingIsTakenForIdle) {
  promises_.hold(start(0, {{0}}), second(0), 10);
  hear(1, model::GpusSampled{.gpus = {{.processes_known = false}, {}}});
  EXPECT_THAT(promises_.held(second(5'000)).cards, ::testing::SizeIs(1));
}

TEST_F(Own, WhoWaitsForRoomWantsItSinceThenAndAGpuBeforeAnythingElse) {
  EXPECT_EQ(promises_.want(), std::nullopt);
  hear(3, model::TimePassed{},
       waits(1, {.cause = model::Cause::Cpus, .needs = {.cpus = model::cpus(2)}}));
  EXPECT_EQ(promises_.want(), (model::Want{.cpus = model::cpus(2), .since_unix_s = 3}));
  hear(7, model::TimePassed{},
       waits(4, {.cause = model::Cause::GivesWay, .needs = {.gpus = 1, .gpu_memory = gb(3)}}));
  EXPECT_EQ(promises_.want(), (model::Want{.gpus = 1, .gpu_memory = gb(3), .since_unix_s = 7}));
  hear(9, model::TimePassed{}, waits(4, {}));
  EXPECT_EQ(promises_.want(), (model::Want{.cpus = model::cpus(2), .since_unix_s = 3}));
  hear(9, model::TimePassed{}, waits(1, {.cause = model::Cause::Parallel}));
  EXPECT_EQ(promises_.want(), std::nullopt) << "max-parallel is no lack of room";
}

TEST_F(Own, SaysWhichGpusHaveDroppedOutAndUntilWhenTheyAreAvoided) {
  const auto second_answers = [](bool answers) {
    return model::GpusSampled{.gpus = {{}, {.present = answers}}, .uses = {}};
  };
  hear(1, second_answers(true));
  EXPECT_THAT(promises_.drop_outs(), IsEmpty());
  hear(2, second_answers(false));
  EXPECT_THAT(promises_.drop_outs(),
              ElementsAre(model::DropOuts{.uuid = "GPU-1", .number = 1, .times = 1}));
  hear(5, second_answers(true));
  hear(9, second_answers(true));
  EXPECT_THAT(promises_.drop_outs(),
              ElementsAre(model::DropOuts{
                  .uuid = "GPU-1", .number = 1, .times = 1, .avoided_until_unix_s = 15}));
  hear(12, second_answers(false));
  EXPECT_THAT(promises_.drop_outs(),
              ElementsAre(model::DropOuts{.uuid = "GPU-1", .number = 1, .times = 2}));
  hear(13, second_answers(true));
  hear(40, second_answers(true));
  EXPECT_THAT(promises_.drop_outs(),
              ElementsAre(model::DropOuts{
                  .uuid = "GPU-1", .number = 1, .times = 2, .avoided_until_unix_s = 33}));
}

TEST_F(Own, WhoHasGotSomethingHasWaitedSinceThen) {
  hear(3, model::TimePassed{}, waits(1, {.cause = model::Cause::Gpus, .needs = {.gpus = 1}}));
  promises_.hold(start(0, {{0}}), second(8), 8);
  EXPECT_EQ(promises_.want()->since_unix_s, 8);
  promises_.hold(start(1), second(9), 9);
  EXPECT_EQ(promises_.want()->since_unix_s, 8) << "that was no GPU";
  hear(20, model::AttemptEnded{.key = attempt_of(0)});
  EXPECT_EQ(promises_.want()->since_unix_s, 20);
}

}  // namespace
}  // namespace trainyard::run
