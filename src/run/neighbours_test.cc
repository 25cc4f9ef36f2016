// Other yards on the machine, as the user of this one reads of them.
#include "run/neighbours.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace trainyard::run {
namespace {

using ::testing::ElementsAre;

TEST(Neighbours, HaveTheirNumberWhereItMeansThatRunHere) {
  const auto names = [](std::string_view numbering) {
    std::vector<std::string> all;
    for (const model::Neighbour& it :
         named({{.is_ours = true,
                 .user_name = "me",
                 .promises = {.ticket = "1", .run = 2, .numbering = "home-a", .name = "sweep"}},
                {.is_ours = true,
                 .user_name = "me",
                 .promises = {.ticket = "2", .run = 2, .numbering = "home-b", .name = "other2"}},
                {.is_ours = false,
                 .user_name = "mona",
                 .promises = {.ticket = "3", .run = 2, .numbering = "home-c", .name = "hers"}}},
               numbering)) {
      all.push_back(model::name_of(it));
    }
    return all;
  };
  EXPECT_THAT(names("home-a"),
              ElementsAre("your run 2 (sweep)", "your run (other2)", "another user's run (mona)"));
  EXPECT_THAT(names(""),
              ElementsAre("your run (sweep)", "your run (other2)", "another user's run (mona)"));
}

}  // namespace
}  // namespace trainyard::run
