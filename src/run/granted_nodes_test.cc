#include <cstdint>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "run/allocation.h"

namespace trainyard::run {
namespace {

using testing::ElementsAre;

std::optional<std::int64_t> seconds_of(std::string_view text) {
  const std::optional<Duration> time = granted_nodes("1 " + std::string(text) + " node1")->left;
  return time ? std::optional(time->count() / 1'000) : std::nullopt;
}

TEST(GrantedNodes, AreReadWithTheirAllocationAndItsTime) {
  const auto granted = granted_nodes("12 8:00:00 node2 node1.uni.org ");
  ASSERT_TRUE(granted.has_value());
  EXPECT_EQ(granted->allocation, "12");
  EXPECT_EQ(granted->left, Duration(8LL * 3'600'000));
  EXPECT_THAT(granted->nodes, ElementsAre("node1.uni.org", "node2"));
  EXPECT_EQ(granted_nodes("12 UNLIMITED a")->left, std::nullopt);
  EXPECT_THAT(granted_nodes("12 1:00 a b a")->nodes, ElementsAre("a", "b"));
}

TEST(GrantedNodes, AreNotReadFromWhatIsSomethingElse) {
  for (const char* const line :
       {"", "12", "12 1:00", "x 1:00 node1", "12 1:00 -node", "12 1:00 no;de", "12 1:00 a\tb",
        "123456789012345678901 1:00 node1", "-1 1:00 node1"}) {
    EXPECT_FALSE(granted_nodes(line).has_value()) << line;
  }
  std::string many = "12 1:00";
  for (std::size_t i = 0; i <= kNodesMax; ++i) many += " n" + std::to_string(i);
  EXPECT_FALSE(granted_nodes(many).has_value());
}

TEST(GrantedNodes, HaveTimesAsSlurmShowsThem) {
  EXPECT_EQ(seconds_of("0:00"), 0);
  EXPECT_EQ(seconds_of("9:58"), 598);
  EXPECT_EQ(seconds_of("01:02:03"), 3'723);
  EXPECT_EQ(seconds_of("2-01:02:03"), 2 * 86'400 + 3'723);
  for (const char* const text : {"5", "UNLIMITED", "INVALID", "NOT_SET", "N/A", ":", "1:", "-1:00",
                                 "1:2:3:4", "1--1:00", "99999999:00", "1:0x"}) {
    EXPECT_EQ(seconds_of(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace trainyard::run
