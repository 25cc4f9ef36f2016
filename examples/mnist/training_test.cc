// Tiny trainings on the images that are shipped.
#include "mnist/training.h"

#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace mnist {
namespace {

Dataset first_images(const char* part, std::size_t count) {
  auto data = load_dataset(MNIST_DATA, part);
  EXPECT_TRUE(data) << data.error();
  if (!data) return {};
  data->labels.resize(count);
  data->pixels.resize(count * data->pixels_per_image());
  return *std::move(data);
}

constexpr auto kQuiet = [](const Progress&) {};

TEST(MnistData, HoldsTenThousandAndTwoThousandImages) {
  const auto train = load_dataset(MNIST_DATA, "train");
  const auto test = load_dataset(MNIST_DATA, "t10k");
  ASSERT_TRUE(train) << train.error();
  ASSERT_TRUE(test) << test.error();
  EXPECT_EQ(train->size(), 10'000);
  EXPECT_EQ(test->size(), 2'000);
  EXPECT_EQ(train->pixels_per_image(), 784);
  EXPECT_EQ(test->pixels_per_image(), 784);
}

TEST(Training, LearnsFromFiveHundredImages) {
  const Dataset train = first_images("train", 500);
  const Dataset test = first_images("t10k", 500);
  std::vector<Progress> epochs;
  const Outcome outcome = run_training({.learning_rate = 1e-2, .hidden = 32, .epochs = 5}, train,
                                       test, [&](const Progress& p) { epochs.push_back(p); });
  ASSERT_EQ(epochs.size(), 5);
  EXPECT_EQ(epochs.front().epoch, 1);
  EXPECT_EQ(epochs.back().epoch, 5);
  EXPECT_LT(epochs.back().loss, epochs.front().loss / 2);
  EXPECT_EQ(epochs.back().test_acc, outcome.test_acc);
  EXPECT_EQ(outcome.epochs, 5);
  EXPECT_GT(outcome.train_acc, 0.95);
  EXPECT_GT(outcome.test_acc, 0.80);
  EXPECT_LT(outcome.loss, 0.3);
}

TEST(Training, GivesTheSameOutcomeForTheSameSeedAndAnotherForAnother) {
  const Dataset train = first_images("train", 200);
  const Dataset test = first_images("t10k", 200);
  const Options options{.hidden = 16, .seed = 7, .epochs = 2};
  const Outcome once = run_training(options, train, test, kQuiet);
  EXPECT_EQ(run_training(options, train, test, kQuiet), once);
  EXPECT_NE(run_training({.hidden = 16, .seed = 8, .epochs = 2}, train, test, kQuiet), once);
}

TEST(Training, TakesOnlyTheFractionThatWasAskedFor) {
  const Dataset test = first_images("t10k", 100);
  const Options all{.hidden = 8, .epochs = 1};
  Options tenth = all;
  tenth.fraction = 0.1;
  EXPECT_EQ(run_training(tenth, first_images("train", 1000), test, kQuiet),
            run_training(all, first_images("train", 100), test, kQuiet));
}

TEST(Outcome, IsOneLineOfJson) {
  EXPECT_EQ(to_json({.test_acc = 0.9512, .train_acc = 1, .loss = 0.25, .epochs = 3}),
            R"({"test_acc":0.9512,"train_acc":1.0000,"loss":0.25,"epochs":3})");
  EXPECT_EQ(to_json({.loss = std::numeric_limits<double>::quiet_NaN(), .epochs = 1}),
            R"({"test_acc":0.0000,"train_acc":0.0000,"loss":null,"epochs":1})");
}

}  // namespace
}  // namespace mnist
