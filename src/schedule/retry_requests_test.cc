#include "schedule/retry_requests.h"

#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/event.h"
#include "schedule/test_yard.h"

namespace trainyard::schedule {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr model::TaskIndex kTask{3};
constexpr model::GpuPlace kFirstGpu{.machine = {0}, .gpu = {0}};
constexpr model::GpuPlace kSecondGpu{.machine = {0}, .gpu = {1}};
const model::Policy kKeepsNothingFree{.memory_remain = Bytes{0}, .gpu_memory_remain = Bytes{0}};

model::Terms sharing_a_gpu(Bytes memory, Bytes gpu_memory) {
  model::Terms terms;
  terms.request = {.memory = memory, .gpus = 1, .gpu_memory = gpu_memory};
  return terms;
}

model::Request applied(const RetryRequests& requests) {
  model::Request request{.gpus = 1, .gpu_memory = gb(1)};
  requests.apply(kTask, request);
  return request;
}

/// An attempt with a reservation of 2 GB of a GPU, of which it needed so much.
Running needing(Bytes needed) {
  Running running;
  running.key.task = kTask;
  running.promise.gpu_memory = gb(2);
  running.needed.gpu_memory = needed;
  return running;
}

const AnotherTry kTwoMore{.number = 2, .most = 3};
const AnotherTry kLastTry{.number = 3, .most = 3};

TEST(RetryRequests, ChangeNothingOfATaskThatIsNotThere) {
  const RetryRequests requests;
  EXPECT_EQ(requests.memory_of(kTask), std::nullopt);
  EXPECT_EQ(requests.gpu_of(kTask).most, Bytes{});
  EXPECT_EQ(applied(requests).gpu_memory, gb(1));
  EXPECT_FALSE(applied(requests).largest);
  EXPECT_THAT(applied(requests).avoids, IsEmpty());
}

TEST(RetryRequests, AreRaisedOnlyAboveTheTerms) {
  RetryRequests requests;
  const model::Terms terms = sharing_a_gpu(gb(4), gb(2));
  EXPECT_FALSE(requests.raise(kTask, terms, {.memory = gb(4), .gpu_memory = gb(2)}));
  EXPECT_EQ(requests.memory_of(kTask), std::nullopt);
  EXPECT_TRUE(requests.raise(kTask, terms, {.memory = gb(5), .gpu_memory = gb(2)}));
  EXPECT_EQ(requests.memory_of(kTask), gb(5));
  EXPECT_EQ(applied(requests).gpu_memory, gb(1));
  EXPECT_TRUE(requests.raise(kTask, terms, {.memory = gb(4), .gpu_memory = gb(3)}));
  EXPECT_EQ(applied(requests).gpu_memory, gb(3));
}

TEST(RetryRequests, AreNotRaisedOnGpusThatATaskHasToItselfAnyway) {
  RetryRequests requests;
  EXPECT_FALSE(requests.raise(kTask, sharing_a_gpu(gb(4), Bytes{}), {.gpu_memory = gb(3)}));
  model::Terms learns = sharing_a_gpu(gb(4), Bytes{});
  learns.learns_gpu_memory = true;
  EXPECT_TRUE(requests.raise(kTask, learns, {.gpu_memory = gb(3)}));
  EXPECT_EQ(applied(requests).gpu_memory, gb(3));
}

TEST(RetryRequests, LeaveAResumedTaskAloneOnTheLargestGpu) {
  RetryRequests requests;
  EXPECT_TRUE(requests.raise(kTask, sharing_a_gpu(gb(4), gb(2)),
                             {.memory = gb(4), .gpu_memory = gb(3), .largest = true}));
  EXPECT_TRUE(applied(requests).largest);
  EXPECT_EQ(applied(requests).gpu_memory, Bytes{});
  EXPECT_EQ(requests.gpu_of(kTask).most, gb(3));
}

TEST(RetryRequests, GiveTheHostMemoryOfATaskOnce) {
  RetryRequests requests;
  requests.raise(kTask, sharing_a_gpu(gb(4), gb(2)), {.memory = gb(5)});
  EXPECT_EQ(requests.take_memory(kTask), gb(5));
  EXPECT_EQ(requests.take_memory(kTask), std::nullopt);
}

TEST(RetryRequests, NameEachLostGpuOnce) {
  RetryRequests requests;
  requests.avoid(kTask, kSecondGpu);
  requests.avoid(kTask, kFirstGpu);
  requests.avoid(kTask, kSecondGpu);
  EXPECT_THAT(applied(requests).avoids, ElementsAre(kSecondGpu, kFirstGpu));
  requests.forget(kTask);
  EXPECT_THAT(applied(requests).avoids, IsEmpty());
}

TEST(RetryRequests, GrowByHalfOnAGpuOrToWhatTheTaskNeeded) {
  const RetryRequests requests;
  const auto grown = [&](Bytes needed, Bytes most) {
    return requests.gpu_after(needing(needed), Setback::OutOfMemory, kTwoMore, most, false).each;
  };
  EXPECT_EQ(grown(gb(2), gb(8)), gb(3));
  EXPECT_EQ(grown(gb(5), gb(8)), gb(5));
  EXPECT_EQ(grown(gb(9), gb(8)), gb(8));
}

TEST(RetryRequests, LeaveTheLastTryAndTheLargestRequestAloneOnTheGpu) {
  const RetryRequests requests;
  const Running running = needing(gb(2));
  EXPECT_FALSE(requests.gpu_after(running, Setback::OutOfMemory, kTwoMore, gb(8), false).largest);
  EXPECT_TRUE(requests.gpu_after(running, Setback::OutOfMemory, kLastTry, gb(8), false).largest);
  EXPECT_TRUE(requests.gpu_after(running, Setback::OutOfMemory, kTwoMore, gb(2), false).largest);
}

TEST(RetryRequests, DoNotGrowBeyondTheNeedOfATaskThatWasNotAtFault) {
  const RetryRequests requests;
  const auto after = [&](Bytes needed, bool has_hard_limit) {
    return requests.gpu_after(needing(needed), Setback::Crowded, kLastTry, gb(8), has_hard_limit);
  };
  EXPECT_EQ(after(gb(1), false).each, gb(2));
  EXPECT_EQ(after(gb(3), false).each, gb(3));
  EXPECT_EQ(after(gb(3), true).each, gb(2)) << "a hard limit does not grow";
  EXPECT_FALSE(after(gb(3), false).largest);
}

TEST(RetryRequests, KeepTheLargestRequestOnceATaskIsAloneOnItsGpu) {
  RetryRequests requests;
  requests.grow(kTask, {.each = gb(6), .most = gb(6)});
  const GrownGpu alone =
      requests.gpu_after(needing(gb(2)), Setback::OutOfMemory, kLastTry, gb(8), false);
  EXPECT_EQ(alone.each, Bytes{});
  EXPECT_EQ(alone.most, gb(6));
}

class AvoidedGpus : public testing::Test {
 protected:
  /// The GPUs that a task still avoids which was lost on some of the two of the machine.
  std::vector<model::GpuPlace> left_of(std::vector<model::GpuPlace> lost_on, int gpus = 1) {
    model::Request request{.gpus = gpus, .gpu_memory = gb(2), .avoids = std::move(lost_on)};
    const model::Request written{.memory = gb(1), .gpus = gpus, .gpu_memory = gb(2)};
    avoid_if_others_fit(request, written, {&book_, 1}, kKeepsNothingFree);
    return request.avoids;
  }

