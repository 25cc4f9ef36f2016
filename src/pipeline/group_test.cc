// serial() and parallel(): several steps as one.
#include <atomic>
#include <barrier>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pipeline/test_loop.h"
#include "trainyard/pipeline.h"

namespace trainyard::pipeline {
namespace {

TEST(Serial, IsOneStepThatGoesBackInReverse) {
  std::string order;
  Pipeline<Loop> loop;
  loop.use("a", both(order, "a"))
      .use(serial(
          both(order, "x"), [&](Loop&) { order += "plain "; }, both(order, "y")))
      .use("z", both(order, "z"));
  EXPECT_TRUE(loop.run({.max_steps = 1}));
  EXPECT_EQ(order, "a x plain y z z' y' x' a' ");
}

TEST(Serial, TakesAListThatIsKnownOnlyWhenItRuns) {
  std::string order;
  std::vector<AnyStep<Loop>> steps;
  for (const char* name : {"a", "b", "c"}) steps.emplace_back(both(order, name));
  Pipeline<Loop> loop;
  loop.use(serial(std::move(steps), both(order, "d")));
  EXPECT_TRUE(loop.run({.max_steps = 1}));
  EXPECT_EQ(order, "a b c d d' c' b' a' ");
}

TEST(Parallel, RunsItsPartsAtTheSameTime) {
  Pipeline<Loop> loop({.n_async_workers = 1});
  std::barrier meet(2);  // Each waits for the other: one after another would never end.
  const auto part = [&](Loop&) { meet.arrive_and_wait(); };
  loop.use(parallel(part, part));
  EXPECT_TRUE(loop.run({.max_steps = 50}));
}

TEST(Parallel, NeedsNoWorker) {
  std::string order;
  Pipeline<Loop> loop({.n_async_workers = 0});
  loop.use(parallel(both(order, "a"), both(order, "b")));
  EXPECT_TRUE(loop.run({.max_steps = 1}));
  EXPECT_EQ(order, "a b b' a' ");
}

TEST(Parallel, EndsWithTheLastOfItsParts) {
  std::atomic<int> done = 0;
  int seen = 0;
  Pipeline<Loop> loop;
  std::vector<AnyStep<Loop>> parts;
  for (int i = 0; i < 20; ++i) parts.emplace_back([&](Loop&) { ++done; });
  loop.use(parallel(std::move(parts))).use([&](Loop&) { seen = done; });
  EXPECT_TRUE(loop.run({.max_steps = 10}));
  EXPECT_EQ(seen, 200);
}

TEST(Parallel, GoesBackInReverseOrderOfRegistrationOneByOne) {
  std::string order;
  const auto back = [&](const char* name) {
    return [&order, name](Loop&) { return [&order, name] { order += name; }; };
  };
  Pipeline<Loop> loop;
  loop.use("a", back("A"))
      .use(parallel([](Loop&) {}, back("P"), serial(back("X"), back("Y")), back("Q")))
      .use("z", back("Z"));
  for (int i = 0; i < 100; ++i) {
    order.clear();
    EXPECT_TRUE(loop.run({.max_steps = 1}));
    EXPECT_EQ(order, "ZQYXPA");
  }
}

TEST(Parallel, Nests) {
  std::atomic<int> calls = 0;
  const auto count = [&](Loop&) { ++calls; };
  Pipeline<Loop> loop({.n_async_workers = 2});
  loop.use(parallel(count, parallel(count, count, serial(count, parallel(count, count))), count));
  EXPECT_TRUE(loop.run({.max_steps = 100}));
  EXPECT_EQ(calls, 700);
}

TEST(Parallel, ReportsAllErrorsInTheOrderOfItsParts) {
  std::string order;
  const auto fails = [](const char* text) {
    return [text](Loop&) { throw std::runtime_error(text); };
  };
  Pipeline<Loop> loop;
  loop.use("a", guarded(order, "a"))
      .use("evaluate", parallel(
                           named("test", fails("one")), [](Loop&) {},
                           serial(named("upload", fails("two")), fails("never")),
                           parallel(fails("three"), fails("four"))));
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(loop.run().why,
              "step 'evaluate/test': std::runtime_error: one\n"
              "step 'evaluate/3/upload': std::runtime_error: two\n"
              "step 'evaluate/4/1': std::runtime_error: three\n"
              "step 'evaluate/4/2': std::runtime_error: four");
  }
  EXPECT_TRUE(order.starts_with("~a0 ~a0 "));
}

TEST(Parallel, DropsThePartsThatWaitWhenAnotherFails) {
  std::string order;
  Pipeline<Loop> loop({.n_async_workers = 0});
  loop.use(parallel(guarded(order, "a"), guarded(order, "b"),
                    [](Loop&) { throw std::runtime_error("boom"); }));
  EXPECT_FALSE(loop.run());
  EXPECT_EQ(order, "~b0 ~a0 ");
}

TEST(Parallel, OfWhichOneWayBackFailsDropsTheRest) {
  std::string order;
  Pipeline<Loop> loop({.n_async_workers = 0});
  loop.use("group",
           parallel(
               guarded(order, "a"), [](Loop&) { return [] { throw std::runtime_error("boom"); }; },
               both(order, "c")));
  EXPECT_EQ(loop.run().why, "step 'group/2': std::runtime_error: boom");
  EXPECT_EQ(order, "c c' ~a0 ");
}

TEST(Group, EndsItsPartsInReverse) {
  std::string order;
  struct Ends {
    std::string* order;
    char name;
    void forward(Loop&) {}
    void backward(Loop&) {}
    void ended(Loop&) { *order += name; }
  };
  Pipeline<Loop> loop;
  loop.use("a", Ends{&order, 'a'})
      .use(parallel(Ends{&order, 'b'}, serial(Ends{&order, 'c'}, Ends{&order, 'd'})));
  EXPECT_TRUE(loop.run({.max_steps = 2}));
  EXPECT_EQ(order, "dcba");
}

}  // namespace
}  // namespace trainyard::pipeline
