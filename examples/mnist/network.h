// A network with one hidden layer: pixels -> ReLU -> softmax, trained with Adam on mini-batches.
//
// Not a library: just enough to be worth a sweep. One thread; the same seed gives the same network.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <Eigen/Core>

#include "mnist/parameter.h"
#include "mnist/random.h"

namespace mnist {

/// One column an image, pixels from 0 to 1.
using Batch = Eigen::MatrixXf;

struct NetworkShape {
  int inputs = 0;
  int hidden = 0;
  int outputs = 0;
};

/// What one batch showed, before the step that it led to.
struct BatchResult {
  double loss = 0;  ///< Summed over the batch's images.
  int correct = 0;
};

class Network {
 public:
  /// Weights are drawn from `random` with He's variance; biases are zero.
  Network(NetworkShape shape, Random& random);

  /// One step of Adam on the mean cross-entropy of the batch. `labels` has one entry a column.
  BatchResult train(const Batch& images, std::span<const std::uint8_t> labels, float learning_rate);

  /// The two halves of train(): what the batch asks for, the mean over its images, and a step of
  /// Adam along it. Between them it may become the mean over several such batches.
  BatchResult find_gradients(const Batch& images, std::span<const std::uint8_t> labels);
  void step(float learning_rate);

  /// Parameter after parameter, as many as weights().
  void gradients(std::span<float> into) const;
  void set_gradients(std::span<const float> gradients);
  [[nodiscard]] std::size_t size() const;

  /// All that was learned, parameter after parameter; and to go on from that, with Adam as new.
  [[nodiscard]] std::vector<float> weights() const;
  void set_weights(std::span<const float> weights);

  /// The same figures, and nothing learned.
  BatchResult evaluate(const Batch& images, std::span<const std::uint8_t> labels);

 private:
  /// Fills hidden_ and errors_, the latter with probability minus truth.
  BatchResult forward(const Batch& images, std::span<const std::uint8_t> labels);

  Parameter weights_in_;
  Parameter bias_in_;
  Parameter weights_out_;
  Parameter bias_out_;
  std::int64_t steps_ = 0;

  // Room for one batch, kept so that a step allocates nothing.
  Eigen::MatrixXf hidden_;
  Eigen::MatrixXf errors_;
  Eigen::MatrixXf hidden_errors_;
};

}  // namespace mnist
