#include "model/gpu_stranger.h"

#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace trainyard::model {
namespace {

const GpuStranger kTrains{.user = 1001, .program = "python3", .memory = mb(100), .draws = false};

std::optional<std::uint32_t> who_computes(const std::vector<GpuStranger>& strangers,
                                          const std::vector<Neighbour>& neighbours = {}) {
  return model::who_computes(strangers, "GPU-a", neighbours);
}

/// A run of the first stranger's user, with so much of a GPU.
Neighbour run_with(CardPromise card) {
  card.tasks = 1;
  return {.user = 1001, .its = {.held = {.tasks = 1, .cards = {std::move(card)}}}};
}

TEST(GpuStranger, AnotherUsersProcessOfAHundredMegabytesComputes) {
  EXPECT_EQ(who_computes({kTrains}), 1001);
}

TEST(GpuStranger, NobodyComputesOnAnEmptyGpu) { EXPECT_EQ(who_computes({}), std::nullopt); }

TEST(GpuStranger, OfSeveralItIsTheOneThatTakesTheMostWhateverTheirOrder) {
  GpuStranger bigger = kTrains;
  bigger.user = 1002;
  bigger.memory = mb(101);
  EXPECT_EQ(who_computes({kTrains, bigger}), 1002);
  EXPECT_EQ(who_computes({bigger, kTrains}), 1002);
}

TEST(GpuStranger, OursAndThoseOfNobodyKnownDoNotCount) {
  GpuStranger ours = kTrains;
  ours.user.reset();
  EXPECT_EQ(who_computes({ours}), std::nullopt);
}

TEST(GpuStranger, WhoDrawsDoesNotCompute) {
  GpuStranger desktop = kTrains;
  desktop.draws = true;
  desktop.memory = mb(900);
  EXPECT_EQ(who_computes({desktop}), std::nullopt);
}

TEST(GpuStranger, ATinyContextIsAMonitors) {
  GpuStranger monitor = kTrains;
  monitor.memory = mb(100) - Bytes{1};
  EXPECT_EQ(who_computes({monitor}), std::nullopt);
}

TEST(GpuStranger, WhoseMemoryTheDriverHidesMayTakeAnyAmount) {
  GpuStranger hidden = kTrains;
  hidden.user = 1002;
  hidden.memory.reset();
  EXPECT_EQ(who_computes({hidden}), 1002);
  EXPECT_EQ(who_computes({hidden, kTrains}), 1001) << "what is known comes first";
}

TEST(GpuStranger, MpsIsNobody) {
  GpuStranger server = kTrains;
  server.program = "nvidia-cuda-mps";
  EXPECT_EQ(who_computes({server}), std::nullopt);
}

TEST(GpuStranger, ComputesOnlyWithMoreThanTheRunsOfItsUserHaveReserved) {
  GpuStranger task = kTrains;
  task.memory = gb(3);
  const std::vector<Neighbour> two_runs{run_with({.uuid = "GPU-a", .memory = gb(2)}),
                                        run_with({.uuid = "GPU-a", .memory = gb(1)})};
  EXPECT_EQ(who_computes({task}, two_runs), std::nullopt);
  EXPECT_EQ(who_computes({task}), 1001);
  task.memory = gb(3) + mb(100);
  EXPECT_EQ(who_computes({task}, two_runs), 1001) << "a hundred megabytes more";
  EXPECT_EQ(who_computes({kTrains, kTrains}, two_runs), std::nullopt);
}

TEST(GpuStranger, ComputesBesideItsOwnRunWithAProcessOfWhichTheRunKnowsNothing) {
  GpuStranger task = kTrains;
  task.memory = gb(3);
  GpuStranger notebook = kTrains;
  notebook.memory = gb(1);
  EXPECT_EQ(who_computes({task, notebook}, {run_with({.uuid = "GPU-a", .memory = gb(3)})}), 1001);
}

TEST(GpuStranger, IsCoveredByWhatIsReservedOfTheSameGpuForTheSameUser) {
  GpuStranger task = kTrains;
  task.memory = gb(3);
  EXPECT_EQ(who_computes({task}, {run_with({.uuid = "GPU-b", .memory = gb(3)})}), 1001);
  task.user = 1002;
  EXPECT_EQ(who_computes({task}, {run_with({.uuid = "GPU-a", .memory = gb(3)})}), 1002);
}

TEST(GpuStranger, IsCoveredByARunThatHasTheGpuForItsOwnAndWhereTheDriverHidesMemory) {
  GpuStranger task = kTrains;
  task.memory = gb(9);
  EXPECT_EQ(who_computes({task}, {run_with({.uuid = "GPU-a", .whole = true})}), std::nullopt);
  task.memory.reset();
  EXPECT_EQ(who_computes({task}, {run_with({.uuid = "GPU-a", .memory = gb(3)})}), std::nullopt);
}

TEST(GpuStranger, IsCoveredByWhatItsRunIsAboutToHold) {
  GpuStranger task = kTrains;
  task.memory = gb(3);
  Neighbour run = run_with({.uuid = "GPU-a", .memory = gb(3)});
  std::swap(run.its.held, run.its.claimed);
  EXPECT_EQ(who_computes({task}, {run}), std::nullopt);
}

}  // namespace
}  // namespace trainyard::model
