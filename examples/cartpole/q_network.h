// What each action is worth in a state: a network with two hidden layers, trained with Adam on the
// squared error, clipped (Huber), of the actions that were taken.
//
// A value; the same seed gives the same network. One thread at a time.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <Eigen/Core>

#include "mnist/parameter.h"
#include "mnist/random.h"

namespace cartpole {

/// One column a state.
using Batch = Eigen::MatrixXf;

class QNetwork {
 public:
  QNetwork(int inputs, int hidden, int actions, mnist::Random& random);

  /// A row an action, a column a state. Valid until the next call.
  const Batch& values(const Batch& states);

  /// The best action of each column of values.
  static void best_actions(const Batch& values, std::vector<int>& actions);

  /// One step towards `targets`, of the actions that were taken. Returns the mean loss before it.
  float train(const Batch& states, std::span<const int> actions, std::span<const float> targets,
              float learning_rate);

  /// All that was learned, layer after layer.
  [[nodiscard]] std::vector<float> weights() const;
  void set_weights(std::span<const float> weights);
  /// Goes `share` of the way to what the other has learned.
  void approach(const QNetwork& other, float share);

 private:
  struct Layer {
    mnist::Parameter weights;
    mnist::Parameter bias;
    Eigen::MatrixXf output;  ///< After the ReLU, but for the last layer.
    Eigen::MatrixXf error;   ///< Of the loss by the output.
  };
  static constexpr std::size_t kLayers = 3;

  void forward(const Batch& states);
  void backward(const Batch& states);

  std::vector<Layer> layers_;
  std::int64_t steps_ = 0;
};

}  // namespace cartpole
