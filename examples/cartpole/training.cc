#include "cartpole/training.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <span>
#include <stop_token>
#include <utility>

#include <nlohmann/json.hpp>
#include <trainyard/buffer.h>
#include <trainyard/context_json.h>
#include <trainyard/event_bus.h>
#include <trainyard/exchange.h>
#include <trainyard/metrics.h>
#include <trainyard/steps.h>

namespace cartpole {
namespace {

using trainyard::role::kCollector;
using trainyard::role::kEvaluator;
using trainyard::role::kLearner;

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

// What steps share beside the context.
constexpr trainyard::Resource kPolicy{"policy"};
constexpr trainyard::Resource kModel{"model"};
constexpr trainyard::Resource kEvaluated{"evaluated"};
constexpr trainyard::Resource kWorldStates{"worlds"};
constexpr trainyard::Resource kReplay{"replay"};

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

constexpr std::size_t kNumbersOfOne = 10;

void pack(const Transition& from, std::vector<float>& numbers) {
  numbers.insert(numbers.end(), from.state.begin(), from.state.end());
  numbers.insert(numbers.end(), from.next.begin(), from.next.end());
  numbers.push_back(static_cast<float>(from.action));
  numbers.push_back(from.failed ? 1 : 0);
}

void unpack(const std::vector<float>& numbers, std::vector<Transition>& to) {
  for (std::size_t at = 0; at + kNumbersOfOne <= numbers.size(); at += kNumbersOfOne) {
    Transition one;
    for (std::size_t i = 0; i < one.state.size(); ++i) {
      one.state.at(i) = numbers[at + i];
      one.next.at(i) = numbers[at + one.state.size() + i];
    }
    one.action = static_cast<int>(numbers[at + 8]);
    one.failed = numbers[at + 9] > 0;
    to.push_back(one);
  }
}

trainyard::Buffer buffer_of(const std::vector<float>& numbers) {
  return trainyard::Buffer::copy_of<float>({static_cast<std::int64_t>(numbers.size())},
                                           std::span<const float>(numbers));
}

Batch states_of(const std::vector<CartPole>& worlds) {
  Batch states(4, static_cast<Eigen::Index>(worlds.size()));
  for (std::size_t i = 0; i < worlds.size(); ++i) put(worlds[i].state(), states, i);
  return states;
}

}  // namespace

Training::Training(Options options, trainyard::Worker worker)
    : options_(std::move(options)),
      worker_(std::move(worker)),
      dice_(options_.seed),
      // Each worker sees other episodes.
      collect_dice_(options_.seed + 1 + (1'000 * static_cast<std::uint64_t>(worker_.index()))),
      learn_dice_(options_.seed + 2),
      model_(4, kHidden, CartPole::kActions, dice_),
      target_(model_),
      policy_(model_),
      evaluated_(model_),
      replay_(kReplayMax),
      worlds_(kWorlds, CartPole(collect_dice_)),
      timer_({.every = options_.metrics_every}),
      loop_(worker_.pipeline({.async = options_.async})) {
  for (CartPole& world : worlds_) world.reset(collect_dice_);
  if (!worker_.is_alone()) add_exchange();
  add_steps();
  timer_.watch(loop_);
  // Who learns says when it is enough; the others end with it.
  const bool learns = worker_.has_role(kLearner);
  worker_.connect(loop_, learns ? trainyard::follow_nobody : trainyard::follow_role(kLearner));
}

void Training::add_steps() {
  loop_
      .use("collect", [this](Train& context) { collect(context); },
           {.reads = {kPolicy},
            .writes = {kWorldStates, &Train::collected, &Train::returns, &Train::env_step,
                       &Train::episodes, &Train::seen},
            .roles = {kCollector}})
      .use("learn", [this](Train& context) { learn(context); },
           {.reads = {kReplay},
            .writes = {kModel, &Train::loss, &Train::train_iter},
            .roles = {kLearner}})
      .use("evaluate", [this](Train& context) { evaluate(context); },
           {.reads = {kEvaluated},
            .writes = {&Train::mean_return, &Train::best_return, &Train::evaluated},
            .roles = {kEvaluator}})
      .use("store", [this](Train& context) { replay_.add(context.collected); },
           {.reads = {&Train::collected}, .writes = {kReplay}, .roles = {kLearner}})
      .use("checkpoint",
           trainyard::CheckpointSaver<Train>({
               .directory = options_.directory,
               .score = [](const Train& it) { return it.mean_return; },
               .bytes =
                   [this](const Train& it) {
                     trainyard::Json saved = trainyard::kept_to_json(it).value();
                     saved["weights"] = evaluated_.weights();
                     return saved.dump() + "\n";
                   },
           }),
           {.roles = {kEvaluator}})
      .use("publish",
           [this](Train& context) {
             tell(context);
             policy_.set_weights(model_.weights());
             if (context.total_step % kIterationsAnEvaluation == kIterationsAnEvaluation - 1) {
               evaluated_.set_weights(model_.weights());
             }
             if (context.mean_return >= options_.enough) loop_.finish("it keeps the pole up");
           },
           {.roles = {kLearner}})
      .use("limit",
           trainyard::finish_after<&Train::env_step>(loop_,
                                                     static_cast<double>(options_.env_steps) - 1),
           {.roles = {kLearner}});
}

void Training::add_exchange() {
  loop_.use("exchange", trainyard::Exchange<Train>(worker_, loop_)
                            .append<&Train::seen>(kCollector)
                            .add<&Train::env_step>(kCollector)
                            .add<&Train::episodes>(kCollector)
                            .set<&Train::train_iter>(kLearner)
                            .set<&Train::mean_return>(kEvaluator)
                            .set<&Train::best_return>(kEvaluator)
                            .waits_for(kLearner, kCollector, std::chrono::seconds(60)));
  loop_.use("unpack", [](Train& context) { unpack(context.seen, context.collected); },
            {.roles = {kLearner}});
  const auto weights = [this](Train&) { return buffer_of(model_.weights()); };
  const auto use = [](QNetwork& network) {
    return [&network](Train&, const trainyard::Buffer& it) { network.set_weights(it.as<float>()); };
  };
  // A collector is an iteration ahead of the learner at most; the evaluator waits for the next
  // model that is to be looked at.
  loop_.use("use policy",
            trainyard::UseModel<Train>(worker_, loop_, "policy", use(policy_), {.max_lag = 1}),
            {.roles = {kCollector}});
  loop_.use("use model", trainyard::UseModel<Train>(worker_, loop_, "model", use(evaluated_)),
            {.roles = {kEvaluator}});
  loop_.use("send policy", trainyard::SendModel<Train>(worker_, loop_, "policy", weights),
            {.roles = {kLearner}});
  loop_.use("send model",
            trainyard::SendModel<Train>(worker_, loop_, "model", weights,
                                        {.period = kIterationsAnEvaluation}),
            {.roles = {kLearner}});
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
      if (!worker_.is_alone()) pack(seen, context.seen);
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
  // As much for each step of a world, however many collect.
  const std::size_t share =
      worker_.is_alone() ? 1 : context.collected.size() / (kWorlds * kStepsAnIteration);
  const int batches = kBatchesAnIteration * static_cast<int>(share);
  for (int i = 0; i < batches; ++i) {
    context.loss += learn_from_one_batch() / static_cast<float>(batches);
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
  // Another worker says when: it sends a model.
  const bool when = worker_.is_alone() && context.total_step % kIterationsAnEvaluation != 0;
  if (context.total_step == 0 || when) return;
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
