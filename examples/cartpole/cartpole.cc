// Learns to balance a pole, as a pipeline (training.h): by itself, or several seeds as tasks of a
// yard, which draws their returns in its report.
//
// usage: cartpole [--async] [--seed NUMBER] [--steps MOST] [--enough RETURN] [--directory DIR]
//        cartpole --yard SEEDS [as above]    several seeds as tasks of a yard
//        cartpole --together [as above]      a learner, two collectors and an evaluator; prints the
//                                            speed of a single process, too, measured before them
//        cartpole --worker [as above]        one of those, as trainyard parallel starts it
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <trainyard/event_bus.h>
#include <trainyard/metrics.h>
#include <trainyard/parallel.h>
#include <trainyard/trainyard.h>
#include <trainyard/worker.h>

#include "cartpole/training.h"

namespace cartpole {
namespace {

using trainyard::Json;
using trainyard::literals::operator""_MB;

Json result_of(Training& training, const trainyard::RunResult& ended) {
  const Train& last = training.context();
  return {{"mean_return", last.mean_return},
          {"env_steps", last.env_step},
          {"episodes", last.episodes},
          {"ended", ended.why}};
}

/// One seed, in a process of its own. Its checkpoints are in its directory.
class Seed : public trainyard::Task {
 public:
  Seed(std::uint64_t seed, Options options)
      : Task({.id = fmt::format("seed-{}", seed),
              .memory = 200_MB,
              .cpus = options.async ? 2 : 1,
              .fingerprint = fmt::format("{} steps for {}", options.env_steps, options.enough)}),
        options_(std::move(options)) {
    options_.seed = seed;
    options_.directory = "checkpoints";
  }

  Json train(const trainyard::Device&) override {
    Training training(options_);
    // Of each second the last word is kept, so each says all that is known.
    std::map<std::string, double> known;
    const auto told = training.events().on(trainyard::kMetrics, [&](const trainyard::Metrics& now) {
      for (const auto& [name, value] : now.values) known[name] = value;
      progress(training.fraction(), known);
    });
    const trainyard::RunResult ended = training.run();
    if (!ended) throw std::runtime_error(ended.why);
    fmt::print("{}", training.table());
    return result_of(training, ended);
  }

 private:
  Options options_;
};

int run_yard(int seeds, const Options& options) {
  trainyard::TaskGroup group("cartpole");
  for (int seed = 0; seed < seeds; ++seed) group.add<Seed>(seed, options);
  trainyard::Yard yard({}, {.directory = options.directory});
  const auto done = yard.run(group);
  if (!done) {
    fmt::print(stderr, "cartpole: {}\n", done.error().message);
    return 1;
  }
  for (const auto& task : group.tasks()) fmt::print("{} {}\n", task.id(), task.result().dump());
  fmt::print("report: {}/reports/cartpole.html\n", options.directory);
  return done->failed == 0 ? 0 : 1;
}

using Clock = std::chrono::steady_clock;

struct Speed {
  std::int64_t steps = 0;  ///< Of the environment.
  std::chrono::duration<double> took{0};

