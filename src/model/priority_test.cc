#include "model/priority.h"

#include <string>

#include <gtest/gtest.h>

namespace trainyard::model {
namespace {

TEST(Priority, IsAWholeNumberBetweenItsBounds) {
  EXPECT_EQ(parse_priority("-1000").value(), -1000);
  EXPECT_EQ(parse_priority("0").value(), 0);
  EXPECT_EQ(parse_priority("1000").value(), 1000);
  for (const std::string_view wrong :
       {"-1001", "1001", "1000000", "99999999999", "1.5", "", "high", "7 "}) {
    const auto priority = parse_priority(wrong);
    ASSERT_FALSE(priority) << wrong;
    EXPECT_EQ(priority.error().message,
              "'" + std::string(wrong) + "' is not a whole number from -1000 to 1000");
  }
}

}  // namespace
}  // namespace trainyard::model
