#include "federated/split.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numbers>

#include "mnist/random.h"

namespace federated {
namespace {

constexpr int kDigits = 10;

std::vector<std::size_t> shuffled(std::size_t count, mnist::Random& random) {
  std::vector<std::size_t> order(count);
  for (std::size_t i = 0; i < count; ++i) order[i] = i;
  random.shuffle(order);
  return order;
}

/// Above 0, so that its logarithm is a number.
double unit(mnist::Random& random) { return std::max(1e-12, static_cast<double>(random.unit())); }

double normal(mnist::Random& random) {
  return std::sqrt(-2 * std::log(unit(random))) * std::cos(2 * std::numbers::pi * unit(random));
}

/// Marsaglia and Tsang, "A simple method for generating gamma variables" (2000).
double gamma(double alpha, mnist::Random& random) {
  if (alpha < 1) return gamma(alpha + 1, random) * std::pow(unit(random), 1 / alpha);
  const double d = alpha - 1.0 / 3;
  const double c = 1 / std::sqrt(9 * d);
  for (;;) {
    const double x = normal(random);
    const double v = std::pow(1 + c * x, 3);
    if (v > 0 && std::log(unit(random)) < 0.5 * x * x + d - d * v + d * std::log(v)) return d * v;
  }
}

/// Shares that sum to 1.
std::vector<double> dirichlet(int count, double alpha, mnist::Random& random) {
  std::vector<double> shares(static_cast<std::size_t>(count));
  double sum = 0;
  for (double& share : shares) sum += share = gamma(alpha, random);
  for (double& share : shares) share /= sum;
  return shares;
}

/// So that nobody has nothing to train on.
void give_to_the_poor(Split& split) {
  for (std::vector<std::size_t>& poor : split) {
    const auto rich = std::ranges::max_element(split, {}, &std::vector<std::size_t>::size);
    if (!poor.empty() || rich->size() < 2) continue;
    poor.push_back(rich->back());
    rich->pop_back();
  }
}

}  // namespace

Split split_uniformly(const mnist::Dataset& data, int clients, std::uint64_t seed) {
  mnist::Random random(seed);
  Split split(static_cast<std::size_t>(clients));
  const std::vector<std::size_t> order = shuffled(data.size(), random);
  for (std::size_t i = 0; i < order.size(); ++i) split[i % split.size()].push_back(order[i]);
  return split;
}

Split split_by_label(const mnist::Dataset& data, int clients, double alpha, std::uint64_t seed) {
  mnist::Random random(seed);
  Split split(static_cast<std::size_t>(clients));
  const std::vector<std::size_t> order = shuffled(data.size(), random);
  for (int digit = 0; digit < kDigits; ++digit) {
    std::vector<std::size_t> images;
    std::ranges::copy_if(order, std::back_inserter(images),
                         [&](std::size_t image) { return data.labels[image] == digit; });
    const std::vector<double> shares = dirichlet(clients, alpha, random);
    double dealt = 0;
    std::size_t next = 0;
    for (std::size_t client = 0; client < split.size(); ++client) {
      dealt += shares[client];
      const bool last = client + 1 == split.size();
      const auto upto = static_cast<std::size_t>(dealt * static_cast<double>(images.size()));
      const std::size_t end = last ? images.size() : std::min(upto, images.size());
      for (; next < end; ++next) split[client].push_back(images[next]);
    }
  }
  give_to_the_poor(split);
  return split;
}

}  // namespace federated
