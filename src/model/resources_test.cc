#include "model/resources.h"

#include <gtest/gtest.h>

namespace trainyard::model {
namespace {

TEST(Resources, CallASliceOfACardByItsNumberAndByThatOfTheCard) {
  const Gpu slice{.number = 4, .slice = 1};
  EXPECT_TRUE(is_called(slice, "4:1"));
  EXPECT_TRUE(is_called(slice, "4"));
  EXPECT_FALSE(is_called(slice, "4:0"));
  EXPECT_FALSE(is_called(slice, "1"));
  EXPECT_TRUE(is_called({.number = 4}, "4"));
}

TEST(Resources, OfSeveralMachinesAreTheMostThatAnyHasOfEach) {
  const Capacity own{.memory = gb(8), .cpus = cpus(4), .processes_max = 7, .gpus = {{.number = 1}}};
  const std::vector<NamedMachine> others{
      {.name = "a", .capacity = {.memory = gb(2), .cpus = cpus(16), .gpus = {{.number = 2}}}},
      {.name = "b",
       .capacity = {.memory = gb(9), .cpus = cpus(1), .gpus = {{.number = 3}, {.number = 4}}}}};
  EXPECT_EQ(most_of(own, others), (Capacity{.memory = gb(9),
                                            .cpus = cpus(16),
                                            .processes_max = 7,
                                            .gpus = {{.number = 3}, {.number = 4}}}));
  EXPECT_EQ(most_of(own, {}), own);
}

}  // namespace
}  // namespace trainyard::model
