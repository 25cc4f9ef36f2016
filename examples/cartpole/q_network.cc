#include "cartpole/q_network.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

namespace cartpole {

QNetwork::QNetwork(int inputs, int hidden, int actions, mnist::Random& random) {
  const std::array<int, kLayers + 1> sizes{inputs, hidden, hidden, actions};
  for (std::size_t i = 0; i < kLayers; ++i) {
    layers_.push_back({.weights = {sizes.at(i + 1), sizes.at(i)},
                       .bias = {sizes.at(i + 1), 1},
                       .output = {},
                       .error = {}});
    // As torch.nn.Linear begins.
    const float limit = 1 / std::sqrt(static_cast<float>(sizes.at(i)));
    layers_.back().weights.draw(limit, random);
    layers_.back().bias.draw(limit, random);
  }
}

void QNetwork::forward(const Batch& states) {
  const Eigen::MatrixXf* input = &states;
  for (std::size_t i = 0; i < kLayers; ++i) {
    Layer& layer = layers_.at(i);
    layer.output.noalias() = layer.weights.value * *input;
    layer.output.colwise() += layer.bias.value.col(0);
    if (i + 1 < kLayers) layer.output = layer.output.cwiseMax(0);
    input = &layer.output;
  }
}

const Batch& QNetwork::values(const Batch& states) {
  forward(states);
  return layers_.back().output;
}

void QNetwork::best_actions(const Batch& values, std::vector<int>& actions) {
  actions.resize(static_cast<std::size_t>(values.cols()));
  for (Eigen::Index i = 0; i < values.cols(); ++i) {
    Eigen::Index best = 0;
    values.col(i).maxCoeff(&best);
    actions[static_cast<std::size_t>(i)] = static_cast<int>(best);
  }
}

float QNetwork::train(const Batch& states, std::span<const int> actions,
                      std::span<const float> targets, float learning_rate) {
  forward(states);
  Layer& last = layers_.back();
  last.error.setZero(last.output.rows(), last.output.cols());
  const auto count = static_cast<float>(actions.size());
  float loss = 0;
  for (std::size_t i = 0; i < actions.size(); ++i) {
    const auto column = static_cast<Eigen::Index>(i);
    const float error = last.output(actions[i], column) - targets[i];
    const float size = std::abs(error);
    loss += size < 1 ? error * error / 2 : size - 0.5F;
    last.error(actions[i], column) = std::clamp(error, -1.0F, 1.0F) / count;
  }
  backward(states);
  ++steps_;
  for (Layer& layer : layers_) {
    layer.weights.step(steps_, learning_rate);
    layer.bias.step(steps_, learning_rate);
  }
  return loss / count;
}

void QNetwork::backward(const Batch& states) {
  for (std::size_t i = kLayers; i-- > 0;) {
    Layer& layer = layers_.at(i);
    if (i + 1 < kLayers) layer.error = layer.error.cwiseProduct(layer.output.cwiseSign());
    const Batch& input = i > 0 ? layers_.at(i - 1).output : states;
    layer.weights.gradient.noalias() = layer.error * input.transpose();
    layer.bias.gradient = layer.error.rowwise().sum();
    if (i > 0) layers_.at(i - 1).error.noalias() = layer.weights.value.transpose() * layer.error;
  }
}

void QNetwork::approach(const QNetwork& other, float share) {
  for (std::size_t i = 0; i < kLayers; ++i) {
    Layer& layer = layers_.at(i);
    const Layer& goal = other.layers_.at(i);
    layer.weights.value += share * (goal.weights.value - layer.weights.value);
    layer.bias.value += share * (goal.bias.value - layer.bias.value);
  }
}

std::vector<float> QNetwork::weights() const {
  std::vector<float> all;
  for (const Layer& layer : layers_) {
    for (const mnist::Parameter* parameter : {&layer.weights, &layer.bias}) {
      const auto values = parameter->value.reshaped();
      all.insert(all.end(), values.begin(), values.end());
    }
  }
  return all;
}

void QNetwork::set_weights(std::span<const float> weights) {
  for (Layer& layer : layers_) {
    for (mnist::Parameter* parameter : {&layer.weights, &layer.bias}) {
      const auto count = static_cast<std::size_t>(parameter->value.size());
      std::ranges::copy(weights.first(count), parameter->value.reshaped().begin());
      weights = weights.subspan(count);
    }
  }
}

}  // namespace cartpole
