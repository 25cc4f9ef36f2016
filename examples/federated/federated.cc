// Federated averaging on MNIST, with the library: the images are dealt to ten clients; in each
// round ten tasks train the global network on what their client has, and one task averages what
// they learned (McMahan et al., 2017). fedflow's own example, grown up.
//
// The images are loaded once, before the yard runs: all tasks share them. Weights go from task to
// task in files, which lie in the tasks' directories.
//
// usage: federated [--data DIR] [--split uniform|label] [--rounds COUNT] [--directory DIR]
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <ios>
#include <span>
#include <stdexcept>
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
#include "trainyard/trainyard.h"

namespace federated {
namespace {

using trainyard::Device;
using trainyard::Json;
using trainyard::literals::operator""_MB;

constexpr int kClients = 10;
constexpr int kHidden = 128;
constexpr double kLearningRate = 2e-3;
constexpr double kAlpha = 0.5;  // Of the split by label.
constexpr const char* kWeights = "weights.bin";

using Weights = std::vector<float>;

void write_weights(const std::string& path, const Weights& weights) {
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char*>(weights.data()),
             static_cast<std::streamsize>(weights.size() * sizeof(float)));
  if (!file.flush()) throw std::runtime_error("cannot write " + path);
}

Weights read_weights(const std::string& path, std::size_t count) {
  Weights weights(count);
  std::ifstream file(path, std::ios::binary);
  file.read(reinterpret_cast<char*>(weights.data()),
            static_cast<std::streamsize>(count * sizeof(float)));
  if (!file) throw std::runtime_error("cannot read " + path);
  return weights;
}

/// What all tasks share: loaded before the first of them is forked.
struct Federation {
  mnist::Dataset train;
  mnist::Dataset test;
  Split split;
  Weights global;
  std::string fingerprint;  ///< Of what the weights of a round depend on, beside their number.
};

/// One client's part of a round.
struct Client : trainyard::Task {
  Client(const Federation& its, int its_round, std::size_t its_number)
      : Task({.id = fmt::format("client-{}", its_number),
              .memory = 100_MB,
              .cpus = 1,
              .fingerprint = its.fingerprint}),
        federation(its),
        round(its_round),
        number(its_number) {}

  void load() override {
    images = federation.split[number];
    mnist::Random random(static_cast<std::uint64_t>(round) * kClients + number);
    random.shuffle(images);
  }
  Json train(const Device& /*device*/) override {
    mnist::Network network = mnist::make_network(federation.train, kHidden, 0);
    network.set_weights(federation.global);
    const double accuracy = mnist::train_epoch(network, federation.train, images, kLearningRate);
    write_weights(kWeights, network.weights());
    return {{"train_acc", accuracy}, {"images", images.size()}};
  }

  const Federation& federation;
  int round;
  std::size_t number;
  std::vector<std::size_t> images;
};

/// Averages what the clients have learned, each by how many images it has.
struct Aggregate : trainyard::Task {
  Aggregate(const Federation& its, const trainyard::TaskGroup& its_clients, int its_round)
      : Task({.id = "average", .memory = 100_MB, .cpus = 1, .fingerprint = its.fingerprint}),
        federation(its),
        clients(its_clients),
        round(its_round) {}

  Json train(const Device& /*device*/) override {
    Weights average(federation.global.size());
    for (std::size_t client = 0; const trainyard::Task& task : clients.tasks()) {
      const Weights theirs =
          read_weights(task.task_dir() + "/" + kWeights, federation.global.size());
      const auto share = static_cast<float>(federation.split[client++].size()) /
                         static_cast<float>(federation.train.size());
      for (std::size_t i = 0; i < average.size(); ++i) average[i] += share * theirs[i];
    }
    mnist::Network network = mnist::make_network(federation.train, kHidden, 0);
    network.set_weights(average);
    write_weights(kWeights, average);
    return {{"round", round}, {"test_acc", mnist::accuracy_of(network, federation.test)}};
  }

  const Federation& federation;
  const trainyard::TaskGroup& clients;
  int round;
};

struct Options {
  std::string data = "data";
  std::string split = "uniform";
  int rounds = 20;
  std::string directory;
};

Options read_options(std::span<const char* const> words) {
  Options options;
  for (std::size_t i = 0; i + 1 < words.size(); i += 2) {
    const std::string_view name = words[i];
    const std::string value = words[i + 1];
    if (name == "--data") options.data = value;
    if (name == "--split") options.split = value;
    if (name == "--rounds") options.rounds = std::max(1, std::atoi(value.c_str()));
    if (name == "--directory") options.directory = value;
  }
  return options;
}

/// Runs a group, and throws when not every task has finished.
void run_all(trainyard::Yard& yard, trainyard::TaskGroup& group) {
  const trainyard::Result<trainyard::RunSummary> done = yard.run(group);
  if (!done) throw std::runtime_error(done.error().message);
  for (const trainyard::Task& task : group.tasks()) {
    if (task.status() == trainyard::Status::Exited) continue;
    throw std::runtime_error(fmt::format("{}/{}: {}", group.name(), task.id(), task.message()));
  }
}

Federation load(const Options& options) {
  auto train = mnist::load_dataset(options.data, "train");
  if (!train) throw std::runtime_error(train.error());
  auto test = mnist::load_dataset(options.data, "t10k");
  if (!test) throw std::runtime_error(test.error());
  Federation federation{.train = std::move(*train),
                        .test = std::move(*test),
                        .split = {},
                        .global = {},
                        .fingerprint = options.data + " " + options.split};
  federation.split = options.split == "label"
                         ? split_by_label(federation.train, kClients, kAlpha, 0)
                         : split_uniformly(federation.train, kClients, 0);
  federation.global = mnist::make_network(federation.train, kHidden, 0).weights();
  return federation;
}

int run(const Options& options) {
  Federation federation = load(options);
  fmt::print("{} images, {} split over {} clients\n", federation.train.size(), options.split,
             kClients);
  trainyard::Yard yard({}, {.name = "federated", .directory = options.directory});
  for (int round = 1; round <= options.rounds; ++round) {
    trainyard::TaskGroup clients{fmt::format("round-{}", round)};
    for (std::size_t k = 0; k < kClients; ++k) clients.add<Client>(federation, round, k);
    run_all(yard, clients);
    trainyard::TaskGroup aggregate{fmt::format("aggregate-{}", round)};
    const auto& average = aggregate.add<Aggregate>(federation, clients, round);
    run_all(yard, aggregate);
    federation.global = read_weights(average.task_dir() + "/" + kWeights, federation.global.size());
    fmt::print("round {:2}: test {:.2f} %\n", round,
               100 * average.result().at("test_acc").get<double>());
    std::fflush(stdout);
  }
  return 0;
}

}  // namespace
}  // namespace federated

int main(int argc, char** argv) {
  try {
    return federated::run(federated::read_options({argv + 1, argv + argc}));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "federated: %s\n", error.what());
    return 1;
  }
}
