#include "base/fingerprint.h"

#include <vector>

#include <gtest/gtest.h>

namespace trainyard {
namespace {

std::uint64_t of(const std::vector<std::string_view>& texts) {
  Fingerprint print;
  for (const std::string_view text : texts) print.add(text);
  return print.value();
}

TEST(Fingerprint, StaysWhatItIs) {
  // Journals hold these: a change of them would make every task a changed one.
  EXPECT_EQ(of({}), 0xcbf29ce484222325U);
  EXPECT_EQ(of({"sh", "env"}), 8816026873372913515U);
  Fingerprint print;
  print.add(std::int64_t{-1});
  EXPECT_EQ(print.value(), 10157053723145373757U);
}

TEST(Fingerprint, TellsWhereOneTextEnds) {
  EXPECT_NE(of({"ab", "c"}), of({"a", "bc"}));
  EXPECT_NE(of({"", "a"}), of({"a", ""}));
}

}  // namespace
}  // namespace trainyard
