#include "trainyard/steps.h"

#include <fstream>
#include <stop_token>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "sys/files.h"
#include "sys/test_directory.h"

namespace trainyard::pipeline {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;
using testing::UnorderedElementsAre;

struct Train : Context {
  std::int64_t env_step = 0;
  std::int64_t train_iter = 0;
  double score = 0;
  static constexpr auto kept = keep<&Train::env_step, &Train::train_iter>;
};

class Directory {
 public:
  [[nodiscard]] std::string path(const std::string& name = "made/here") const {
    return directory_ / name;
  }
  [[nodiscard]] std::vector<std::string> names() const { return sys::names_in(path()); }
  [[nodiscard]] std::string text(const std::string& name) const {
    return sys::content_of(path() + "/" + name);
  }

 private:
  sys::TemporaryDirectory directory_;
};

TEST(FinishAfter, FinishesWhenItIsMoreThanTheLimitAndSaysWhy) {
  Pipeline<Train> loop;
  loop.use([](Train& context) {
        context.env_step += 40;
        ++context.train_iter;
      })
      .use(finish_after<&Train::env_step>(loop, 120))
      .use(finish_after<&Train::train_iter>(loop, 3));
  const RunResult result = loop.run();
  EXPECT_EQ(result.outcome, Outcome::Finished);
  EXPECT_EQ(result.why, "env_step is 160, more than 120");
  EXPECT_EQ(result.steps, 4U);
}

TEST(EpochTimer, TellsTheMeanOfAnIteration) {
  std::chrono::nanoseconds time{};
  std::vector<std::pair<std::uint64_t, double>> told;
  Pipeline<Train> loop;
  loop.use("time", EpochTimer<Train>(
                       2,
                       [&](const Train& context, std::chrono::duration<double> mean) {
                         told.emplace_back(context.total_step, mean.count());
                       },
                       [&] { return time; }))
      .use([&](Train& context) -> Step {
        time += 1s;
        co_yield after;
        time += context.total_step * 1s;
      });
  EXPECT_TRUE(loop.run({.max_steps = 5}));
  EXPECT_THAT(told, ElementsAre(Pair(1, 1.5), Pair(3, 3.5)));
}

TEST(CheckpointSaver, SavesEverySoOftenTheBestAndTheFinalOne) {
  const Directory directory;
  const std::vector<double> scores{std::numeric_limits<double>::quiet_NaN(), 1, 3, 3, 2, 4, 1};
  Pipeline<Train> loop;
  loop.use("save", CheckpointSaver<Train>(
                       {.directory = directory.path(),
                        .every = 3,
                        .score = [](const Train& it) { return it.score; },
                        .bytes = [](const Train& it) { return std::to_string(it.total_step); },
                        .suffix = ".txt"}))
      .use([&](Train& context) { context.score = scores.at(context.total_step); });
  EXPECT_TRUE(loop.run({.max_steps = 5}));
  EXPECT_THAT(directory.names(),
              UnorderedElementsAre("iteration_0.txt", "iteration_3.txt", "best.txt", "final.txt"));
  EXPECT_EQ(directory.text("best.txt"), "2");
  EXPECT_EQ(directory.text("final.txt"), "4") << "max_steps ended the run";
  EXPECT_TRUE(loop.run({.max_steps = 2}));
  EXPECT_EQ(directory.text("best.txt"), "5");
  EXPECT_EQ(directory.text("final.txt"), "6");
  EXPECT_EQ(directory.text("iteration_6.txt"), "6");
}

TEST(CheckpointSaver, KnowsTheBestOfTheRunBefore) {
  const Directory directory;
  Pipeline<Train> loop;
  loop.use("save", CheckpointSaver<Train>({.directory = directory.path(),
                                           .score = [](const Train& it) { return it.score; },
                                           .best = 2,
                                           .final = false}))
      .use([](Train& context) { context.score = static_cast<double>(context.total_step); });
  EXPECT_TRUE(loop.run({.max_steps = 3}));
  EXPECT_THAT(directory.names(), IsEmpty());
  EXPECT_TRUE(loop.run({.max_steps = 1}));
  EXPECT_THAT(directory.names(), ElementsAre("best.json"));
}

TEST(CheckpointSaver, SavesTheFinalOneHoweverARunEndsButForAFailure) {
  for (const std::string how : {"forward", "backward", "stop", "failure"}) {
    const Directory directory;
    std::stop_source stop;
    Pipeline<Train> loop;
    loop.use("save", CheckpointSaver<Train>({.directory = directory.path()}))
        .use([&](Train& context) -> Step {
          ++context.train_iter;
          if (how == "forward") loop.finish();
          if (how == "failure") throw std::runtime_error("boom");
          co_yield after;
          if (how == "backward") loop.finish();
          if (how == "stop") stop.request_stop();
        });
    EXPECT_EQ(static_cast<bool>(loop.run({}, stop.get_token())), how != "failure");
    if (how == "failure") {
      EXPECT_THAT(directory.names(), IsEmpty());
    } else {
      EXPECT_EQ(Json::parse(directory.text("final.json")),
                Json::parse(R"({"total_step": 0, "kept": {"env_step": 0, "train_iter": 1}})"))
          << how;
    }
  }
}

TEST(CheckpointSaver, FailsThePipelineWhenItCannotWrite) {
  const Directory directory;
  std::ofstream{directory.path("made")} << "a file, where a directory should be";
  Pipeline<Train> loop;
  loop.use("save", CheckpointSaver<Train>({.directory = directory.path(), .every = 1}));
  const RunResult result = loop.run({.max_steps = 2});
  EXPECT_EQ(result.outcome, Outcome::Failed);
  EXPECT_THAT(result.why, testing::StartsWith("step 'save': std::runtime_error: "));
  EXPECT_THAT(result.why, testing::HasSubstr("made"));
}

TEST(FinalContext, WritesWhatIsKeptWhenTheRunEnds) {
  const Directory directory;
  Pipeline<Train> loop;
  loop.use([](Train& context) { context.env_step += 10; })
      .use(FinalContext<Train>(directory.path(), "result.json"));
  EXPECT_TRUE(loop.run({.max_steps = 3}));
  EXPECT_THAT(directory.names(), ElementsAre("result.json"));
  Pipeline<Train> next;
  ASSERT_TRUE(resume(next, Json::parse(directory.text("result.json"))));
  EXPECT_EQ(next.context().env_step, 30);
  EXPECT_EQ(next.context().total_step, 2U);
}

}  // namespace
}  // namespace trainyard::pipeline
