#include "trainyard/buffer.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace trainyard {
namespace {

using ::testing::ElementsAre;

TEST(Buffer, IsReadAsTheTypeThatItHas) {
  const Buffer weights = Buffer::copy_of<float>({2}, {1, 2});
  EXPECT_THAT(weights.as<float>(), ElementsAre(1, 2));
}

TEST(Buffer, ReadOrFilledAsAnotherTypeIsAnErrorThatNamesBoth) {
  Buffer weights = Buffer::copy_of<double>({2}, {1, 2});
  const auto trouble = [](auto use) -> std::string {
    try {
      use();
    } catch (const BufferTypeError& error) {
      return error.what();
    }
    return "none";
  };
  const std::string expected =
      "the buffer contains float64, not float32: send it as float32 (NumPy: "
      "array.astype('float32')), or read it as float64";
  EXPECT_EQ(trouble([&] { static_cast<void>(weights.as<float>()); }), expected);
  EXPECT_EQ(trouble([&] { static_cast<void>(weights.fill<float>()); }), expected);
  EXPECT_THAT(weights.as<double>(), ElementsAre(1, 2));
}

}  // namespace
}  // namespace trainyard
