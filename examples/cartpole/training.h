// Learns to keep the pole up with a deep Q-network (Mnih et al., 2015; van Hasselt et al., 2016),
// as a pipeline: collect, learn and evaluate side by side, then store, publish, checkpoint.
//
// What runs beside what is said by what each step reads and writes; so the result is the same
// whether the pipeline is async or not.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <trainyard/pipeline.h>
#include <trainyard/step_timer.h>
#include <trainyard/worker.h>

#include "cartpole/cart_pole.h"
#include "cartpole/q_network.h"
#include "cartpole/replay.h"
#include "mnist/random.h"

namespace cartpole {

/// What the steps of an iteration share.
struct Train : trainyard::Context {
  std::int64_t env_step = 0;
  std::int64_t train_iter = 0;
  std::int64_t episodes = 0;
  /// The mean return of 100 episodes, when last evaluated; and the best of them.
  double mean_return = 0;
  double best_return = -std::numeric_limits<double>::infinity();

  std::vector<Transition> collected;
  std::vector<int> returns;  ///< Of the episodes that ended while collecting.
  float loss = 0;
  bool evaluated = false;
  /// What was collected, as numbers: for the way to the learner.
  std::vector<float> seen;

  static constexpr auto kept =
      trainyard::keep<&Train::env_step, &Train::train_iter, &Train::episodes, &Train::mean_return,
                      &Train::best_return>;
};

struct Options {
  std::uint64_t seed = 0;
  bool async = false;
  double enough = 475;                     ///< The mean return that ends the training.
  std::int64_t env_steps = 500'000;        ///< At most.
  std::string directory = "cartpole-run";  ///< No name that the program itself has.
  std::uint64_t metrics_every = 20;
};

/// By itself, or as one of several workers: a learner, collectors, an evaluator. The steps are the
/// same, and so is what they come to; each worker has those of its roles.
class Training {
 public:
  explicit Training(Options options, trainyard::Worker worker = trainyard::Worker::alone());

  /// To the end; the table of its timer is there then.
  trainyard::RunResult run(const std::stop_token& stop = {});

  /// Emits trainyard::kMetrics when no other step runs: "return", "loss", and the means of the
  /// steps' times.
  trainyard::EventBus& events() { return loop_.events(); }
  [[nodiscard]] const Train& context() { return loop_.context(); }
  [[nodiscard]] std::string table() const { return timer_.table(); }
  /// How much of the most steps are done, from 0 to 1.
  [[nodiscard]] double fraction() {
    return double(context().env_step) / double(options_.env_steps);
  }
  [[nodiscard]] std::vector<float> weights() const { return model_.weights(); }

 private:
  void add_steps();
  /// Between workers: what was collected, what was learned, and what that is worth.
  void add_exchange();
  void collect(Train& context);
  void learn(Train& context);
  void evaluate(Train& context);
  float learn_from_one_batch();
  void tell(const Train& context);

  const Options options_;
  const trainyard::Worker worker_;
  mnist::Random dice_;          // Of the model's first weights.
  mnist::Random collect_dice_;  // Each step has its own: their order does not matter.
  mnist::Random learn_dice_;
  QNetwork model_;
  QNetwork target_;     // The model of some time ago.
  QNetwork policy_;     // The model of the last iteration: who collects uses it beside who learns.
  QNetwork evaluated_;  // The same for who evaluates: a network is of one thread at a time.
  Replay replay_;
  std::vector<CartPole> worlds_;
  trainyard::StepTimer timer_;
  trainyard::Pipeline<Train> loop_;
};

}  // namespace cartpole
