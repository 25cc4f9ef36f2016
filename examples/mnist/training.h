// One training from the data to its result: what a task of the sweep does. It reads and writes no
// file; `on_epoch` is told how it goes. One thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "mnist/idx.h"
#include "mnist/network.h"
#include "mnist/options.h"

namespace mnist {

/// After an epoch.
struct Progress {
  int epoch = 0;         ///< From 1.
  double loss = 0;       ///< Mean over the epoch's images.
  double train_acc = 0;  ///< Share right while the epoch ran.
  double test_acc = 0;
};

struct Outcome {
  double test_acc = 0;
  double train_acc = 0;  ///< Of the finished network.
  double loss = 0;       ///< The finished network's mean cross-entropy on the training images.
  int epochs = 0;

  friend bool operator==(const Outcome&, const Outcome&) = default;
};

/// Trains on the first `fraction` of `train`, and measures on all of `test`. The same options and
/// data give the same outcome, to the last bit. Both sets hold images of one size.
Outcome run_training(const Options& options, const Dataset& train, const Dataset& test,
                     const std::function<void(const Progress&)>& on_epoch);

/// A new network for these images.
Network make_network(const Dataset& data, int hidden, std::uint64_t seed);

/// Once over the images at `order`, with one learning rate. Returns the share that was right while
/// it went on.
double train_epoch(Network& network, const Dataset& data, std::span<const std::size_t> order,
                   double learning_rate);

/// What those images ask the network for, as Network::find_gradients() says.
BatchResult find_gradients(Network& network, const Dataset& data,
                           std::span<const std::size_t> picks);

/// The share of all images that the network gets right.
double accuracy_of(Network& network, const Dataset& data);

/// The result as a JSON object, on one line.
std::string to_json(const Outcome& outcome);

}  // namespace mnist
