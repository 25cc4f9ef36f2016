#include "cartpole/cart_pole.h"

#include <cmath>
#include <numbers>

namespace cartpole {
namespace {

constexpr float kGravity = 9.8F;
constexpr float kCartMass = 1.0F;
constexpr float kPoleMass = 0.1F;
constexpr float kMass = kCartMass + kPoleMass;
constexpr float kHalfLength = 0.5F;
constexpr float kForce = 10.0F;
constexpr float kSeconds = 0.02F;
constexpr float kPlaceMax = 2.4F;
constexpr float kAngleMax = 12 * std::numbers::pi_v<float> / 180;

}  // namespace

void CartPole::reset(mnist::Random& random) {
  for (float& value : state_) value = (random.unit() - 0.5F) / 10;
  steps_ = 0;
}

void CartPole::step(int action) {
  auto& [place, speed, angle, turn] = state_;
  const float force = action == 1 ? kForce : -kForce;
  const float sine = std::sin(angle);
  const float cosine = std::cos(angle);
  const float pull = (force + (kPoleMass * kHalfLength * turn * turn * sine)) / kMass;
  const float turning = ((kGravity * sine) - (cosine * pull)) /
                        (kHalfLength * ((4.0F / 3) - (kPoleMass * cosine * cosine / kMass)));
  const float speeding = pull - (kPoleMass * kHalfLength * turning * cosine / kMass);
  place += kSeconds * speed;
  speed += kSeconds * speeding;
  angle += kSeconds * turn;
  turn += kSeconds * turning;
  ++steps_;
}

bool CartPole::failed() const {
  return std::abs(state_[0]) > kPlaceMax || std::abs(state_[2]) > kAngleMax;
}

}  // namespace cartpole
