// The environment of a process that is in a task, without what was set for the task.
#include "sys/environment.h"

#include <cstdlib>
#include <string_view>

#include <gtest/gtest.h>

#include "model/set_variables.h"

namespace trainyard::sys {
namespace {

TEST(OwnEnvironment, IsWithoutWhatWasSetForATaskWhileItExists) {
  const std::vector<std::string_view> before{"TRAINYARD_TEST_THREADS=16"};
  const std::vector<std::string_view> now{"TRAINYARD_TEST_THREADS=2", "TRAINYARD_TEST_RANK=1"};
  set_variable("TRAINYARD_TEST_THREADS=2");
  set_variable("TRAINYARD_TEST_RANK=1");
  set_variable(std::string(model::kSetVariables) + "=" + model::set_variables(before, now));
  EXPECT_TRUE(is_in_task());
  {
    const OwnEnvironment own;
    EXPECT_FALSE(is_in_task());
    EXPECT_EQ(variable("TRAINYARD_TEST_THREADS"), "16");
    EXPECT_EQ(variable("TRAINYARD_TEST_RANK"), std::nullopt);
    set_variable("TRAINYARD_TEST_MEANWHILE=1");
  }
  EXPECT_TRUE(is_in_task());
  EXPECT_EQ(variable("TRAINYARD_TEST_THREADS"), "2");
  EXPECT_EQ(variable("TRAINYARD_TEST_RANK"), "1");
  EXPECT_EQ(variable("TRAINYARD_TEST_MEANWHILE"), "1");
}

TEST(OwnEnvironment, IsThatOfTheProcessOutsideOfTasks) {
  set_variable(std::string(model::kSetVariables) + "=");
  set_variable("TRAINYARD_TEST_RANK=1");
  const std::vector<std::string> before = environment();
  const OwnEnvironment own;
  EXPECT_FALSE(is_in_task());
  EXPECT_EQ(environment(), before);
}

}  // namespace
}  // namespace trainyard::sys
