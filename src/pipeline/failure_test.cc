// A failed step: waiting backward halves are dropped, the error names the step, and the pipeline
// can be run again.
#include <chrono>
#include <exception>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "pipeline/test_loop.h"
#include "trainyard/event.h"
#include "trainyard/event_bus.h"
#include "trainyard/pipeline.h"

namespace trainyard::pipeline {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::EndsWith;
using testing::Field;
using testing::SizeIs;
using testing::StartsWith;

auto throwing(const char* text) {
  return [text](Loop&) { throw std::runtime_error(text); };
}

TEST(PipelineFailure, NamesTheStepAndKeepsTheError) {
  Pipeline<Loop> loop;
  loop.use("learn", throwing("loss is not a number"));
  const RunResult result = loop.run();
  EXPECT_EQ(result.outcome, Outcome::Failed);
  EXPECT_FALSE(result);
  EXPECT_EQ(result.steps, 0U);
  EXPECT_EQ(result.why, "step 'learn': std::runtime_error: loss is not a number");
  ASSERT_THAT(result.errors, SizeIs(1));
  EXPECT_EQ(result.errors[0].step, "learn");
  EXPECT_THROW(std::rethrow_exception(result.errors[0].error), std::runtime_error);
}

TEST(PipelineFailure, DropsWhatWaitsInReverseAndRunsNothingMore) {
  std::string order;
  Pipeline<Loop> loop;
  loop.use("a", guarded(order, "a"))
      .use("b", [&](Loop&) { return [&] { order += "b' "; }; })
      .use("c", guarded(order, "c"))
      .use("fails", throwing("boom"))
      .use("d", both(order, "d"));
  EXPECT_FALSE(loop.run());
  EXPECT_EQ(order, "~c0 ~a0 ");
}

TEST(PipelineFailure, DropsWhatIsStillToGoBackWhenAWayBackFails) {
  std::string order;
  Pipeline<Loop> loop;
  loop.use("a", guarded(order, "a"))
      .use("fails", [](Loop&) { return [] { throw std::runtime_error("boom"); }; })
      .use("b", both(order, "b"));
  const RunResult result = loop.run();
  EXPECT_EQ(result.why, "step 'fails': std::runtime_error: boom");
  EXPECT_EQ(order, "b b' ~a0 ");
}

TEST(PipelineFailure, LeavesThePipelineUsable) {
  std::string order;
  bool fails = true;
  Pipeline<Loop> loop;
  loop.use("a", both(order, "a")).use("b", [&](Loop& context) -> Step {
    ++context.count;
    if (fails) throw std::runtime_error("boom");
    co_yield after;
    order += "b' ";
  });
  EXPECT_TRUE(loop.run({.max_steps = 0}));
  EXPECT_FALSE(loop.run());
  EXPECT_EQ(loop.context().total_step, 0U);
  fails = false;
  const RunResult result = loop.run({.max_steps = 2});
  EXPECT_EQ(result.steps, 2U);
  EXPECT_EQ(order, "a a b' a' a b' a' ") << "nothing of the first iteration comes back";
  EXPECT_EQ(loop.context().total_step, 1U);
  EXPECT_EQ(loop.context().count, 3) << "the failed iteration is tried again as it was left";
}

TEST(PipelineFailure, IsWhatASecondYieldIs) {
  std::string order;
  Pipeline<Loop> loop;
  loop.use("a", guarded(order, "a")).use("twice", [&](Loop&) -> Step {
    co_yield after;
    order += "back ";
    co_yield after;
    order += "never ";
  });
  EXPECT_EQ(loop.run().why,
            "step 'twice': std::logic_error: yields a second time: a step has one forward and one "
            "backward half");
  EXPECT_EQ(order, "back ~a0 ");
}

bool there_is_room = true;  // NOLINT(cppcoreguidelines-avoid-non-const-global-variables)
struct HasNoRoom : Context {
  HasNoRoom() {
    if (!there_is_room) throw std::runtime_error("no room");
  }
  static constexpr auto kept = keep<>;
};

TEST(PipelineFailure, IsAContextThatCannotBeRenewed) {
  Pipeline<HasNoRoom> loop;
  loop.use([](HasNoRoom&) { there_is_room = false; });
  const RunResult result = loop.run({.max_steps = 2});
  there_is_room = true;
  EXPECT_EQ(result.why, "renew: std::runtime_error: no room");
  EXPECT_EQ(result.steps, 1U);
  EXPECT_EQ(loop.run({.max_steps = 1}).steps, 1U);
  EXPECT_EQ(loop.context().total_step, 1U) << "it was renewed first";
  there_is_room = true;
}

constexpr Event<int> kTold{"told"};

TEST(PipelineFailure, OfAListenerAtTheEndOfAFinishedRunIsTold) {
  struct Emits {
    Pipeline<Loop>* loop;
    void forward(Loop&) {}
    void backward(Loop&) { loop->finish("enough"); }
    void ended(Loop&) {
      loop->finish("again");
      loop->events().emit(kTold, 1);
    }
  };
  Pipeline<Loop> loop;
  const Subscription heard =
      loop.events().on(kTold, [] { throw std::runtime_error("cannot write"); });
  loop.use("emits", Emits{&loop});
  const RunResult result = loop.run();
  EXPECT_EQ(result.steps, 1U);
  EXPECT_EQ(result.why, "event 'told': std::runtime_error: cannot write");
}

TEST(PipelineFailure, OfAListenerWakesAStepThatWaits) {
  constexpr Event<int> kNeverEmitted{"never"};
  Pipeline<Loop> loop;
  const Subscription heard =
      loop.events().on(kTold, [] { throw std::runtime_error("cannot write"); });
  std::optional<NoEvent> why;
  std::jthread emitter;
  loop.use("waits", [&](Loop&) {
    emitter = std::jthread([&] { loop.events().emit(kTold, 1); });
    why = loop.events().wait_for(kNeverEmitted, std::chrono::seconds(30), loop.ending()).error();
  });
  EXPECT_EQ(loop.run().why, "event 'told': std::runtime_error: cannot write");
  EXPECT_EQ(why, NoEvent::Stopped);
}

TEST(PipelineFailure, OfAListenerByHandStopsNoLaterStep) {
  Pipeline<Loop> loop;
  const Subscription heard =
      loop.events().on(kTold, [] { throw std::runtime_error("cannot write"); });
  bool stopped = true;
  loop.use([&](Loop&) { stopped = loop.ending().stop_requested(); });
  loop.events().emit(kTold, 1);
  EXPECT_FALSE(loop.forward());
  EXPECT_TRUE(loop.forward());
  EXPECT_FALSE(stopped);
}

TEST(PipelineFailure, OfAListenerMayBeToldToSomebodyElse) {
  std::string told;
  Pipeline<Loop> loop(
      {.on_listener_error = [&](std::string_view event, const auto&) { told += event; }});
  const Subscription heard =
      loop.events().on("x", [](const Json&) { throw std::runtime_error("cannot write"); });
  loop.use([&](Loop&) { loop.events().emit("x", nullptr); });
  EXPECT_TRUE(loop.run({.max_steps = 2}));
  EXPECT_EQ(told, "xx");
}

TEST(PipelineFailure, OfAWayBackByHandDropsWhatItCalled) {
  std::string order;
  Pipeline<Loop> loop;
  const auto inner = loop.nested("inner", guarded(order, "inner"));
  EXPECT_TRUE(loop.forward("outer", [&](Loop& context) {
    inner(context);
    return [] { throw std::runtime_error("boom"); };
  }));
  EXPECT_EQ(loop.backward().error().text(), "step 'outer': std::runtime_error: boom");
  EXPECT_EQ(order, "~inner0 ");
}

TEST(PipelineFailure, OfAnEndIsTold) {
  struct Saver {
    void forward(Loop&) {}
    void backward(Loop&) {}
    void ended(Loop&) { throw std::runtime_error("disk full"); }
  };
  Pipeline<Loop> loop;
  loop.use("saver", Saver{});
  const RunResult result = loop.run({.max_steps = 2});
  EXPECT_EQ(result.outcome, Outcome::Failed);
  EXPECT_EQ(result.steps, 2U);
  EXPECT_EQ(result.why, "step 'saver (ended)': std::runtime_error: disk full");
}

TEST(PipelineFailure, TellsWhatIsNoExceptionToo) {
  Pipeline<Loop> loop;
  loop.use("throws-a-number", [](Loop&) { throw 42; });
  EXPECT_THAT(loop.run().errors,
              ElementsAre(Field(&StepError::message,
                                "something that is no std::exception was thrown: int")));
}

TEST(PipelineFailure, TellsWhatAnErrorWasThrownBecauseOf) {
  Pipeline<Loop> loop;
  loop.use("learn", [](Loop&) {
    try {
      throw std::out_of_range("row 7");
    } catch (...) {
      std::throw_with_nested(std::runtime_error("no batch"));
    }
  });
  EXPECT_THAT(loop.run().why, AllOf(StartsWith("step 'learn': "),
                                    EndsWith(": no batch\nbecause of std::out_of_range: row 7")));
}

TEST(PipelineFailure, ComesAtTheNextStepAfterAListenerThrew) {
  std::string order;
  Pipeline<Loop> loop;
  const Subscription heard = loop.events().on(kTold, [](int value) {
    if (value == 2) throw std::runtime_error("cannot write");
  });
  loop.use("a", guarded(order, "a"))
      .use("emits",
           [&](Loop&) {
             loop.events().emit(kTold, 1);
             loop.events().emit(kTold, 2);
             order += "goes-on ";
           })
      .use("b", both(order, "b"));
  const RunResult result = loop.run();
  EXPECT_EQ(result.why, "event 'told': std::runtime_error: cannot write");
  EXPECT_EQ(order, "goes-on ~a0 ");
  EXPECT_EQ(loop.run().steps, 0U) << "it fails again, and has forgotten the first";
}

TEST(PipelineFailure, ComesAlsoWhenNoStepFollowsTheListener) {
  Pipeline<Loop> loop;
  const Subscription heard =
      loop.events().on(kTold, [] { throw std::runtime_error("cannot write"); });
  loop.use("emits", [&](Loop&) -> Step {
    co_yield after;
    loop.events().emit(kTold, 1);
  });
  EXPECT_EQ(loop.run({.max_steps = 1}).why, "event 'told': std::runtime_error: cannot write");
}

TEST(PipelineFailure, ComesWithTheNextRunWhenNoneWasGoingOn) {
  Pipeline<Loop> loop;
  const Subscription heard =
      loop.events().on(kTold, [] { throw std::runtime_error("cannot write"); });
  int calls = 0;
  loop.use("counts", [&](Loop&) { ++calls; });
  loop.events().emit(kTold, 1);
  EXPECT_EQ(loop.run().why, "event 'told': std::runtime_error: cannot write");
  EXPECT_EQ(calls, 0);
  EXPECT_TRUE(loop.run({.max_steps = 1}));
}

}  // namespace
}  // namespace trainyard::pipeline
