#include "model/gpu_stranger.h"

#include <optional>
#include <vector>

#include <gtest/gtest.h>

#include "base/bytes.h"

namespace trainyard::model {
namespace {

const GpuStranger kTrains{.user = 1001, .program = "python3", .memory = mb(100), .draws = false};

TEST(GpuStranger, AnotherUsersProcessOfAHundredMegabytesComputes) {
  EXPECT_EQ(who_computes(std::vector{kTrains}), 1001);
}

TEST(GpuStranger, NobodyComputesOnAnEmptyGpu) { EXPECT_EQ(who_computes({}), std::nullopt); }

TEST(GpuStranger, OfSeveralItIsTheOneThatTakesTheMostWhateverTheirOrder) {
  GpuStranger bigger = kTrains;
  bigger.user = 1002;
  bigger.memory = mb(101);
  EXPECT_EQ(who_computes(std::vector{kTrains, bigger}), 1002);
  EXPECT_EQ(who_computes(std::vector{bigger, kTrains}), 1002);
}

TEST(GpuStranger, OursAndThoseOfNobodyKnownDoNotCount) {
  GpuStranger ours = kTrains;
  ours.user.reset();
  EXPECT_EQ(who_computes(std::vector{ours}), std::nullopt);
}

TEST(GpuStranger, WhoDrawsDoesNotCompute) {
  GpuStranger desktop = kTrains;
  desktop.draws = true;
  desktop.memory = mb(900);
  EXPECT_EQ(who_computes(std::vector{desktop}), std::nullopt);
}

TEST(GpuStranger, ATinyContextIsAMonitors) {
  GpuStranger monitor = kTrains;
  monitor.memory = mb(100) - Bytes{1};
  EXPECT_EQ(who_computes(std::vector{monitor}), std::nullopt);
}

TEST(GpuStranger, WhoseMemoryTheDriverHidesMayTakeAnyAmount) {
  GpuStranger hidden = kTrains;
  hidden.user = 1002;
  hidden.memory.reset();
  EXPECT_EQ(who_computes(std::vector{hidden}), 1002);
  EXPECT_EQ(who_computes(std::vector{hidden, kTrains}), 1001) << "what is known comes first";
}

TEST(GpuStranger, MpsIsNobody) {
  GpuStranger server = kTrains;
  server.program = "nvidia-cuda-mps";
  EXPECT_EQ(who_computes(std::vector{server}), std::nullopt);
}

}  // namespace
}  // namespace trainyard::model