  [[nodiscard]] double per_second() const { return static_cast<double>(steps) / took.count(); }
  [[nodiscard]] std::string text() const {
    return fmt::format("{} steps of the environment in {:.1f} s: {:.0f} a second", steps,
                       took.count(), per_second());
  }
};

int run_here(const Options& options) {
  Training training(options);
  const Clock::time_point began = Clock::now();
  const auto told = training.events().on(trainyard::kMetrics, [&](const trainyard::Metrics& now) {
    const auto mean = now.values.find("return");
    if (mean == now.values.end()) return;
    const auto loss = now.values.find("loss");
    fmt::print("step {:>7}  return {:6.1f}  loss {:.2e}\n", training.context().env_step,
               mean->second, loss == now.values.end() ? 0 : loss->second);
    std::fflush(stdout);
  });
  const trainyard::RunResult ended = training.run();
  const Speed speed{.steps = training.context().env_step, .took = Clock::now() - began};
  fmt::print("{}: {}\n{}", to_text(ended.outcome), ended.why, training.table());
  fmt::print("{}\n", speed.text());
  return ended && training.context().mean_return >= options.enough ? 0 : 1;
}

/// Runs the same training in this process alone, for a part of the steps where these are many.
Speed measure_alone(Options options) {
  constexpr std::int64_t kStepsMax = 100'000;
  options.env_steps = std::min(options.env_steps, kStepsMax);
  options.directory += "/single-process";
  Training training(options);
  const Clock::time_point began = Clock::now();
  const trainyard::RunResult ended = training.run();
  if (!ended) throw std::runtime_error(ended.why);
  return {.steps = training.context().env_step, .took = Clock::now() - began};
}

/// One worker of several, with its roles. The learner prints its speed, and next to it that of a
/// single process if it was measured.
void work(const Options& options, const trainyard::Worker& worker,
          const std::optional<Speed>& alone = {}) {
  Training training(options, worker);
  const Clock::time_point began = Clock::now();
  const trainyard::RunResult ended = training.run(worker.ending());
  if (!ended) throw std::runtime_error(ended.why);
  if (!worker.has_role(trainyard::role::kLearner)) return;
  const Speed speed{.steps = training.context().env_step, .took = Clock::now() - began};
  fmt::print("{}: {}\n{}", to_text(ended.outcome), ended.why, training.table());
  fmt::print("{}\n", speed.text());
  if (alone) {
    fmt::print("single process: {}; the workers take {:.2f} times as many a second\n",
               alone->text(), speed.per_second() / alone->per_second());
  }
  // Both outputs go to the log of the worker, whose last line is the reason of a failure.
  std::fflush(stdout);
  if (training.context().mean_return < options.enough) {
    throw std::runtime_error("it has not learned enough");
  }
}

/// A learner, two collectors and an evaluator, each a process.
int run_together(const Options& options) {
  const Speed alone = measure_alone(options);
  const auto done =
      trainyard::parallel({.workers = 4,
                           .roles = {{trainyard::role::kLearner},
                                     {trainyard::role::kCollector},
                                     {trainyard::role::kCollector},
                                     {trainyard::role::kEvaluator}}},
                          [&](trainyard::Worker& worker) { work(options, worker, alone); });
  if (!done) fmt::print(stderr, "cartpole: {}\n", done.text());
  return done ? 0 : 1;
}

/// One of those that somebody else has started: trainyard parallel --roles ... -- cartpole --worker
int run_as_worker(const Options& options) {
  const auto worker = trainyard::Worker::from_environment();
  if (!worker) throw std::runtime_error(worker.error().message);
  work(options, *worker);
  return 0;
}

int usage() {
  fmt::print(stderr,
             "usage: cartpole [--async] [--seed NUMBER] [--steps MOST] [--enough RETURN] "
             "[--directory DIR]\n       cartpole --yard SEEDS|--together|--worker [as above]\n");
  return 2;
}

int run(const std::vector<std::string_view>& words) {
  Options options;
  int seeds = 0;
  bool together = false;
  bool worker = false;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i] == "--async" || words[i] == "--together" || words[i] == "--worker") {
      options.async = options.async || words[i] == "--async";
      together = together || words[i] == "--together";
      worker = worker || words[i] == "--worker";
      continue;
    }
    if (i + 1 == words.size()) return usage();
    const std::string value(words[i + 1]);
    if (words[i] == "--seed") {
      options.seed = std::strtoull(value.c_str(), nullptr, 10);
    } else if (words[i] == "--steps") {
      options.env_steps = std::strtoll(value.c_str(), nullptr, 10);
    } else if (words[i] == "--enough") {
      options.enough = std::strtod(value.c_str(), nullptr);
    } else if (words[i] == "--directory") {
      options.directory = value;
    } else if (words[i] == "--yard") {
      seeds = static_cast<int>(std::strtol(value.c_str(), nullptr, 10));
    } else {
      return usage();
    }
    ++i;
  }
  if (together) return run_together(options);
  if (worker) return run_as_worker(options);
  return seeds > 0 ? run_yard(seeds, options) : run_here(options);
}

}  // namespace
}  // namespace cartpole

int main(int count, char** arguments) {
  try {
    return cartpole::run({arguments + 1, arguments + count});
  } catch (const std::exception& error) {
    std::fputs("cartpole: ", stderr);
    std::fputs(error.what(), stderr);
    std::fputs("\n", stderr);
    return 1;
  }
}
