// What was seen lately, to learn from more than once: a ring of transitions. One thread.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "cartpole/cart_pole.h"
#include "mnist/random.h"

namespace cartpole {

struct Transition {
  CartPole::State state{};
  CartPole::State next{};
  int action = 0;
  bool failed = false;  ///< Nothing more is to be had after it.
};

class Replay {
 public:
  explicit Replay(std::size_t most) : most_(most) {}

  void add(std::span<const Transition> transitions) {
    for (const Transition& each : transitions) {
      if (all_.size() < most_) {
        all_.push_back(each);
      } else {
        all_[oldest_] = each;
        oldest_ = (oldest_ + 1) % most_;
      }
    }
  }

  /// Any of them, each as likely. There is one at least.
  [[nodiscard]] const Transition& any(mnist::Random& random) const {
    return all_[random.below(all_.size())];
  }
  [[nodiscard]] std::size_t size() const { return all_.size(); }

 private:
  std::size_t most_;
  std::size_t oldest_ = 0;
  std::vector<Transition> all_;
};

}  // namespace cartpole
