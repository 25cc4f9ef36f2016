// A matrix of weights that is learned, with what Adam remembers about it (Kingma and Ba, 2015). A
// value. Shared by the networks of the examples.
#pragma once

#include <cstdint>

#include <Eigen/Core>

#include "mnist/random.h"

namespace mnist {

struct Parameter {
  Eigen::MatrixXf value;
  Eigen::MatrixXf gradient;  ///< Of the loss, by the value: set before each step.
  Eigen::MatrixXf mean;
  Eigen::MatrixXf square;

  /// All zero.
  Parameter(Eigen::Index rows, Eigen::Index columns);
  /// Uniform from -limit to limit.
  void draw(float limit, Random& random);
  /// The step with that number, from 1 on.
  void step(std::int64_t number, float learning_rate);
};

}  // namespace mnist
