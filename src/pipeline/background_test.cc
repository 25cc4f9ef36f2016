// Pipeline::async, and the workers it runs on.
#include "pipeline/background.h"

#include <barrier>
#include <chrono>
#include <latch>
#include <optional>
#include <stdexcept>
#include <thread>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pipeline/test_loop.h"
#include "trainyard/event.h"
#include "trainyard/pipeline.h"

namespace trainyard::pipeline {
namespace {

using namespace std::chrono_literals;

constexpr Event<int> kGo{"go"};

TEST(BackgroundJob, IsDoneBeforeTheWayBack) {
  std::atomic<int> done = 0;
  std::vector<int> seen;
  Pipeline<Loop> loop;
  loop.use("begins", [&](Loop&) -> Step {
    for (int i = 0; i < 5; ++i) loop.async("job", [&] { ++done; });
    co_yield after;
    seen.push_back(done);
    loop.async("another", [&] { ++done; });
  });
  EXPECT_TRUE(loop.run({.max_steps = 3}));
  EXPECT_THAT(seen, testing::ElementsAre(5, 11, 17));
  EXPECT_EQ(done, 18) << "and before the end of its iteration";
}

TEST(BackgroundJob, RunsBesideTheSteps) {
  std::barrier meet(2);
  Pipeline<Loop> loop({.n_async_workers = 1});
  loop.use([&](Loop&) { loop.async("job", [&] { meet.arrive_and_wait(); }); }).use([&](Loop&) {
    meet.arrive_and_wait();
  });
  EXPECT_TRUE(loop.run({.max_steps = 20}));
}

TEST(BackgroundJob, RunsWithoutWorkersToo) {
  int done = 0;
  Pipeline<Loop> loop({.n_async_workers = 0});
  loop.use([&](Loop&) {
    loop.async("job", [&] {
      ++done;
      loop.async("of a job", [&] { ++done; });
    });
  });
  EXPECT_TRUE(loop.run({.max_steps = 3}));
  EXPECT_EQ(done, 6);
}

TEST(BackgroundJob, ThatThrowsFailsThePipelineWithAllOthers) {
  std::string order;
  Pipeline<Loop> loop({.n_async_workers = 0});
  loop.use("a", guarded(order, "a")).use([&](Loop&) {
    loop.async("one", [] { throw std::runtime_error("boom"); });
    loop.async("two", [&] { order += "two "; });
    loop.async("three", [] { throw std::runtime_error("bang"); });
  });
  EXPECT_EQ(loop.run().why,
            "step 'one': std::runtime_error: boom\nstep 'three': std::runtime_error: bang");
  EXPECT_EQ(order, "two ~a0 ");
}

TEST(BackgroundJob, ThatFailedBeforeAnybodyWaitedFailsThePipelineToo) {
  for (int round = 0; round < 50; ++round) {
    std::atomic<bool> thrown = false;
    struct Tells {
      std::atomic<bool>* thrown;
      ~Tells() { *thrown = true; }
    };
    Pipeline<Loop> loop({.n_async_workers = 1});
    loop.use([&](Loop&) {
      loop.async("job", [&, tells = std::make_shared<Tells>(&thrown)]() mutable {
        const auto last = std::move(tells);
        throw std::runtime_error("boom");
      });
      while (!thrown) std::this_thread::yield();
    });
    EXPECT_EQ(loop.run().why, "step 'job': std::runtime_error: boom");
    EXPECT_EQ(loop.events().wait_for(kGo, 1ns).error(), NoEvent::Deadline) << "waits are as ever";
  }
}

TEST(BackgroundJob, MayUseWhatTheHalfOfAStepHolds) {
  Pipeline<Loop> loop({.n_async_workers = 1});
  std::latch begun(1);
  int seen = 0;
  loop.use("holds",
           [&](Loop&) -> Step {
             const auto held = std::make_unique<int>(7);
             loop.async("job", [&, value = held.get()] {
               begun.count_down();
               for (int i = 0; i < 1'000; ++i) seen = *value;
             });
             co_yield after;
           })
      .use("fails", [&](Loop&) {
        begun.wait();
        throw std::runtime_error("boom");
      });
  EXPECT_FALSE(loop.run());
  EXPECT_EQ(seen, 7);
}

TEST(BackgroundJob, ThatWaitsForAnEventEndsWhenAnotherFails) {
  Pipeline<Loop> loop({.n_async_workers = 1});
  std::barrier meet(2);
  std::optional<NoEvent> why;
  loop.use([&](Loop&) {
    loop.async("waits", [&] {
      auto pending = loop.events().expect(kGo);
      meet.arrive_and_wait();
      why = pending.wait(std::chrono::hours(1)).error();
    });
    loop.async("fails", [&] {
      meet.arrive_and_wait();
      throw std::runtime_error("boom");
    });
  });
  EXPECT_EQ(loop.run().why, "step 'fails': std::runtime_error: boom");
  EXPECT_EQ(why, NoEvent::Failed);
}

TEST(BackgroundJob, ThatWasBegunByHandIsAnsweredForByTheNextRun) {
  int steps = 0;
  Pipeline<Loop> loop({.n_async_workers = 0});
  loop.use([&](Loop&) { ++steps; });
  loop.async("job", [] { throw std::runtime_error("boom"); });
  EXPECT_EQ(loop.run().why, "step 'job': std::runtime_error: boom");
  EXPECT_EQ(steps, 0);
  EXPECT_TRUE(loop.run({.max_steps = 1}));
}

TEST(BackgroundJob, IsWaitedForWhenAStepFails) {
  bool done = false;
  Pipeline<Loop> loop({.n_async_workers = 0});
  loop.use([&](Loop&) { loop.async("job", [&] { done = true; }); }).use("fails", [](Loop&) {
    throw std::runtime_error("boom");
  });
  EXPECT_EQ(loop.run().why, "step 'fails': std::runtime_error: boom");
  EXPECT_TRUE(done);
}

TEST(Background, HoldsSoManyAndThenHasWhoAddsOneDoOne) {
  WorkerPool pool(0);
  EventBus bus;
  Background background(pool, bus);
  int done = 0;
  for (std::size_t i = 0; i < Background::kWaitingMax; ++i) background.add("job", [&] { ++done; });
  EXPECT_EQ(done, 0);
  background.add("one more", [&] { ++done; });
  EXPECT_EQ(done, 1);
  EXPECT_TRUE(background.finish().empty());
  EXPECT_EQ(done, 1'025);
  EXPECT_TRUE(background.idle());
}

TEST(WorkerPool, HasOthersWorkWhileItsThreadsWaitForAnEvent) {
  std::atomic<int> heard = 0;
  Pipeline<Loop> loop({.n_async_workers = 2});
  std::latch armed(4);
  loop.use([&](Loop&) {
    // Twice as many wait as there are workers, and the one who emits stands behind them.
    for (int i = 0; i < 4; ++i) {
      loop.async("waits", [&] {
        auto pending = loop.events().expect(kGo);
        armed.count_down();
        if (pending.wait(60s)) ++heard;
      });
    }
    loop.async("emits", [&] {
      armed.wait();
      loop.events().emit(kGo, 1);
    });
  });
  EXPECT_TRUE(loop.run({.max_steps = 1}));
  EXPECT_EQ(heard, 4);
}

TEST(WorkerPool, StartsSoManyThreadsAndNoMore) {
  WorkerPool pool(WorkerPool::kThreadsMax + 10);
  EXPECT_EQ(pool.threads(), WorkerPool::kThreadsMax);
}

}  // namespace
}  // namespace trainyard::pipeline
