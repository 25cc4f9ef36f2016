#include "sys/packing.h"

#include <gtest/gtest.h>

namespace trainyard::sys {
namespace {

TEST(Packing, ComesOutAsItWentIn) {
  Packing packing;
  packing.add(std::int64_t{-7});
  packing.add("text");
  packing.add(std::uint8_t{1});
  packing.add("");
  const std::string bytes = std::move(packing).take();
  Unpacking unpacking(bytes);
  EXPECT_EQ(unpacking.number<std::int64_t>(), -7);
  EXPECT_EQ(unpacking.text(), "text");
  EXPECT_EQ(unpacking.number<std::uint8_t>(), 1);
  EXPECT_EQ(unpacking.text(), "");
  EXPECT_EQ(unpacking.text(), "") << "there is no more";
}

TEST(Packing, TakesOutNoMoreThanThereIsWhateverLengthIsSaid) {
  Packing packing;
  packing.add("text");
  const std::string bytes = std::move(packing).take();
  for (std::size_t cut = 0; cut < bytes.size(); ++cut) {
    Unpacking unpacking(std::string_view(bytes).substr(0, cut));
    EXPECT_EQ(unpacking.text(), bytes.substr(4, cut < 4 ? 0 : cut - 4)) << cut;
    EXPECT_EQ(unpacking.number<std::uint8_t>(), 0) << cut;
  }
  Unpacking count(std::string_view("\x05\0\0\0ab", 6));
  EXPECT_EQ(count.count(), 2U);
}

}  // namespace
}  // namespace trainyard::sys
