#include "federated/split.h"

#include <algorithm>
#include <array>

#include <gtest/gtest.h>

namespace federated {
namespace {

mnist::Dataset digits(std::size_t count) {
  mnist::Dataset data{.rows = 1, .columns = 1, .pixels = {}, .labels = {}};
  for (std::size_t i = 0; i < count; ++i) data.labels.push_back(static_cast<mnist::Byte>(i % 10));
  data.pixels.resize(count);
  return data;
}

/// Every image, once, in order: what all clients have together.
std::vector<std::size_t> everything(const Split& split) {
  std::vector<std::size_t> all;
  for (const auto& images : split) all.insert(all.end(), images.begin(), images.end());
  std::ranges::sort(all);
  return all;
}

std::vector<std::size_t> first(std::size_t count) {
  std::vector<std::size_t> all(count);
  for (std::size_t i = 0; i < count; ++i) all[i] = i;
  return all;
}

/// The largest share of one digit that one client has.
double largest_share(const Split& split, const mnist::Dataset& data) {
  double largest = 0;
  for (const auto& images : split) {
    std::array<double, 10> counts{};
    for (const std::size_t image : images) counts.at(data.labels[image]) += 1;
    largest = std::max(largest,
                       *std::ranges::max_element(counts) / (static_cast<double>(data.size()) / 10));
  }
  return largest;
}

TEST(Split, DealsEveryImageOnceAndEvenly) {
  const mnist::Dataset data = digits(1'003);
  const Split split = split_uniformly(data, 10, 1);
  EXPECT_EQ(everything(split), first(1'003));
  for (const auto& images : split) {
    EXPECT_GE(images.size(), 100U);
    EXPECT_LE(images.size(), 101U);
  }
  EXPECT_EQ(split, split_uniformly(data, 10, 1));
  EXPECT_NE(split, split_uniformly(data, 10, 2));
}

TEST(Split, ByLabelIsTheMoreUnevenTheSmallerAlphaIs) {
  const mnist::Dataset data = digits(10'000);
  const Split uneven = split_by_label(data, 10, 0.1, 1);
  const Split even = split_by_label(data, 10, 1'000, 1);
  EXPECT_EQ(everything(uneven), first(10'000));
  EXPECT_EQ(everything(even), first(10'000));
  EXPECT_GT(largest_share(uneven, data), 0.5);
  EXPECT_LT(largest_share(even, data), 0.15);
}

TEST(Split, LeavesNobodyWithNothing) {
  for (int seed = 0; seed < 20; ++seed) {
    const Split split = split_by_label(digits(100), 10, 0.01, static_cast<std::uint64_t>(seed));
    EXPECT_EQ(everything(split), first(100));
    for (const auto& images : split) EXPECT_FALSE(images.empty()) << "seed " << seed;
  }
}

}  // namespace
}  // namespace federated
