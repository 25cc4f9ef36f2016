#include "trainyard/pipeline.h"

#include <chrono>
#include <cstdint>
#include <exception>
#include <optional>
#include <stdexcept>
#include <stop_token>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pipeline/test_loop.h"
#include "trainyard/event.h"
#include "trainyard/event_bus.h"

namespace trainyard::pipeline {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(Pipeline, RunsForwardInOrderAndBackwardInReverse) {
  std::string order;
  Pipeline<Loop> loop;
  loop.use("a", both(order, "a")).use("b", both(order, "b")).use("c", both(order, "c"));
  const RunResult result = loop.run({.max_steps = 2});
  EXPECT_EQ(order, "a b c c' b' a' a b c c' b' a' ");
  EXPECT_EQ(result.outcome, Outcome::MaxSteps);
  EXPECT_EQ(result.steps, 2U);
  EXPECT_TRUE(result);
}

struct Recorder {
  std::string* order;
  void forward(Loop&) { *order += "object "; }
  void backward(Loop&) { *order += "object' "; }
  void ended(Loop& context) { *order += "ended at " + std::to_string(context.total_step) + " "; }
};

TEST(Pipeline, TakesStepsOfFourKinds) {
  std::string order;
  Pipeline<Loop> loop;
  loop.use([&](Loop&) { order += "plain "; })
      .use([&](Loop& context) {
        context.loss = 4;
        return [&] { order += "returned' " + std::to_string(context.loss) + " "; };
      })
      .use([&](Loop&) { return [&](Loop&) { order += "with-context' "; }; })
      .use([&](Loop& context) -> Step {
        order += "coroutine ";
        co_yield after;
        order += "coroutine' " + std::to_string(context.loss) + " ";
      })
      .use("recorder", Recorder{&order});
  EXPECT_TRUE(loop.run({.max_steps = 1}));
  EXPECT_EQ(order,
            "plain coroutine object object' coroutine' 4 with-context' returned' 4 ended at 0 ");
}

TEST(Pipeline, GoesBackOnlyWhereThereIsAWayBack) {
  std::string order;
  Pipeline<Loop> loop;
  loop.use("sometimes",
           [&](Loop& context) -> std::function<void()> {
             if (context.total_step == 1) return {};
             return [&] { order += "a' "; };
           })
      .use("early", [&](Loop& context) -> Step {
        if (context.total_step == 1) co_return;
        co_yield after;
        order += "b' ";
      });
  EXPECT_TRUE(loop.run({.max_steps = 3}));
  EXPECT_EQ(order, "b' a' b' a' ");
}

TEST(Pipeline, CanUseAStepThatSomebodyElseOwns) {
  std::string order;
  Recorder recorder{&order};
  Pipeline<Loop> loop;
  loop.use("recorder", std::ref(recorder));
  EXPECT_TRUE(loop.run({.max_steps = 1}));
  EXPECT_EQ(order, "object object' ended at 0 ");
}

TEST(Pipeline, RenewsTheContextBetweenIterationsAndNotAfterTheLast) {
  std::vector<std::pair<std::uint64_t, int>> seen;
  Pipeline<Loop> loop;
  loop.use([&](Loop& context) {
    seen.emplace_back(context.total_step, context.loss);
    context.loss = 9;
    ++context.count;
  });
  EXPECT_TRUE(loop.run({.max_steps = 3}));
  EXPECT_THAT(seen, ElementsAre(std::pair(0, 0), std::pair(1, 0), std::pair(2, 0)));
  EXPECT_EQ(loop.context().total_step, 2U);
  EXPECT_EQ(loop.context().loss, 9);
  EXPECT_EQ(loop.context().count, 3);
}

TEST(Pipeline, GoesOnWhenItIsRunAgain) {
  std::vector<std::uint64_t> steps;
  Pipeline<Loop> loop;
  loop.use([&](Loop& context) { steps.push_back(context.total_step); });
  EXPECT_EQ(loop.run({.max_steps = 3}).steps, 3U);
  EXPECT_EQ(loop.run({.max_steps = 2}).steps, 2U);
  EXPECT_THAT(steps, ElementsAre(0U, 1U, 2U, 3U, 4U));
}

TEST(Pipeline, BeginsWithTheContextThatItIsGiven) {
  Loop first;
  first.count = 40;
  first.total_step = 7;
  Pipeline<Loop> loop({}, std::move(first));
  std::vector<std::uint64_t> steps;
  loop.use([&](Loop& context) {
    ++context.count;
    steps.push_back(context.total_step);
  });
  EXPECT_TRUE(loop.run({.max_steps = 2}));
  EXPECT_EQ(loop.context().count, 42);
  EXPECT_THAT(steps, ElementsAre(7U, 8U));
}

TEST(Pipeline, FinishesTheIterationInWhichItIsToldTo) {
  std::string order;
  Pipeline<Loop> loop;
  loop.use("a", both(order, "a"))
      .use("judge",
           [&](Loop& context) {
             if (context.total_step == 1) loop.finish();
           })
      .use("b", both(order, "b"));
  const RunResult result = loop.run({.max_steps = 10});
  EXPECT_EQ(result.outcome, Outcome::Finished);
  EXPECT_EQ(result.steps, 2U);
  EXPECT_EQ(order, "a b b' a' a b b' a' ");
}

TEST(Pipeline, SaysWhyItFinished) {
  Pipeline<Loop> loop;
  loop.use([&](Loop& context) {
    if (context.total_step < 2) return;
    loop.finish("good enough");
    loop.finish("another reason");
  });
  const RunResult result = loop.run();
  EXPECT_EQ(result.outcome, Outcome::Finished);
  EXPECT_EQ(result.why, "good enough");
  EXPECT_EQ(result.steps, 3U);
  EXPECT_THAT(result.errors, IsEmpty());
}

TEST(Pipeline, ForgetsAfterARunThatItWasToFinish) {
  Pipeline<Loop> loop;
  loop.use([&](Loop& context) {
    if (context.total_step == 0) loop.finish();
  });
  EXPECT_EQ(loop.run({.max_steps = 9}).outcome, Outcome::Finished);
  EXPECT_EQ(loop.run({.max_steps = 4}).outcome, Outcome::MaxSteps);
  EXPECT_EQ(loop.context().total_step, 4U);
}

TEST(Pipeline, TellsTheLastIteration) {
  std::vector<bool> forward;
  std::vector<bool> backward;
  Pipeline<Loop> loop;
  loop.use([&](Loop& context) -> Step {
    forward.push_back(context.last);
    co_yield after;
    backward.push_back(context.last);
  });
  EXPECT_TRUE(loop.run({.max_steps = 2}));
  EXPECT_THAT(forward, ElementsAre(false, true));
  EXPECT_THAT(backward, ElementsAre(false, true));
  loop.use([&](Loop&) { loop.finish(); });
  EXPECT_TRUE(loop.run());
  EXPECT_THAT(forward, ElementsAre(false, true, false)) << "nobody knew yet";
  EXPECT_THAT(backward, ElementsAre(false, true, true));
}

TEST(Pipeline, StopsBetweenIterationsWhenItIsAskedTo) {
  std::stop_source stop;
  std::string order;
  Pipeline<Loop> loop;
  loop.use("a", both(order, "a")).use("b", [&](Loop& context) -> Step {
    if (context.total_step == 1) stop.request_stop();
    co_yield after;
    order += context.last ? "last " : "";
  });
  const RunResult result = loop.run({}, stop.get_token());
  EXPECT_EQ(result.outcome, Outcome::Stopped);
  EXPECT_EQ(result.steps, 2U);
  EXPECT_EQ(order, "a a' a last a' ");
  EXPECT_EQ(loop.run({}, stop.get_token()).steps, 0U) << "it has been asked already";
}

TEST(Pipeline, WakesAStepThatWaitsWhenTheRunIsToEnd) {
  constexpr Event<int> kNeverFired{"never"};
  std::stop_source stop;
  for (const bool stops : {false, true}) {
    Pipeline<Loop> loop;
    std::optional<NoEvent> why;
    std::jthread ender;
    loop.use([&](Loop&) {
      ender = std::jthread([&] { stops ? static_cast<void>(stop.request_stop()) : loop.finish(); });
      why = loop.events().wait_for(kNeverFired, std::chrono::hours(1), loop.ending()).error();
    });
    const RunResult result = loop.run({}, stop.get_token());
    EXPECT_EQ(why, NoEvent::Stopped);
    EXPECT_EQ(result.steps, 1U);
    EXPECT_EQ(result.outcome, stops ? Outcome::Stopped : Outcome::Finished);
  }
}

TEST(Pipeline, FailsWhenItIsEndedAsFailedAlsoWhereAStopIsRequestedAfterThat) {
  for (const bool stops : {false, true}) {
    std::stop_source stop;
    Pipeline<Loop> loop;
    const auto end = loop.finisher();
    loop.use([&](Loop&) {
      end("worker 1 failed: boom", Outcome::Failed);
      if (stops) stop.request_stop();
    });
    const RunResult result = loop.run({}, stop.get_token());
    EXPECT_EQ(result.outcome, Outcome::Failed);
    EXPECT_FALSE(result);
    EXPECT_EQ(result.why, "worker 1 failed: boom");
    EXPECT_EQ(result.steps, 1U);
    ASSERT_EQ(result.errors.size(), 1U);
    EXPECT_THROW(std::rethrow_exception(result.errors[0].error), std::runtime_error);
  }
}

TEST(Pipeline, TellsOfEachIterationWhenItIsOver) {
  std::string order;
  Pipeline<Loop> loop;
  loop.use("a", both(order, "a")).after_iteration([&](const Loop& context) {
    order += std::to_string(context.total_step) + " ";
    if (context.total_step == 1) throw std::runtime_error("boom");
  });
  EXPECT_EQ(loop.run().why, "iteration: std::runtime_error: boom");
  EXPECT_EQ(order, "a a' 0 a a' 1 ");
}

TEST(Pipeline, EndsAtOnceWithoutSteps) {
  Pipeline<Loop> loop;
  const RunResult result = loop.run();
  EXPECT_EQ(result.outcome, Outcome::Finished);
  EXPECT_EQ(result.why, "no step is placed here");
  EXPECT_EQ(result.steps, 0U);
}

TEST(Pipeline, DoesNothingInNoSteps) {
  std::string order;
  Pipeline<Loop> loop;
  loop.use("recorder", Recorder{&order});
  const RunResult result = loop.run({.max_steps = 0});
  EXPECT_EQ(result.outcome, Outcome::MaxSteps);
  EXPECT_EQ(order, "") << "also nothing ended";
}

TEST(Pipeline, LeavesOutStepsThatAreNone) {
  int calls = 0;
  const auto make = [&](bool here) -> AnyStep<Loop> {
    if (!here) return no_step;
    return [&](Loop&) { ++calls; };
  };
  Pipeline<Loop> loop;
  loop.use("none", make(false))
      .use(no_step)
      .use("one", make(true))
      .use(serial(make(false), make(true)));
  EXPECT_TRUE(loop.run({.max_steps = 1}));
  EXPECT_EQ(calls, 2);
}

TEST(Pipeline, EndsWhatMustBeEndedInReverseOnce) {
  std::string order;
  struct Named {
    std::string* order;
    std::string name;
    void forward(Loop&) {}
    void backward(Loop&) {}
    void ended(Loop&) { *order += name; }
  };
  Pipeline<Loop> loop;
  loop.use("a", Named{&order, "a"}).use(serial(Named{&order, "b"}, Named{&order, "c"}));
  EXPECT_TRUE(loop.run({.max_steps = 3}));
  EXPECT_EQ(order, "cba");
}

TEST(Pipeline, RefusesToBeChangedOrRunByItsSteps) {
  Pipeline<Loop> loop;
  loop.use("adds", [&](Loop&) { loop.use([](Loop&) {}); });
  EXPECT_EQ(loop.run().why,
            "step 'adds': std::logic_error: a step is added while the pipeline runs");
  Pipeline<Loop> other;
  other.use("runs", [&](Loop&) { static_cast<void>(other.run()); });
  EXPECT_EQ(other.run().why,
            "step 'runs': std::logic_error: a step drives the pipeline that runs it");
}

TEST(PipelineByHand, IsDrivenHalfByHalf) {
  std::string order;
  Pipeline<Loop> loop;
  loop.use("a", both(order, "a")).use("b", both(order, "b"));
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(loop.forward());
    EXPECT_TRUE(loop.sync());
    order += "| ";
    EXPECT_TRUE(loop.backward());
    EXPECT_TRUE(loop.renew());
  }
  EXPECT_EQ(order, "a b | b' a' a b | b' a' ");
  EXPECT_EQ(loop.context().total_step, 2U);
}

