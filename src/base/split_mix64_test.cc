#include "base/split_mix64.h"

#include <gtest/gtest.h>

namespace trainyard {
namespace {

TEST(SplitMix64, GivesTheNumbersThatItsAuthorsHavePublished) {
  SplitMix64 numbers(0);
  EXPECT_EQ(numbers.next(), 0xE220A8397B1DCDAFU);
  EXPECT_EQ(numbers.next(), 0x6E789E6AA1B965F4U);
  EXPECT_EQ(numbers.next(), 0x06C45D188009454FU);
}

}  // namespace
}  // namespace trainyard
