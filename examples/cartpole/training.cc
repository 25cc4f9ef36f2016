#include "cartpole/training.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>
#include <trainyard/context_json.h>
#include <trainyard/event_bus.h>
#include <trainyard/metrics.h>
#include <trainyard/pipeline.h>
#include <trainyard/step_timer.h>
#include <trainyard/steps.h>

#include "cartpole/cart_pole.h"
#include "cartpole/q_network.h"
#include "cartpole/replay.h"
#include "mnist/random.h"

namespace cartpole {
namespace {

constexpr int kHidden = 64;
constexpr std::size_t kWorlds = 16;
constexpr int kStepsAnIteration = 4;
constexpr std::size_t kReplayMax = 50'000;
constexpr std::size_t kReplayLeast = 1'000;
constexpr std::size_t kBatch = 128;
constexpr int kBatchesAnIteration = 4;
constexpr float kTargetShare = 0.005F;
constexpr float kDiscount = 0.99F;
constexpr float kReward = 1 - kDiscount;  // So that a pole that never falls is worth 1.
constexpr float kLearningRate = 5e-4F;
constexpr double kExploreSteps = 20'000;  // Until fewest actions are random.
constexpr double kExploreLeast = 0.05;
constexpr std::uint64_t kIterationsAnEvaluation = 50;
constexpr std::size_t kEpisodes = 100;

/// Of evaluation: the same episodes for every model.
constexpr std::uint64_t kEvaluationSeed = 1'000'003;

double share_of_random_actions(std::int64_t env_step) {
  const double done = std::min(1.0, static_cast<double>(env_step) / kExploreSteps);
  return 1 + ((kExploreLeast - 1) * done);
}

/// As the network sees a state: each of its numbers about as large as the others.
void put(const CartPole::State& state, Batch& states, std::size_t column) {
  constexpr CartPole::State kUsual{2.4F, 2, 0.2F, 2};
  for (std::size_t i = 0; i < state.size(); ++i) {
    states(static_cast<Eigen::Index>(i), static_cast<Eigen::Index>(column)) =
        state.at(i) / kUsual.at(i);
  }
}

Batch states_of(const std::vector<CartPole>& worlds) {
  Batch states(4, static_cast<Eigen::Index>(worlds.size()));
  for (std::size_t i = 0; i < worlds.size(); ++i) put(worlds[i].state(), states, i);
  return states;
}

}  // namespace

Training::Training(Options options)
    : options_(std::move(options)),
      dice_(options_.seed),
      collect_dice_(options_.seed + 1),
      learn_dice_(options_.seed + 2),
      model_(4, kHidden, CartPole::kActions, dice_),
      target_(model_),
      policy_(model_),
      evaluated_(model_),
      replay_(kReplayMax),
      worlds_(kWorlds, CartPole(collect_dice_)),
      timer_({.every = options_.metrics_every}),
      loop_({.async = options_.async}) {
  for (CartPole& world : worlds_) world.reset(collect_dice_);
  loop_
      .use("collect", [this](Train& context) { collect(context); },
           {.reads = {"policy"},
            .writes = {"worlds", &Train::collected, &Train::returns, &Train::env_step,
                       &Train::episodes}})
      .use("learn", [this](Train& context) { learn(context); },
           {.reads = {"replay"}, .writes = {"model", &Train::loss, &Train::train_iter}})
      .use("evaluate", [this](Train& context) { evaluate(context); },
           {.reads = {"evaluated"},
            .writes = {&Train::mean_return, &Train::best_return, &Train::evaluated}})
      .use("store", [this](Train& context) { replay_.add(context.collected); },
           {.reads = {&Train::collected}, .writes = {"replay"}})
      .use("checkpoint", trainyard::CheckpointSaver<Train>({
                             .directory = options_.directory,
                             .score = [](const Train& it) { return it.mean_return; },
                             .bytes =
                                 [this](const Train& it) {
                                   trainyard::Json saved = trainyard::kept_to_json(it).value();
                                   saved["weights"] = evaluated_.weights();
                                   return saved.dump() + "\n";
                                 },
                         }))
      .use("publish",
           [this](Train& context) {
             tell(context);
             policy_.set_weights(model_.weights());
             if (context.total_step % kIterationsAnEvaluation == kIterationsAnEvaluation - 1) {
               evaluated_.set_weights(model_.weights());
             }
             if (context.mean_return >= options_.enough) loop_.finish("it keeps the pole up");
           })
      .use("limit", trainyard::finish_after<&Train::env_step>(
                        loop_, static_cast<double>(options_.env_steps) - 1));
  timer_.watch(loop_);
}

trainyard::RunResult Training::run(const std::stop_token& stop) { return loop_.run({}, stop); }

void Training::collect(Train& context) {
  std::vector<int> actions;
  for (int i = 0; i < kStepsAnIteration; ++i) {
    QNetwork::best_actions(policy_.values(states_of(worlds_)), actions);
    for (std::size_t w = 0; w < worlds_.size(); ++w) {
      CartPole& world = worlds_[w];
      if (collect_dice_.unit() < share_of_random_actions(context.env_step)) {
        actions[w] = static_cast<int>(collect_dice_.below(CartPole::kActions));
      }
      Transition seen{.state = world.state(), .action = actions[w]};
      world.step(actions[w]);
      seen.next = world.state();
      seen.failed = world.failed();
      context.collected.push_back(seen);
      ++context.env_step;
      if (!world.done()) continue;
      context.returns.push_back(world.steps());
      ++context.episodes;
      world.reset(collect_dice_);
    }
  }
}

void Training::learn(Train& context) {
  if (replay_.size() < kReplayLeast) return;
  for (int i = 0; i < kBatchesAnIteration; ++i) {
    context.loss += learn_from_one_batch() / kBatchesAnIteration;
  }
  ++context.train_iter;
}

float Training::learn_from_one_batch() {
  Batch states(4, kBatch);
  Batch next(4, kBatch);
  std::vector<int> actions(kBatch);
  std::vector<float> targets(kBatch);
  std::vector<bool> failed(kBatch);
  for (std::size_t i = 0; i < kBatch; ++i) {
    const Transition& seen = replay_.any(learn_dice_);
    put(seen.state, states, i);
    put(seen.next, next, i);
    actions[i] = seen.action;
    failed[i] = seen.failed;
  }
  // The model says what is best, the target what that is worth.
  std::vector<int> best;
  QNetwork::best_actions(model_.values(next), best);
  const Batch& worth = target_.values(next);
  for (std::size_t i = 0; i < kBatch; ++i) {
    const float later = worth(best[i], static_cast<Eigen::Index>(i));
    targets[i] = kReward + (failed[i] ? 0 : kDiscount * later);
  }
  const float loss = model_.train(states, actions, targets, kLearningRate);
  target_.approach(model_, kTargetShare);
  return loss;
}

void Training::evaluate(Train& context) {
  if (context.total_step == 0 || context.total_step % kIterationsAnEvaluation != 0) return;
  mnist::Random dice(kEvaluationSeed);
  std::vector<CartPole> going(kEpisodes, CartPole(dice));
  for (CartPole& world : going) world.reset(dice);
  std::int64_t steps = 0;
  std::vector<int> actions;
  while (!going.empty()) {
    QNetwork::best_actions(evaluated_.values(states_of(going)), actions);
    for (std::size_t i = 0; i < going.size(); ++i) going[i].step(actions[i]);
    steps += static_cast<std::int64_t>(going.size());
    std::erase_if(going, [](const CartPole& world) { return world.done(); });
  }
  context.mean_return = static_cast<double>(steps) / kEpisodes;
  context.best_return = std::max(context.best_return, context.mean_return);
  context.evaluated = true;
}

void Training::tell(const Train& context) {
  if (context.total_step % options_.metrics_every != 0 && !context.evaluated) return;
  trainyard::Metrics now{.total_step = context.total_step, .values = {}};
  if (context.evaluated) now.values["return"] = context.mean_return;
  if (context.train_iter > 0) now.values["loss"] = context.loss;
  loop_.events().emit(trainyard::kMetrics, now);
}

}  // namespace cartpole
