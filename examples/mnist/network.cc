#include "mnist/network.h"

#include <algorithm>
#include <cmath>

namespace mnist {
namespace {

/// Uniform on [-limit, limit] has variance 2 / inputs, which keeps the signal's size through ReLU.
float limit_of(int inputs) { return std::sqrt(6.0F / static_cast<float>(inputs)); }

}  // namespace

Network::Network(NetworkShape shape, Random& random)
    : weights_in_(shape.hidden, shape.inputs),
      bias_in_(shape.hidden, 1),
      weights_out_(shape.outputs, shape.hidden),
      bias_out_(shape.outputs, 1) {
  weights_in_.draw(limit_of(shape.inputs), random);
  weights_out_.draw(limit_of(shape.hidden), random);
}

BatchResult Network::forward(const Batch& images, std::span<const std::uint8_t> labels) {
  hidden_.noalias() = weights_in_.value * images;
  hidden_ = (hidden_.colwise() + bias_in_.value.col(0)).cwiseMax(0.0F);
  errors_.noalias() = weights_out_.value * hidden_;
  errors_.colwise() += bias_out_.value.col(0);

  BatchResult result;
  for (Eigen::Index i = 0; i < errors_.cols(); ++i) {
    auto column = errors_.col(i);
    const Eigen::Index label = labels[static_cast<std::size_t>(i)];
    Eigen::Index guess = 0;
    // The largest value is taken off first, so that no exponential overflows.
    column.array() -= column.maxCoeff(&guess);
    const float truth = column(label);
    column = column.array().exp();
    const float sum = column.sum();
    result.loss += std::log(sum) - truth;
    result.correct += guess == label ? 1 : 0;
    column /= sum;
    column(label) -= 1;
  }
  return result;
}

BatchResult Network::train(const Batch& images, std::span<const std::uint8_t> labels,
                           float learning_rate) {
  const BatchResult result = find_gradients(images, labels);
  step(learning_rate);
  return result;
}

BatchResult Network::find_gradients(const Batch& images, std::span<const std::uint8_t> labels) {
  const BatchResult result = forward(images, labels);
  errors_ /= static_cast<float>(images.cols());

  hidden_errors_.noalias() = weights_out_.value.transpose() * errors_;
  hidden_errors_.array() *= (hidden_.array() > 0).cast<float>();
  weights_out_.gradient.noalias() = errors_ * hidden_.transpose();
  bias_out_.gradient = errors_.rowwise().sum();
  weights_in_.gradient.noalias() = hidden_errors_ * images.transpose();
  bias_in_.gradient = hidden_errors_.rowwise().sum();
  return result;
}

void Network::step(float learning_rate) {
  ++steps_;
  for (Parameter* parameter : {&weights_in_, &bias_in_, &weights_out_, &bias_out_}) {
    parameter->step(steps_, learning_rate);
  }
}

void Network::gradients(std::span<float> into) const {
  for (const Parameter* parameter : {&weights_in_, &bias_in_, &weights_out_, &bias_out_}) {
    const Eigen::MatrixXf& gradient = parameter->gradient;
    const auto size = static_cast<std::size_t>(gradient.size());
    std::copy_n(gradient.data(), size, into.begin());
    into = into.subspan(size);
  }
}

void Network::set_gradients(std::span<const float> gradients) {
  for (Parameter* parameter : {&weights_in_, &bias_in_, &weights_out_, &bias_out_}) {
    const auto size = static_cast<std::size_t>(parameter->gradient.size());
    std::ranges::copy(gradients.first(size), parameter->gradient.data());
    gradients = gradients.subspan(size);
  }
}

std::size_t Network::size() const {
  std::size_t all = 0;
  for (const Parameter* parameter : {&weights_in_, &bias_in_, &weights_out_, &bias_out_}) {
    all += static_cast<std::size_t>(parameter->value.size());
  }
  return all;
}

std::vector<float> Network::weights() const {
  std::vector<float> all;
  for (const Parameter* parameter : {&weights_in_, &bias_in_, &weights_out_, &bias_out_}) {
    const Eigen::MatrixXf& value = parameter->value;
    all.insert(all.end(), value.data(), value.data() + value.size());
  }
  return all;
}

void Network::set_weights(std::span<const float> weights) {
  steps_ = 0;
  for (Parameter* parameter : {&weights_in_, &bias_in_, &weights_out_, &bias_out_}) {
    const auto size = static_cast<std::size_t>(parameter->value.size());
    std::ranges::copy(weights.first(size), parameter->value.data());
    weights = weights.subspan(size);
    parameter->mean.setZero();
    parameter->square.setZero();
  }
}

BatchResult Network::evaluate(const Batch& images, std::span<const std::uint8_t> labels) {
  return forward(images, labels);
}

}  // namespace mnist
