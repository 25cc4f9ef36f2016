#include "ranks/reduce.h"

#include <cstddef>
#include <expected>
#include <initializer_list>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace trainyard::ranks {
namespace {

using ::testing::ElementsAre;

Result<Buffer> own(DType type, Dimensions shape) { return Buffer(type, std::move(shape)); }

template <class T>
Shareable with(std::initializer_list<T> values) {
  Shareable made;
  made.set_buffer("w", Buffer::copy_of<T>({static_cast<std::int64_t>(values.size())}, values));
  return made;
}

std::string reduce_trouble(const std::vector<Shareable>& replies, Reduction reduction) {
  const auto reduced = reduce(replies, reduction, own);
  return reduced ? "none" : reduced.error().message;
}

TEST(Reduce, AddsElementByElement) {
  const auto sum = reduce({with<float>({1, 2.5F}), with<float>({3, 4}), with<float>({0, -1})},
                          Reduction::Sum, own);
  EXPECT_THAT(sum.value().buffer("w")->as<float>(), ElementsAre(4, 5.5F));
  const auto whole =
      reduce({with<std::int64_t>({1, -2}), with<std::int64_t>({3, 4})}, Reduction::Sum, own);
  EXPECT_THAT(whole.value().buffer("w")->as<std::int64_t>(), ElementsAre(4, 2));
}

TEST(Reduce, TakesTheMeanOfFloatingNumbersOnly) {
  const auto mean = reduce({with<double>({1, 2}), with<double>({4, 8})}, Reduction::Mean, own);
  EXPECT_THAT(mean.value().buffer("w")->as<double>(), ElementsAre(2.5, 5));
  EXPECT_EQ(reduce_trouble({with<std::int32_t>({1}), with<std::int32_t>({2})}, Reduction::Mean),
            "the buffer 'w' is of int32, of which there is no mean");
  EXPECT_EQ(reduce_trouble({with<std::int8_t>({1}), with<std::int8_t>({2})}, Reduction::Sum),
            "the buffer 'w' is of int8, of which there is no sum");
}

TEST(Reduce, IsTheSameForBuffersLongerThanABlock) {
  constexpr std::size_t kCount = 10'001;
  std::vector<double> up(kCount);
  for (std::size_t i = 0; i < kCount; ++i) up[i] = static_cast<double>(i);
  const std::vector<double> down(up.rbegin(), up.rend());
  Shareable one;
  one.set_buffer("w", Buffer::copy_of<double>({kCount}, up));
  Shareable other;
  other.set_buffer("w", Buffer::copy_of<double>({kCount}, down));
  const auto sum = reduce({one, other}, Reduction::Sum, own);
  EXPECT_THAT(sum.value().buffer("w")->as<double>(), testing::Each(kCount - 1.0));
}

TEST(Reduce, KeepsTheValuesOfTheFirstAndTheRepliesAsTheyWere) {
  Shareable first = with<float>({1});
  first.set("loss", 0.5);
  Shareable second = with<float>({2});
  second.set("loss", 0.7);
  const std::vector<Shareable> replies{first, second};
  const auto sum = reduce(replies, Reduction::Sum, own);
  EXPECT_EQ(sum.value().get("loss"), 0.5);
  EXPECT_THAT(replies[0].buffer("w")->as<float>(), ElementsAre(1));
}

TEST(Reduce, NamesTheRankThatHasSomethingElse) {
  EXPECT_EQ(reduce_trouble({with<float>({1}), with<float>({1}), Shareable()}, Reduction::Sum),
            "rank 2 has no buffer 'w' to reduce");
  EXPECT_EQ(reduce_trouble({with<float>({1}), with<float>({1, 2})}, Reduction::Sum),
            "rank 1 has another type or shape of the buffer 'w' to reduce");
  EXPECT_EQ(reduce_trouble({with<float>({1}), with<double>({1})}, Reduction::Sum),
            "rank 1 has another type or shape of the buffer 'w' to reduce");
}

TEST(Reduce, PassesOnThatThereIsNoMemory) {
  const auto none =
      reduce({with<float>({1})}, Reduction::Sum, [](DType, const Dimensions&) -> Result<Buffer> {
        return std::unexpected(Error{"no memory"});
      });
  EXPECT_EQ(none.error().message, "no memory");
}

}  // namespace
}  // namespace trainyard::ranks