TEST(PipelineByHand, RunsStepsThatAreNotRegistered) {
  std::string order;
  Pipeline<Loop> loop;
  Loop other;
  other.loss = 3;
  EXPECT_TRUE(loop.forward("one", both(order, "one")));
  EXPECT_TRUE(loop.forward(
      "two", [&](Loop& context) { return [&] { order += std::to_string(context.loss); }; }, other));
  EXPECT_TRUE(loop.backward());
  EXPECT_EQ(order, "one 3one' ");
  EXPECT_TRUE(loop.backward()) << "nothing waits any more";
  EXPECT_EQ(order, "one 3one' ");
}

TEST(PipelineByHand, SaysWhatFailed) {
  std::string order;
  Pipeline<Loop> loop;
  loop.use("a", both(order, "a")).use("b", [](Loop&) { throw std::runtime_error("boom"); });
  const auto failed = loop.forward();
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().text(), "step 'b': std::runtime_error: boom");
  EXPECT_TRUE(loop.backward());
  EXPECT_EQ(order, "a ") << "what waited is gone";
}

TEST(PipelineByHand, DropsWhatWaitsWhenItIsRenewedOrDestroyed) {
  std::string order;
  {
    Pipeline<Loop> loop;
    loop.use("a", guarded(order, "a"));
    EXPECT_TRUE(loop.forward());
    EXPECT_TRUE(loop.renew());
    EXPECT_EQ(order, "~a0 ");
    EXPECT_TRUE(loop.forward());
    EXPECT_TRUE(loop.forward("extra", guarded(order, "b")));
  }
  EXPECT_EQ(order, "~a0 ~b1 ~a1 ");
}

