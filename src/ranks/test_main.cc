// The tests' own main(): a rank when it was started as one.
#include <cstdlib>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ranks/test_components.h"
#include "sys/test_directory.h"
#include "trainyard/rank_program.h"

int main(int argc, char** argv) {
  if (const auto code = trainyard::run_as_rank(trainyard::ranks::test_registry())) return *code;
  testing::InitGoogleMock(&argc, argv);
  // An executor keeps what ranks that failed have printed: that goes with the test.
  const trainyard::sys::TemporaryDirectory place;
  ::setenv("TMPDIR", place.path().c_str(), 1);
  return RUN_ALL_TESTS();
}
