#include "workers/admission.h"

#include <gtest/gtest.h>

namespace trainyard::workers {
namespace {

MachineEntry machine(MachineId id, const std::string& host, const std::vector<int>& nodes) {
  MachineEntry entry{.id = id, .host = host, .nodes = {}};
  for (const int node : nodes) entry.nodes.push_back({.node = node, .roles = {}});
  return entry;
}
MachineHello hello(const MachineEntry& entry) {
  return {.machine = entry, .topology = "mesh", .when_full = "block"};
}

Admission of_three_more() {
  return Admission(
      {.own = machine(1, "a", {0, 1}), .topology = "mesh", .when_full = "block", .elsewhere = 3});
}

TEST(Admission, TellsEachOfThoseBeforeIt) {
  Admission admission = of_three_more();
  const MachineEntry b = machine(2, "b", {4});
  const MachineEntry c = machine(3, "c", {5, 6});
  EXPECT_EQ(admission.ask(hello(b)), (MachineWelcome{.error = {},
                                                     .machines = {machine(1, "a", {0, 1})},
                                                     .index = 2,
                                                     .count = 5,
                                                     .awaited = 2}));
  EXPECT_EQ(admission.ask(hello(c)), (MachineWelcome{.error = {},
                                                     .machines = {machine(1, "a", {0, 1}), b},
                                                     .index = 3,
                                                     .count = 5,
                                                     .awaited = 0}));
  // The machine asks again, as it has not received the answer: by now there is another one.
  EXPECT_EQ(admission.ask(hello(b)), (MachineWelcome{.error = {},
                                                     .machines = {machine(1, "a", {0, 1}), c},
                                                     .index = 2,
                                                     .count = 5,
                                                     .awaited = 0}));
  EXPECT_TRUE(admission.knows(3));
}

TEST(Admission, SaysWhyOneIsNotLetIn) {
  Admission admission = of_three_more();
  const auto error_of = [&](const MachineHello& it) { return admission.ask(it).error; };
  EXPECT_EQ(error_of(hello(machine(2, "b", {7, 1}))),
            "the node id 1 is taken by a worker of a: give others in node_ids");
  EXPECT_EQ(error_of(hello(machine(2, "b", {5, 6, 7, 8}))),
            "it brings 4 workers, and the run waits for 3 (workers_elsewhere)");
  EXPECT_EQ(error_of(hello(machine(2, "b", {}))), "it brings no workers");
  EXPECT_EQ(error_of({.machine = machine(2, "b", {5}), .topology = "star"}),
            "the topology of the run is mesh, not star");
  EXPECT_EQ(error_of({.machine = machine(2, "b", {5}), .topology = "mesh", .when_full = "fail"}),
            "the policy of full queues in the run is 'block', not 'fail' (when_full)");
  EXPECT_FALSE(admission.knows(2));
  EXPECT_EQ(admission.awaited(), 3);
  EXPECT_EQ(error_of(hello(machine(2, "b", {5}))), "");
  EXPECT_EQ(error_of(hello(machine(3, "c", {5}))),
            "the node id 5 is taken by a worker of b: give others in node_ids");
}

}  // namespace
}  // namespace trainyard::workers
