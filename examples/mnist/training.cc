#include "mnist/training.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include <Eigen/Core>
#include <fmt/format.h>

#include "mnist/random.h"

namespace mnist {
namespace {

constexpr std::size_t kBatchSize = 64;
constexpr int kClasses = 10;

/// The pixels of some images as the network wants them. Bytes become floats a batch at a time: all
/// of them at once would take four times the memory.
class Batches {
 public:
  explicit Batches(const Dataset& data) : data_(data) {}

  /// Gathers the images at `picks`; valid until the next call.
  void gather(std::span<const std::size_t> picks) {
    const auto pixels = static_cast<Eigen::Index>(data_.pixels_per_image());
    images_.resize(pixels, static_cast<Eigen::Index>(picks.size()));
    labels_.clear();
    for (const std::size_t pick : picks) {
      const Byte* const first = data_.pixels.data() + pick * data_.pixels_per_image();
      const Eigen::Map<const Eigen::Array<Byte, Eigen::Dynamic, 1>> image(first, pixels);
      images_.col(static_cast<Eigen::Index>(labels_.size())) = image.cast<float>() / 255.0F;
      labels_.push_back(data_.labels[pick]);
    }
  }

  [[nodiscard]] const Batch& images() const { return images_; }
  [[nodiscard]] std::span<const Byte> labels() const { return labels_; }

 private:
  const Dataset& data_;
  Batch images_;
  std::vector<Byte> labels_;
};

std::vector<std::size_t> first_images(std::size_t count) {
  std::vector<std::size_t> order(count);
  for (std::size_t i = 0; i < count; ++i) order[i] = i;
  return order;
}

struct Score {
  double loss = 0;
  double accuracy = 0;
};

/// Gathers `order` in batches, and hands each one to `visit`, which returns its BatchResult.
template <class Visit>
Score for_each_batch(Batches& batches, std::span<const std::size_t> order, const Visit& visit) {
  double loss = 0;
  std::int64_t correct = 0;
  for (std::size_t first = 0; first < order.size(); first += kBatchSize) {
    batches.gather(order.subspan(first, std::min(kBatchSize, order.size() - first)));
    const BatchResult result = visit(batches);
    loss += result.loss;
    correct += result.correct;
  }
  const auto count = static_cast<double>(order.size());
  return {.loss = loss / count, .accuracy = static_cast<double>(correct) / count};
}

Score measure(Network& network, const Dataset& data, std::size_t count) {
  Batches batches(data);
  const std::vector<std::size_t> order = first_images(count);
  return for_each_batch(batches, order, [&](const Batches& batch) {
    return network.evaluate(batch.images(), batch.labels());
  });
}

/// Falls from 1 to almost 0 along half a cosine: large steps first, then ever finer ones.
double rate_factor(std::size_t step, std::size_t steps) {
  const double done = static_cast<double>(step) / static_cast<double>(steps);
  return 0.5 * (1 + std::cos(std::numbers::pi * done));
}

NetworkShape shape_of(const Dataset& data, int hidden) {
  return {
      .inputs = static_cast<int>(data.pixels_per_image()), .hidden = hidden, .outputs = kClasses};
}

}  // namespace

Network make_network(const Dataset& data, int hidden, std::uint64_t seed) {
  Random random(seed);
  return {shape_of(data, hidden), random};
}

double train_epoch(Network& network, const Dataset& data, std::span<const std::size_t> order,
                   double learning_rate) {
  Batches batches(data);
  return for_each_batch(batches, order,
                        [&](const Batches& batch) {
                          return network.train(batch.images(), batch.labels(),
                                               static_cast<float>(learning_rate));
                        })
      .accuracy;
}

BatchResult find_gradients(Network& network, const Dataset& data,
                           std::span<const std::size_t> picks) {
  Batches batches(data);
  batches.gather(picks);
  return network.find_gradients(batches.images(), batches.labels());
}

double accuracy_of(Network& network, const Dataset& data) {
  return measure(network, data, data.size()).accuracy;
}

Outcome run_training(const Options& options, const Dataset& train, const Dataset& test,
                     const std::function<void(const Progress&)>& on_epoch) {
  const auto share = options.fraction * static_cast<double>(train.size());
  const std::size_t count =
      std::clamp<std::size_t>(static_cast<std::size_t>(share), 1, train.size());
  Random random(options.seed);
  Network network(shape_of(train, options.hidden), random);

  Batches batches(train);
  std::vector<std::size_t> order = first_images(count);
  const std::size_t steps_per_epoch = (count + kBatchSize - 1) / kBatchSize;
  const std::size_t steps = steps_per_epoch * static_cast<std::size_t>(options.epochs);
  std::size_t step = 0;
  for (int epoch = 1; epoch <= options.epochs; ++epoch) {
    random.shuffle(order);
    const Score score = for_each_batch(batches, order, [&](const Batches& batch) {
      const double rate = options.learning_rate * rate_factor(step++, steps);
      return network.train(batch.images(), batch.labels(), static_cast<float>(rate));
    });
    on_epoch({.epoch = epoch,
              .loss = score.loss,
              .train_acc = score.accuracy,
              .test_acc = measure(network, test, test.size()).accuracy});
  }

  const Score final_train = measure(network, train, count);
  return {.test_acc = measure(network, test, test.size()).accuracy,
          .train_acc = final_train.accuracy,
          .loss = final_train.loss,
          .epochs = options.epochs};
}

std::string to_json(const Outcome& outcome) {
  // A training that ran away has a loss that is no number, which JSON cannot say.
  const std::string loss =
      std::isfinite(outcome.loss) ? fmt::format("{:.6g}", outcome.loss) : "null";
  return fmt::format(R"({{"test_acc":{:.4f},"train_acc":{:.4f},"loss":{},"epochs":{}}})",
                     outcome.test_acc, outcome.train_acc, loss, outcome.epochs);
}

}  // namespace mnist
