// A pole on a cart, to be kept upright by pushing the cart left or right (Barto, Sutton and
// Anderson, 1983; the task that Gym calls CartPole-v1). A value; no randomness but at the start.
#pragma once

#include <array>

#include "mnist/random.h"

namespace cartpole {

class CartPole {
 public:
  /// Place and speed of the cart, angle and angular speed of the pole.
  using State = std::array<float, 4>;
  static constexpr int kActions = 2;  ///< Push left, push right.
  static constexpr int kStepsMax = 500;

  explicit CartPole(mnist::Random& random) { reset(random); }

  /// Begins an episode, nearly upright.
  void reset(mnist::Random& random);

  /// A fiftieth of a second of physics, with a push of 10 N. Each is worth a reward of 1.
  void step(int action);

  [[nodiscard]] const State& state() const { return state_; }
  /// The pole has fallen, or the cart has left the track.
  [[nodiscard]] bool failed() const;
  /// The episode is over: it has failed, or it has been kept up for kStepsMax steps.
  [[nodiscard]] bool done() const { return failed() || steps_ == kStepsMax; }
  /// How many steps the episode has had: its return.
  [[nodiscard]] int steps() const { return steps_; }

 private:
  State state_{};
  int steps_ = 0;
};

}  // namespace cartpole
