#include "run/event_check.h"

#include <memory>
#include <utility>

#include <gtest/gtest.h>

#include "model/plan.h"
#include "model/resources.h"

namespace trainyard::run {
namespace {

class EventChecks : public ::testing::Test {
 protected:
  /// The mistake in the event; empty: none.
  std::string hear(model::What what, const model::Decision& decided = {}) {
    return check_.fault_of({.at = {}, .what = std::move(what)}, decided).value_or("");
  }

  static model::MachineJoined machine(std::uint32_t index, std::size_t gpus) {
    return {.machine = {index}, .name = "m", .capacity = {.gpus = std::vector<model::Gpu>(gpus)}};
  }

  static model::BatchAdded batch(std::vector<model::PlannedGroup> groups) {
    return {.plan = std::make_shared<model::Plan>(model::Plan{.groups = std::move(groups)})};
  }

  EventCheck check_;
};

TEST_F(EventChecks, KnowWhichMachinesAreThere) {
  EXPECT_EQ(hear(model::Sampled{}), "there is no machine 0, only 0");
  EXPECT_EQ(hear(machine(1, 0)), "machine 1 joins, and 0 are there");
  EXPECT_EQ(hear(machine(0, 2)), "");
  EXPECT_EQ(hear(machine(0, 2)), "machine 0 joins, and is there already");
  EXPECT_EQ(hear(model::Sampled{}), "");
  const std::string none = "there is no machine 1, only 1";
  EXPECT_EQ(hear(model::Sampled{.machine = {1}}), none);
  EXPECT_EQ(hear(model::KeeperSilent{.machine = {1}}), none);
  EXPECT_EQ(hear(model::NeighboursSeen{.neighbours = {}, .machine = {1}}), none);
  EXPECT_EQ(hear(model::MachineGone{.machine = {1}, .why = {}}), none);
  EXPECT_EQ(hear(model::ClaimRefused{.attempts = {}, .neighbours = {}, .machine = {1}}), none);
  EXPECT_EQ(hear(model::GpusSampled{.gpus = {}, .uses = {}, .machine = {1}}), none);
  EXPECT_EQ(hear(model::LimitsChanged{.machine = {1}}), none);
  EXPECT_EQ(
      hear(model::AttemptFound{.key = {}, .promise = {}, .site = {.machine = {1}, .gpus = {}}}),
      none);
  EXPECT_EQ(hear(model::MachineGone{.machine = {0}, .why = {}}), "");
  EXPECT_EQ(hear(machine(0, 3)), "") << "it has gone, and is another now";
  EXPECT_EQ(hear(model::GpusSampled{.gpus = std::vector<model::GpuReading>(3), .uses = {}}), "");
}

TEST_F(EventChecks, KnowWhichGpusAMachineHas) {
  ASSERT_EQ(hear(machine(0, 2)), "");
  const std::vector<model::GpuReading> two(2);
  EXPECT_EQ(hear(model::GpusSampled{.gpus = two, .uses = {}}), "");
  EXPECT_EQ(hear(model::GpusSampled{.gpus = {}, .uses = {}}),
            "machine 0 has 2 GPUs, and 0 were read");
  EXPECT_EQ(hear(model::GpusSampled{.gpus = two, .uses = {{.key = {}, .gpu = {2}, .memory = {}}}}),
            "machine 0 has no GPU 2, only 2");
  EXPECT_EQ(hear(model::GpusSampled{.gpus = two, .uses = {}, .found = {{.gpu = {7}, .what = {}}}}),
            "machine 0 has no GPU 7, only 2");
  EXPECT_EQ(hear(model::LimitsChanged{.drained = {{0}, {1}}}), "");
  EXPECT_EQ(hear(model::LimitsChanged{.drained = {{2}}}), "machine 0 has no GPU 2, only 2");
  EXPECT_EQ(hear(model::LimitsChanged{.cleared = {{2}}}), "machine 0 has no GPU 2, only 2");
  EXPECT_EQ(
      hear(model::AttemptFound{.key = {}, .promise = {}, .site = {.machine = {}, .gpus = {{1}}}}),
      "");
  EXPECT_EQ(
      hear(model::AttemptFound{.key = {}, .promise = {}, .site = {.machine = {}, .gpus = {{2}}}}),
      "machine 0 has no GPU 2, only 2");
}

TEST_F(EventChecks, KnowWhatWasJustDecided) {
  ASSERT_EQ(hear(machine(0, 0)), "");
  const model::AttemptKey key{.task = {3}, .attempt = 2};
  const model::Decision start{.changes = {},
                              .commands = {model::StartAttempt{.key = key, .promise = {}}}};
  const model::Decision grant{.changes = {},
                              .commands = {model::GrantDevice{.key = key, .promise = {}}}};
  const model::ClaimRefused refused{.attempts = {key}, .neighbours = {}};
  EXPECT_EQ(hear(refused, start), "");
  EXPECT_EQ(hear(refused, grant), "");
  EXPECT_EQ(hear(refused), "attempt 2 of task 3 was not just decided to be started");
}

TEST_F(EventChecks, KnowWhichGroupsAreThere) {
  EXPECT_EQ(hear(model::BatchAdded{}), "a batch without a plan");
  EXPECT_EQ(hear(batch({{.name = "train", .needs_earlier = {{0}}}})),
            "group 'train' needs group 0 of an earlier batch, and 0 are there");
  EXPECT_EQ(hear(batch({{.name = "train"}, {.name = "eval"}})), "");
  EXPECT_EQ(hear(batch({{.name = "more", .needs_earlier = {{1}}}})), "");
  EXPECT_EQ(hear(batch({{.name = "more", .needs_earlier = {{3}}}})),
            "group 'more' needs group 3 of an earlier batch, and 3 are there");
}

}  // namespace
}  // namespace trainyard::run
