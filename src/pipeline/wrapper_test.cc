// Wrappers and locks: what is around the halves of a step.
#include <atomic>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pipeline/test_loop.h"
#include "trainyard/pipeline.h"

namespace trainyard::pipeline {
namespace {

/// Writes "[w:step " and "] " around each half.
auto wrapper(std::string& order, const std::string& name) {
  return [&order, name](const StepCall& call, Loop&, const Next& next) {
    order += "[" + name + ":" + std::string(call.step);
    order += call.phase == Phase::Backward ? "' " : " ";
    next();
    order += "] ";
  };
}

TEST(Wrapper, IsAroundBothHalvesAndTheLastOneIsOutermost) {
  std::string order;
  Pipeline<Loop> loop;
  loop.wrap(wrapper(order, "w")).wrap(wrapper(order, "v")).use("a", both(order, "A"));
  EXPECT_TRUE(loop.run({.max_steps = 1}));
  EXPECT_EQ(order, "[v:a [w:a A ] ] [v:a' [w:a' A' ] ] ");
}

TEST(Wrapper, HasTheSameEffectWheneverItIsAdded) {
  std::string early;
  std::string late;
  Pipeline<Loop> first;
  first.wrap(wrapper(early, "w")).use("a", both(early, "A")).use("b", [](Loop&) {});
  Pipeline<Loop> last;
  last.use("a", both(late, "A")).use("b", [](Loop&) {}).wrap(wrapper(late, "w"));
  EXPECT_TRUE(first.run({.max_steps = 2}));
  EXPECT_TRUE(last.run({.max_steps = 1}));
  EXPECT_TRUE(last.run({.max_steps = 1}));
  EXPECT_EQ(early, "[w:a A ] [w:b ] [w:a' A' ] [w:a A ] [w:b ] [w:a' A' ] ");
  EXPECT_EQ(early, late);
}

TEST(Wrapper, ReachesThePartsOfGroupsAndNestedSteps) {
  std::string order;
  Pipeline<Loop> loop({.n_async_workers = 0});
  const auto inner = loop.nested("inner", both(order, "I"));
  loop.use("group", serial(named("a", both(order, "A")), [&](Loop& context) { inner(context)(); }));
  loop.wrap(wrapper(order, "w"));
  EXPECT_TRUE(loop.run({.max_steps = 1}));
  EXPECT_EQ(order,
            "[w:group [w:group/a A ] [w:group/2 [w:inner I ] [w:inner' I' ] ] ] "
            "[w:group' [w:group/a' A' ] ] ");
}

TEST(Wrapper, CanLeaveAStepOut) {
  std::string order;
  Pipeline<Loop> loop;
  loop.use("a", both(order, "a")).use("b", both(order, "b"));
  loop.wrap([](const StepCall& call, Loop&, const Next& next) {
    if (call.step != "b") next();
  });
  EXPECT_TRUE(loop.run({.max_steps = 1}));
  EXPECT_EQ(order, "a a' ");
}

TEST(Wrapper, CanCatchWhatAStepThrowsAsItWasThrown) {
  int tries = 0;
  int caught = 0;
  Pipeline<Loop> loop;
  loop.use("flaky", serial([&](Loop&) {
             if (++tries < 3) throw std::runtime_error("not yet");
           }));
  loop.wrap([&](const StepCall& call, Loop&, const Next& next) {
    if (call.step != "flaky") return next();
    for (;;) {
      try {
        return next();
      } catch (const std::runtime_error&) {
        ++caught;
      }
    }
  });
  EXPECT_TRUE(loop.run({.max_steps = 1}));
  EXPECT_EQ(tries, 3);
  EXPECT_EQ(caught, 2);
}

TEST(Wrapper, ThatCatchesWhatASecondHalfThrowsEndsIt) {
  std::string order;
  Pipeline<Loop> loop;
  loop.use("first",
           [](Loop&) -> Step {
             throw std::runtime_error("no first half");
             co_yield after;
           })
      .use("second",
           [](Loop&) -> Step {
             co_yield after;
             throw std::runtime_error("no second half");
           })
      .use("none", [](Loop&) { return Step{}; });
  loop.wrap([&](const StepCall& call, Loop&, const Next& next) {
    try {
      next();
    } catch (const std::runtime_error& error) {
      order += std::string(call.step) + ": " + error.what() + "; ";
    }
  });
  EXPECT_TRUE(loop.run({.max_steps = 2}));
  EXPECT_EQ(order,
            "first: no first half; second: no second half; "
            "first: no first half; second: no second half; ");
}

TEST(Wrapper, ThatThrowsFailsTheStepThatItWraps) {
  Pipeline<Loop> loop;
  loop.use("group", serial(named("a", [](Loop&) { throw std::runtime_error("inside"); })));
  loop.wrap([](const StepCall& call, Loop&, const Next& next) {
    try {
      next();
    } catch (const std::runtime_error& error) {
      if (call.step != "group") throw;
      throw std::logic_error(std::string("around ") + error.what());
    }
  });
  EXPECT_EQ(loop.run().why, "step 'group': std::logic_error: around inside");
}

TEST(StepLock, KeepsBothHalvesApart) {
  Pipeline<Loop> loop({.n_async_workers = 2});
  std::atomic<int> inside = 0;
  std::atomic<int> together = 0;
  int calls = 0;  // Not atomic: the lock is enough.
  const auto alone = [&](Loop&) -> Step {
    if (++inside > 1) ++together;
    ++calls;
    --inside;
    co_yield after;
    ++calls;
  };
  std::vector<AnyStep<Loop>> parts;
  for (int i = 0; i < 4; ++i) parts.emplace_back(named<Loop>("", alone, {.lock = shared_lock}));
  loop.use(parallel(std::move(parts)));
  EXPECT_TRUE(loop.run({.max_steps = 200}));
  EXPECT_EQ(together, 0);
  EXPECT_EQ(calls, 1'600);
}

TEST(StepLock, OfOnesOwnHoldsAcrossPipelines) {
  StepLock lock;
  int calls = 0;
  const auto count = [&](Loop&) { ++calls; };
  Pipeline<Loop> loop({.n_async_workers = 1});
  Pipeline<Loop> other;
  other.use("counts", count, {.lock = &lock});
  loop.use(parallel(named<Loop>("mine", count, {.lock = &lock}),
                    [&](Loop&) { static_cast<void>(other.run({.max_steps = 1})); }));
  EXPECT_TRUE(loop.run({.max_steps = 500}));
  EXPECT_EQ(calls, 1'000);
}

TEST(StepLock, CanBeTakenAgainByAStepThatIsCalled) {
  std::string order;
  Pipeline<Loop> loop;
  const auto inner = loop.nested("inner", both(order, "inner"), {.lock = shared_lock});
  loop.use("outer", [&](Loop& context) { inner(context)(); }, {.lock = shared_lock});
  EXPECT_TRUE(loop.run({.max_steps = 1}));
  EXPECT_EQ(order, "inner inner' ");
}

TEST(StepLock, ThatWouldWaitForItselfIsRefused) {
  Pipeline<Loop> loop;
  loop.use("group",
           parallel([](Loop&) {}, named<Loop>("part", [](Loop&) {}, {.lock = shared_lock})),
           {.lock = shared_lock});
  EXPECT_EQ(loop.run().errors.at(0).message, "its lock is held by 'group', which waits for it");
}

}  // namespace
}  // namespace trainyard::pipeline