  MachineBook book_{model::MachineJoined{.machine = {}, .name = "here", .capacity = kTwoGpus},
                    kKeepsNothingFree, at(0)};
};

TEST_F(AvoidedGpus, AreAvoidedWhileOthersFit) {
  EXPECT_THAT(left_of({kFirstGpu}), ElementsAre(kFirstGpu));
}

TEST_F(AvoidedGpus, AreThoseThatAreALastResortWhileOthersFit) {
  for (const int from : {1, 20}) {
    book_.gpus.see(at(from), {.gpus = {{}, {.present = false}}, .uses = {}});
    book_.gpus.see(at(from + 3), {.gpus = {{}, {}}, .uses = {}});
  }
  book_.gpus.see(at(33), {.gpus = {{}, {}}, .uses = {}});
  EXPECT_THAT(left_of({}), ElementsAre(kSecondGpu));
  EXPECT_THAT(left_of({}, 2), IsEmpty());
  EXPECT_THAT(left_of({kFirstGpu}), ElementsAre(kFirstGpu)) << "there is no third GPU";
}

TEST_F(AvoidedGpus, AreUsedAgainIfTooFewOthersFit) {
  EXPECT_THAT(left_of({kFirstGpu, kSecondGpu}), IsEmpty());
  EXPECT_THAT(left_of({kFirstGpu}, 2), IsEmpty());
}

TEST_F(AvoidedGpus, AreUsedAgainIfTheOthersAreOnAMachineThatIsGone) {
  book_.is_gone = true;
  EXPECT_THAT(left_of({kFirstGpu}), IsEmpty());
}

}  // namespace
}  // namespace trainyard::schedule