TEST(Pipeline, IsFinishingFromTheEndOfARunToTheNextOne) {
  Pipeline<Loop> loop;
  std::vector<bool> seen;
  struct Ends {
    Pipeline<Loop>& of;
    std::vector<bool>& all;
    void forward(Loop&) { all.push_back(of.finishing()); }
    void backward(Loop&) { all.push_back(of.finishing()); }
    void ended(Loop&) { all.push_back(of.finishing()); }
  };
  loop.use("ends", Ends{.of = loop, .all = seen});
  EXPECT_FALSE(loop.finishing());
  EXPECT_TRUE(loop.run({.max_steps = 1}));
  EXPECT_TRUE(loop.finishing());
  EXPECT_THAT(seen, ElementsAre(false, false, true));

  std::stop_source stop;
  loop.use([&](Loop&) {
    EXPECT_FALSE(loop.finishing());
    stop.request_stop();
  });
  EXPECT_EQ(loop.run({}, stop.get_token()).outcome, Outcome::Stopped);
  EXPECT_TRUE(loop.finishing()) << "also of a stop";
  loop.use([](Loop&) { throw std::runtime_error("boom"); });
  EXPECT_EQ(loop.run({.max_steps = 1}).outcome, Outcome::Failed);
  EXPECT_TRUE(loop.finishing()) << "and of a failure";
}

