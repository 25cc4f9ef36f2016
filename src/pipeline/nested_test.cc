// Steps that are called by other steps (DI-engine `wrap`).
#include <optional>
#include <stdexcept>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pipeline/test_loop.h"
#include "trainyard/pipeline.h"

namespace trainyard::pipeline {
namespace {

TEST(NestedStep, GoesItsWayBackWhenItsCallerSaysSo) {
  std::string order;
  Pipeline<Loop> loop;
  const auto inner = loop.nested("inner", both(order, "inner"));
  loop.use("a", both(order, "a")).use("outer", [&](Loop& context) -> Step {
    auto back = inner(context);
    order += "outer ";
    back();
    back();  // No effect: it has gone.
    co_yield after;
    order += "outer' ";
  });
  EXPECT_TRUE(loop.run({.max_steps = 2}));
  EXPECT_EQ(order, "a inner outer inner' outer' a' a inner outer inner' outer' a' ");
}

TEST(NestedStep, FollowsItsCallerOnTheWayBackWhenNobodySaysAnything) {
  std::string order;
  Pipeline<Loop> loop;
  const auto one = loop.nested("one", both(order, "one"));
  const auto two = loop.nested("two", both(order, "two"));
  loop.use("a", both(order, "a"))
      .use("outer",
           [&](Loop& context) -> Step {
             one(context);
             two(context);
             order += "outer ";
             co_yield after;
             order += "outer' ";
           })
      .use("plain", [&](Loop& context) { one(context); })
      .use("z", both(order, "z"));
  EXPECT_TRUE(loop.run({.max_steps = 1}));
  EXPECT_EQ(order, "a one two outer one z z' one' outer' two' one' a' ");
}

TEST(NestedStep, CanBeCalledSeveralTimesAndGoBackInAnyOrder) {
  std::string order;
  Pipeline<Loop> loop;
  const auto count = loop.nested("count", [&](Loop& context) {
    const int mine = ++context.loss;
    return [&order, mine] { order += std::to_string(mine) + "' "; };
  });
  loop.use("outer", [&](Loop& context) {
    auto one = count(context);
    count(context);
    auto three = count(context);
    count(context);
    one();
    three();
  });
  EXPECT_TRUE(loop.run({.max_steps = 2}));
  EXPECT_EQ(order, "1' 3' 4' 2' 1' 3' 4' 2' ");
}

TEST(NestedStep, MayHaveNoWayBack) {
  int calls = 0;
  Pipeline<Loop> loop;
  const auto plain = loop.nested("plain", [&](Loop&) { ++calls; });
  loop.use("outer", [&](Loop& context) {
    auto back = plain(context);
    back();
    plain(context);
  });
  EXPECT_TRUE(loop.run({.max_steps = 3}));
  EXPECT_EQ(calls, 6);
}

TEST(NestedStep, MayBeAGroupAndCallOthers) {
  std::string order;
  Pipeline<Loop> loop;
  const auto leaf = loop.nested("leaf", both(order, "leaf"));
  const auto group = loop.nested(
      "group", serial(both(order, "x"), [&](Loop& context) { leaf(context); }, both(order, "y")));
  loop.use("outer", [&](Loop& context) {
    auto back = group(context);
    order += "| ";
    back();
  });
  EXPECT_TRUE(loop.run({.max_steps = 1}));
  EXPECT_EQ(order, "x leaf y | y' leaf' x' ");
}

TEST(NestedStep, IsOneStepHoweverOftenItIsCalled) {
  std::string order;
  Pipeline<Loop> loop;
  int all = 0;
  const auto counting = [&, mine = 0](Loop&) mutable {
    all += ++mine;
    return [&order, mine] { order += std::to_string(mine); };
  };
  const auto one = loop.nested("one", counting);
  const auto group = loop.nested("group", serial(named("part", counting), [](Loop&) {}));
  loop.use("outer", [&](Loop& context) {
    for (const auto& nested : {one, group}) {
      nested(context);
      nested(context);
      nested(context);
    }
  });
  EXPECT_TRUE(loop.run({.max_steps = 1}));
  EXPECT_EQ(all, 12);
  EXPECT_EQ(order, "321321");
}

TEST(NestedStep, BelongsToAStep) {
  Pipeline<Loop> loop;
  const auto inner = loop.nested("inner", [](Loop&) {});
  EXPECT_THROW(inner(loop.context()), std::logic_error);
  Pipeline<Loop> other;
  other.use("steals", [&](Loop& context) { inner(context); });
  EXPECT_EQ(
      other.run().why,
      "step 'steals': std::logic_error: nested step 'inner' is called outside of the steps of "
      "its pipeline");
}

TEST(NestedStep, MayBeCalledAfterAnotherPipelineFailedInItsCaller) {
  int calls = 0;
  Pipeline<Loop> loop;
  const auto inner = loop.nested("inner", [&](Loop&) { ++calls; });
  loop.use("outer", [&](Loop& context) {
    Pipeline<Loop> other;
    other.use([](Loop&) { throw std::runtime_error("boom"); });
    EXPECT_FALSE(other.run());
    inner(context);
  });
  EXPECT_TRUE(loop.run({.max_steps = 2}));
  EXPECT_EQ(calls, 2);
}

TEST(NestedStep, ThatCannotBePlacedIsKnownAtTheStart) {
  int calls = 0;
  Pipeline<Loop> loop({.roles = {role::kLearner}});
  loop.nested("inner", [](Loop&) {}, {.roles = {role::kCollector}});
  loop.use([&](Loop&) { ++calls; });
  EXPECT_EQ(loop.run().why,
            "step 'inner': it is for collector, and this pipeline is learner: nobody runs it");
  EXPECT_EQ(calls, 0);
}

TEST(NestedStep, ThatWouldWaitForALockOfItsCallerIsRefused) {
  Pipeline<Loop> loop;
  const auto inner = loop.nested(
      "inner", parallel([](Loop&) {}, named<Loop>("part", [](Loop&) {}, {.lock = shared_lock})));
  loop.use("outer", serial(named("calls", [&](Loop& context) { inner(context); })),
           {.lock = shared_lock});
  EXPECT_THAT(loop.run().why, testing::HasSubstr("step 'inner/part': its lock is held by 'outer'"));
}

TEST(NestedStep, FailsWithItsOwnName) {
  std::string order;
  Pipeline<Loop> loop;
  const auto good = loop.nested("good", guarded(order, "good"));
  const auto bad = loop.nested("bad", [](Loop&) { throw std::runtime_error("boom"); });
  loop.use("outer", [&](Loop& context) -> Step {
    good(context);
    bad(context);
    co_yield after;
  });
  EXPECT_EQ(loop.run().why, "step 'bad': std::runtime_error: boom");
  EXPECT_EQ(order, "~good0 ");
}

TEST(NestedStep, ThatFailsMayBeForgivenByItsCaller) {
  std::string order;
  Pipeline<Loop> loop;
  const auto bad = loop.nested("bad", [](Loop&) { throw std::runtime_error("boom"); });
  loop.use("outer", [&](Loop& context) {
    try {
      bad(context);
    } catch (const std::runtime_error&) {
      order += "caught ";
    }
  });
  EXPECT_TRUE(loop.run({.max_steps = 2}));
  EXPECT_EQ(order, "caught caught ");
}

TEST(NestedStep, CanBeCalledByHand) {
  std::string order;
  Pipeline<Loop> loop;
  const auto inner = loop.nested("inner", both(order, "inner"));
  EXPECT_TRUE(loop.forward("outer", [&](Loop& context) { inner(context); }));
  EXPECT_TRUE(loop.backward());
  EXPECT_EQ(order, "inner inner' ");
}

TEST(NestedStep, OfAnIterationThatIsOverHasNoWayBack) {
  std::string order;
  std::optional<WayBack> kept;
  Pipeline<Loop> loop;
  const auto inner = loop.nested("inner", both(order, "inner"));
  loop.use("outer", [&](Loop& context) {
    if (kept) (*kept)();
    kept = inner(context);
  });
  EXPECT_TRUE(loop.run({.max_steps = 2}));
  EXPECT_EQ(order, "inner inner' inner inner' ");
}

}  // namespace
}  // namespace trainyard::pipeline
