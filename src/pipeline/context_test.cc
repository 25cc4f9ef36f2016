#include "trainyard/context.h"

#include <limits>
#include <memory>
#include <stdexcept>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "trainyard/rl_context.h"

namespace trainyard::pipeline {
namespace {

using testing::ElementsAre;

struct Counters {
  std::int64_t env_step = 0;
};

struct Online : Context, Counters {
  std::vector<int> trajectories;
  std::unique_ptr<int> model;
  double best = -1;
  static constexpr auto kept = keep<&Online::env_step, &Online::model>;
};

struct Extended : Online {
  int score = 0;
  std::string log;
  static constexpr auto kept = Online::kept + keep<&Extended::score, &Extended::best>;
};

struct Forgets : Context {
  int value = 3;
  static constexpr auto kept = keep<>;
};

struct Unnamed : Context {};
struct NeedsAnArgument : Context {
  explicit NeedsAnArgument(int) {}
  static constexpr auto kept = keep<>;
};
struct NoContext {
  static constexpr auto kept = keep<>;
};

static_assert(kIsKept<std::remove_cvref_t<decltype(NeedsAnArgument::kept)>>);
static_assert(kIsKept<std::remove_cvref_t<decltype(NoContext::kept)>>);
static_assert(ContextType<Online> && ContextType<Extended> && ContextType<Forgets>);
static_assert(!ContextType<Unnamed>, "what is kept must be said");
static_assert(!ContextType<NeedsAnArgument>, "it is made anew between iterations");
static_assert(!ContextType<NoContext>);
static_assert(!std::copy_constructible<Online>, "a step by value would work on a copy");

struct Loses : Online {
  static constexpr auto kept = keep<&Loses::best>;
};
struct LosesTheFirst : Extended {
  static constexpr auto kept = keep<&LosesTheFirst::score, &LosesTheFirst::best>;
};
struct AddsNothing : Extended {
  int more = 0;
};
struct NamesThemAnew : Online {
  static constexpr auto kept =
      keep<&NamesThemAnew::best, &NamesThemAnew::model, &NamesThemAnew::env_step>;
};
static_assert(detail::LosesKept<Loses> && detail::LosesKept<LosesTheFirst>);
static_assert(!detail::LosesKept<Online> && !detail::LosesKept<Extended>);
static_assert(!detail::LosesKept<AddsNothing> && !detail::LosesKept<NamesThemAnew>);
static_assert(!detail::LosesKept<Forgets>);

TEST(Context, KeepsWhatIsNamedAndMakesTheRestAnew) {
  Online context;
  context.env_step = 5;
  context.model = std::make_unique<int>(7);
  context.trajectories = {1, 2};
  context.best = 3;
  context.last = true;
  const int* const model = context.model.get();

  renew(context);

  EXPECT_EQ(context.env_step, 5);
  EXPECT_EQ(context.model.get(), model) << "it is moved, not copied";
  EXPECT_TRUE(context.trajectories.empty());
  EXPECT_EQ(context.best, -1);
  EXPECT_EQ(context.total_step, 1U);
  EXPECT_FALSE(context.last);
}

TEST(Context, KeepsForOneRenewalWhatIsKeptOnce) {
  Extended context;
  context.log = "a";
  context.score = 4;
  keep_once<&Extended::log>(context);
  keep_once<&Extended::log>(context);
  keep_once<&Extended::score>(context);  // Kept in any case.
  renew(context);
  EXPECT_EQ(context.log, "a");
  EXPECT_EQ(context.score, 4);
  renew(context);
  EXPECT_EQ(context.log, "");
  EXPECT_EQ(context.score, 4);
  EXPECT_EQ(context.total_step, 2U);
}

TEST(Context, CanBuildOnWhatAnotherKeeps) {
  Extended context;
  context.env_step = 2;
  context.score = 3;
  context.best = 0.5;
  renew(context);
  EXPECT_EQ(context.env_step, 2);
  EXPECT_EQ(context.score, 3);
  EXPECT_EQ(context.best, 0.5);
}

TEST(Context, KnowsTheNamesOfWhatItKeeps) {
  EXPECT_THAT(Extended::kept.kNames, ElementsAre("env_step", "model", "score", "best"));
  EXPECT_TRUE(Forgets::kept.kNames.empty());
}

TEST(RlContext, KeepsItsCountersAndNotWhatWasEvaluatedNow) {
  OnlineContext online;
  online.env_step = 1;
  online.env_episode = 2;
  online.train_iter = 3;
  online.last_eval_iter = 4;
  online.last_eval_value = 5;
  online.eval_value = 6;
  renew(online);
  EXPECT_EQ(online.env_step, 1);
  EXPECT_EQ(online.env_episode, 2);
  EXPECT_EQ(online.train_iter, 3);
  EXPECT_EQ(online.last_eval_iter, 4);
  EXPECT_EQ(online.last_eval_value, 5);
  EXPECT_EQ(online.eval_value, -std::numeric_limits<double>::infinity());

  OfflineContext offline;
  offline.trained_env_step = 1;
  offline.train_epoch = 3;
  offline.train_iter = 2;
  offline.last_eval_iter = 4;
  offline.last_eval_value = 5;
  offline.eval_value = 6;
  renew(offline);
  EXPECT_EQ(offline.trained_env_step, 1);
  EXPECT_EQ(offline.train_epoch, 3);
  EXPECT_EQ(offline.train_iter, 2);
  EXPECT_EQ(offline.last_eval_iter, 4);
  EXPECT_EQ(offline.last_eval_value, 5);
  EXPECT_EQ(offline.eval_value, -std::numeric_limits<double>::infinity());
}

bool throws = false;  // NOLINT(cppcoreguidelines-avoid-non-const-global-variables)
struct CannotBeMade : Context {
  CannotBeMade() {
    if (throws) throw std::runtime_error("no room");
  }
  int count = 0;
  static constexpr auto kept = keep<&CannotBeMade::count>;
};

TEST(Context, StaysAsItIsWhenTheNextOneCannotBeMade) {
  CannotBeMade context;
  context.count = 2;
  throws = true;
  EXPECT_THROW(renew(context), std::runtime_error);
  throws = false;
  EXPECT_EQ(context.count, 2);
  EXPECT_EQ(context.total_step, 0U);
}

}  // namespace
}  // namespace trainyard::pipeline
