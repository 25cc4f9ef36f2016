#include "cartpole/training.h"

#include <cmath>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>

#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <trainyard/event_bus.h>
#include <trainyard/metrics.h>

namespace cartpole {
namespace {

/// Where a test of this process writes; removed with it.
class Directory {
 public:
  Directory()
      : path_(testing::TempDir() + "cartpole-" +
              testing::UnitTest::GetInstance()->current_test_info()->name() + "-" +
              std::to_string(::getpid())) {}
  Directory(const Directory&) = delete;
  Directory& operator=(const Directory&) = delete;
  ~Directory() { std::filesystem::remove_all(path_); }

  [[nodiscard]] std::string path(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

std::string text_of(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(QNetwork, GoesDownhillAlongTheGradientOfItsLoss) {
  mnist::Random random(5);
  QNetwork network(4, 8, 2, random);
  Batch states(4, 16);
  for (float& value : states.reshaped()) value = random.unit() - 0.5F;
  std::vector<int> actions(16);
  std::vector<float> targets(16);
  for (std::size_t i = 0; i < actions.size(); ++i) {
    actions[i] = static_cast<int>(random.below(2));
    targets[i] = random.unit();
  }
  float loss = 1;
  for (int i = 0; i < 500; ++i) loss = network.train(states, actions, targets, 0.01F);
  EXPECT_LT(loss, 0.002F) << "sixteen numbers are soon known by heart";
  const Batch& values = network.values(states);
  for (std::size_t i = 0; i < actions.size(); ++i) {
    EXPECT_NEAR(values(actions[i], static_cast<Eigen::Index>(i)), targets[i], 0.2);
  }
}

TEST(QNetwork, TakesTheWeightsOfAnother) {
  mnist::Random random(5);
  QNetwork one(4, 8, 2, random);
  QNetwork other(4, 8, 2, random);
  EXPECT_NE(one.weights(), other.weights());
  const float before = other.weights().front();
  other.approach(one, 0.25F);
  EXPECT_FLOAT_EQ(other.weights().front(), before + ((one.weights().front() - before) / 4));
  other.set_weights(one.weights());
  EXPECT_EQ(one.weights(), other.weights());
  EXPECT_EQ(one.weights().size(), (4U * 8) + 8 + (8 * 8) + 8 + (8 * 2) + 2);
}

TEST(CartPoleTraining, KeepsThePoleUp) {
  const Directory directory;
  // A quick one; every seed that was tried gets there before it is stopped.
  Training training({.seed = 7, .directory = directory.path("here")});
  std::map<std::string, int> told;
  const auto heard = training.events().on(trainyard::kMetrics, [&](const trainyard::Metrics& now) {
    for (const auto& [name, value] : now.values) ++told[name];
  });
  const trainyard::RunResult ended = training.run();
  EXPECT_EQ(ended.outcome, trainyard::Outcome::Finished);
  EXPECT_EQ(ended.why, "it keeps the pole up");
  EXPECT_GE(training.context().mean_return, 475);
  EXPECT_GT(told["return"], 1);
  EXPECT_GT(told["loss"], 1);
  EXPECT_GT(told["learn ms"], 1);
  const auto saved = trainyard::Json::parse(text_of(directory.path("here/best.json")));
  EXPECT_EQ(saved["kept"]["mean_return"], training.context().mean_return);
  EXPECT_EQ(saved["weights"].size(), training.weights().size());
  EXPECT_THAT(training.table(), testing::HasSubstr("evaluate"));
}

TEST(CartPoleTraining, ComesToTheSameBitsSideBySide) {
  const Directory directory;
  const auto train = [&](bool async) {
    Training training({.seed = 1,
                       .async = async,
                       .env_steps = 20'000,
                       .directory = directory.path(async ? "async" : "sync")});
    EXPECT_EQ(training.run().why, "env_step is 20032, more than 19999");
    return training.weights();
  };
  EXPECT_EQ(train(false), train(true));
  EXPECT_EQ(text_of(directory.path("sync/final.json")),
            text_of(directory.path("async/final.json")));
}

}  // namespace
}  // namespace cartpole
