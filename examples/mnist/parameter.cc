#include "mnist/parameter.h"

#include <cmath>

namespace mnist {
namespace {

constexpr float kMeanDecay = 0.9F;
constexpr float kSquareDecay = 0.999F;
constexpr float kEpsilon = 1e-8F;

}  // namespace

Parameter::Parameter(Eigen::Index rows, Eigen::Index columns)
    : value(Eigen::MatrixXf::Zero(rows, columns)), gradient(value), mean(value), square(value) {}

void Parameter::draw(float limit, Random& random) {
  for (float& weight : value.reshaped()) weight = limit * (2 * random.unit() - 1);
}

void Parameter::step(std::int64_t number, float learning_rate) {
  // Adam's correction for means that began at zero, moved into the rate and the epsilon.
  const auto steps = static_cast<float>(number);
  const float square_bias = std::sqrt(1 - std::pow(kSquareDecay, steps));
  const float rate = learning_rate * square_bias / (1 - std::pow(kMeanDecay, steps));
  mean += (1 - kMeanDecay) * (gradient - mean);
  square.array() += (1 - kSquareDecay) * (gradient.array().square() - square.array());
  value.array() -= rate * mean.array() / (square.array().sqrt() + (kEpsilon * square_bias));
}

}  // namespace mnist