TEST(Pipeline, EndsAWaitWithoutADeadlineWhenItFinishes) {
  constexpr Event<> kUnheard{"unheard"};
  Pipeline<Loop> loop;
  NoEvent why = NoEvent::Deadline;
  loop.use("waits", [&](Loop&) {
    loop.finish("enough");
    why = loop.events().wait_for(kUnheard, loop.ending()).error();
  });
  EXPECT_EQ(loop.run().why, "enough");
  EXPECT_EQ(why, NoEvent::Stopped);
}

TEST(Pipeline, HasOneOrderOfBareStepsAndOthers) {
  std::string order;
  Pipeline<Loop> loop;
  const auto nested = loop.nested("nested", both(order, "n"));
  loop.use("a", both(order, "a"))
      .use("locked", both(order, "l"), {.lock = shared_lock})
      .use("calls", [&, nested](Loop& context) { nested(context); })
      .use("group", serial(both(order, "g"), both(order, "h")))
      .use("late", [&, nested](Loop&) { return [&, nested](Loop& context) { nested(context); }; })
      .use("z", both(order, "z"));
  EXPECT_TRUE(loop.run({.max_steps = 2}));
  const std::string once = "a l n g h z z' n n' h' g' n' l' a' ";
  EXPECT_EQ(order, once + once);
  order.clear();
  loop.wrap([&](const StepCall& call, Loop&, const Next& next) {
    if (call.step == "a") order += call.phase == Phase::Forward ? "( " : ") ";
    next();
  });
  EXPECT_TRUE(loop.run({.max_steps = 1}));
  EXPECT_EQ(order, "( a l n g h z z' n n' h' g' n' l' ) a' ") << "wrapped from then on";
}

TEST(Pipeline, NamesTheStepThatFailsBetweenOthersOfAnyKind) {
  std::string order;
  Pipeline<Loop> loop;
  bool fails = true;
  const auto nested = loop.nested("nested", [&](Loop&) {
    if (fails) throw std::runtime_error("boom");
  });
  loop.use("locked", guarded(order, "l"), {.lock = shared_lock})
      .use("bare", guarded(order, "b"))
      .use("calls", [nested](Loop& context) { nested(context); })
      .use("never", [&](Loop&) { order += "never "; });
  const RunResult failed = loop.run();
  ASSERT_EQ(failed.errors.size(), 1U);
  EXPECT_EQ(failed.errors[0].step, "nested");
  EXPECT_EQ(failed.errors[0].message, "std::runtime_error: boom");
  EXPECT_EQ(order, "~b0 ~l0 ");
  fails = false;
  EXPECT_TRUE(loop.run({.max_steps = 1}));
  EXPECT_EQ(order, "~b0 ~l0 never ~b0 ~l0 ");
}

TEST(Pipeline, TakesNoNestedStepWhileItRuns) {
  Pipeline<Loop> loop;
  loop.use("adds", [&](Loop&) { static_cast<void>(loop.nested("late", [](Loop&) {})); });
  EXPECT_EQ(loop.run().errors.at(0).message,
            "std::logic_error: a nested step is added while the pipeline runs");
}

}  // namespace
}  // namespace trainyard::pipeline
