// The tests' own main(): a rank when it was started as one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ranks/test_components.h"
#include "trainyard/rank_program.h"

int main(int argc, char** argv) {
  if (const auto code = trainyard::run_as_rank(trainyard::ranks::test_registry())) return *code;
  testing::InitGoogleMock(&argc, argv);
  return RUN_ALL_TESTS();
}
