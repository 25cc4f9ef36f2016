#include "cartpole/cart_pole.h"

#include <cmath>
#include <cstddef>

#include <gtest/gtest.h>

namespace cartpole {
namespace {

/// One step of the equations as they are in the paper, in double precision.
CartPole::State by_the_paper(const CartPole::State& from, int action) {
  const double g = 9.8;
  const double pole = 0.1;
  const double mass = 1.1;
  const double half = 0.5;
  const double force = action == 1 ? 10 : -10;
  const double sine = std::sin(double{from[2]});
  const double cosine = std::cos(double{from[2]});
  const double pull = (force + pole * half * from[3] * from[3] * sine) / mass;
  const double turning =
      (g * sine - cosine * pull) / (half * (4.0 / 3 - pole * cosine * cosine / mass));
  const double speeding = pull - pole * half * turning * cosine / mass;
  return {
      static_cast<float>(from[0] + 0.02 * from[1]), static_cast<float>(from[1] + 0.02 * speeding),
      static_cast<float>(from[2] + 0.02 * from[3]), static_cast<float>(from[3] + 0.02 * turning)};
}

TEST(CartPole, FollowsTheEquationsOfThePaper) {
  mnist::Random random(1);
  CartPole world(random);
  int steps = 0;
  while (!world.done()) {
    const int action = static_cast<int>(random.below(2));
    const CartPole::State wanted = by_the_paper(world.state(), action);
    world.step(action);
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      EXPECT_NEAR(world.state().at(i), wanted.at(i), 1e-5) << "step " << steps << ", number " << i;
    }
    ++steps;
  }
  EXPECT_EQ(world.steps(), steps);
}

TEST(CartPole, BeginsNearlyUpright) {
  mnist::Random random(7);
  for (int i = 0; i < 100; ++i) {
    const CartPole world(random);
    for (const float value : world.state()) EXPECT_LE(std::abs(value), 0.05F);
  }
}

TEST(CartPole, FallsWhenItIsAlwaysPushedOneWay) {
  mnist::Random random(0);
  CartPole world(random);
  while (!world.done()) world.step(1);
  EXPECT_TRUE(world.failed());
  EXPECT_LT(world.steps(), 15);
  EXPECT_LT(world.state()[2], 0) << "pushed right, it falls left";
}

TEST(CartPole, IsOverAfterSoManyStepsWithoutHavingFailed) {
  mnist::Random random(3);
  CartPole world(random);
  // A hand-made rule that keeps it up: push to where the pole is about to fall.
  while (!world.done()) {
    const auto& [place, speed, angle, turn] = world.state();
    world.step((3 * angle) + turn + (0.05F * place) + (0.1F * speed) > 0 ? 1 : 0);
  }
  EXPECT_FALSE(world.failed());
  EXPECT_EQ(world.steps(), CartPole::kStepsMax);
}

}  // namespace
}  // namespace cartpole
