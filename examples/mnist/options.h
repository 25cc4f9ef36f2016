// What may be set on the command line of mnist_train. Parsing touches nothing. Any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "mnist/idx.h"

namespace mnist {

struct Options {
  std::string data = "data";  ///< The directory of the four IDX files.
  double learning_rate = 1e-3;
  int hidden = 128;
  std::uint64_t seed = 0;
  int epochs = 10;
  double fraction = 1;  ///< How much of the training images is used.
  bool help = false;

  friend bool operator==(const Options&, const Options&) = default;
};

constexpr std::string_view kUsage =
    "usage: mnist_train [--data DIR] [--lr RATE] [--hidden UNITS] [--seed NUMBER]\n"
    "                   [--epochs COUNT] [--fraction SHARE]\n";

/// Reads `arguments` (without the program's name) on top of `defaults`.
Result<Options> parse_options(std::span<const char* const> arguments, Options defaults);

}  // namespace mnist
