// Federated averaging with an executor for each client: each has two ranks, which train on a half
// of its images each and whose weights are averaged, and stays for all rounds. The rounds are a
// pipeline.
//
// usage: federated_executors [--data DIR] [--clients COUNT] [--rounds COUNT]
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "federated/split.h"
#include "mnist/idx.h"
#include "mnist/network.h"
#include "mnist/random.h"
#include "mnist/training.h"
#include "trainyard/pipeline.h"
#include "trainyard/rank_executor.h"
#include "trainyard/rank_program.h"

namespace federated {
namespace {

using trainyard::Arguments;
using trainyard::Buffer;
using trainyard::ComponentRegistry;
using trainyard::Context;
using trainyard::Executor;
using trainyard::Json;
using trainyard::keep;
using trainyard::Pipeline;
using trainyard::RankContext;
using trainyard::RankExecutor;
using trainyard::RankExecutorOptions;
using trainyard::RankResult;
using trainyard::ReturnCode;
using trainyard::RunResult;
using trainyard::Shareable;

constexpr int kRanks = 2;  ///< Of each client.
constexpr int kHidden = 128;
constexpr double kLearningRate = 2e-3;

/// One rank of one client.
class Client final : public Executor {
 public:
  explicit Client(const Arguments& given)
      : data_(mnist::need_dataset(given.get<std::string>("data"), "train")),
        images_(split_uniformly(data_, given.get<int>("clients"), 0)
                    .at(static_cast<std::size_t>(given.get<int>("client")))),
        network_(mnist::make_network(data_, kHidden, 0)) {}

  Shareable execute(std::string_view, const Shareable& input, RankContext& context,
                    std::stop_token) override {
    network_.set_weights(input.buffer("weights")->as<float>());
    const auto rank = static_cast<std::size_t>(context.rank().value_or(0));
    mnist::Random random(input.get("round").get<std::uint64_t>());
    random.shuffle(images_);
    const std::size_t half = images_.size() / static_cast<std::size_t>(context.ranks());
    const double accuracy = mnist::train_epoch(
        network_, data_, std::span(images_).subspan(rank * half, half), kLearningRate);
    Shareable reply;
    reply.set("train_acc", accuracy);
    const std::vector<float> weights = network_.weights();
    reply.set_buffer("weights",
                     Buffer::copy_of<float>({static_cast<std::int64_t>(weights.size())}, weights));
    return reply;
  }

 private:
  mnist::Dataset data_;
  std::vector<std::size_t> images_;
  mnist::Network network_;
};

struct Options {
  std::string data = "examples/mnist/data";
  int clients = 4;
  int rounds = 3;
};

/// What one round is about.
struct Round : Context {
  std::vector<float> weights;      ///< Of the global network.
  std::vector<Shareable> replies;  ///< Of the clients, in this round.
  double test_acc = 0;
  static constexpr auto kept = keep<&Round::weights>;
};

class Federation {
 public:
  Federation(const Options& options, const ComponentRegistry& registry)
      : test_(mnist::need_dataset(options.data, "t10k")),
        network_(mnist::make_network(test_, kHidden, 0)) {
    for (int client = 0; client < options.clients; ++client) {
      const Json components = {
          {{"id", "client"},
           {"type", "client"},
           {"args", {{"data", options.data}, {"client", client}, {"clients", options.clients}}}}};
      clients_.push_back(
          std::make_unique<RankExecutor>(RankExecutorOptions{.ranks = kRanks,
                                                             .executor = "client",
                                                             .components = components.dump(),
                                                             .result = RankResult::Mean},
                                         registry));
    }
  }

  /// One client after the other: each has the machine for itself.
  void train(Round& round) {
    if (round.weights.empty()) round.weights = network_.weights();
    Shareable task;
    task.set("round", round.total_step);
    task.set_buffer("weights",
                    Buffer::view_of<float>({static_cast<std::int64_t>(round.weights.size())},
                                           std::span<const float>(round.weights)));
    for (const auto& client : clients_) {
      RankContext context;
      Shareable reply = client->execute("train", task, context);
      if (reply.code() != ReturnCode::Ok) throw std::runtime_error(reply.message());
      round.replies.push_back(std::move(reply));
    }
  }

  static void average(Round& round) {
    std::ranges::fill(round.weights, 0.0F);
    for (const Shareable& reply : round.replies) {
      const std::span<const float> theirs = reply.buffer("weights")->as<float>();
      for (std::size_t i = 0; i < theirs.size(); ++i) {
        round.weights[i] += theirs[i] / static_cast<float>(round.replies.size());
      }
    }
  }

  void score(Round& round) {
    network_.set_weights(round.weights);
    round.test_acc = mnist::accuracy_of(network_, test_);
    std::cout << fmt::format("round {}: test {:.2f} %", round.total_step + 1, 100 * round.test_acc)
              << '\n'
              << std::flush;
  }

 private:
  mnist::Dataset test_;
  mnist::Network network_;
  std::vector<std::unique_ptr<RankExecutor>> clients_;
};

std::optional<Options> read(std::span<char* const> words) {
  Options options;
  for (std::size_t i = 1; i + 1 < words.size(); i += 2) {
    const std::string_view name = words[i];
    if (name == "--data") {
      options.data = words[i + 1];
    } else if (name == "--clients" || name == "--rounds") {
      (name == "--clients" ? options.clients : options.rounds) = std::atoi(words[i + 1]);
    } else {
      return std::nullopt;
    }
  }
  if (words.size() % 2 == 0 || options.clients < 1 || options.rounds < 1) return std::nullopt;
  return options;
}

int run(const Options& options, const ComponentRegistry& registry) {
  Federation federation(options, registry);
  Pipeline<Round> rounds;
  rounds.use("train", [&](Round& round) { federation.train(round); })
      .use("average", [](Round& round) { Federation::average(round); })
      .use("score", [&](Round& round) { federation.score(round); });
  const RunResult result = rounds.run({.max_steps = static_cast<std::uint64_t>(options.rounds)});
  if (result.errors.empty()) return EXIT_SUCCESS;
  std::cerr << "federated_executors: " << result.why << '\n';
  return EXIT_FAILURE;
}

}  // namespace
}  // namespace federated

int main(int argc, char** argv) {
  trainyard::ComponentRegistry registry;
  registry.add<federated::Client>(
      "client", {trainyard::argument<std::string>("data"), trainyard::argument<int>("client"),
                 trainyard::argument<int>("clients")});
  if (const auto code = trainyard::run_as_rank(registry)) return *code;
  const auto options = federated::read({argv, static_cast<std::size_t>(argc)});
  if (!options) {
    std::cerr << "usage: federated_executors [--data DIR] [--clients COUNT] [--rounds COUNT]\n";
    return 2;
  }
  try {
    return federated::run(*options, registry);
  } catch (const std::exception& error) {
    std::cerr << "federated_executors: " << error.what() << '\n';
    return EXIT_FAILURE;
  }
}
