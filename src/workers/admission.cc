#include "workers/admission.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace trainyard::workers {
namespace {

int workers_of(const MachineEntry& machine) { return static_cast<int>(machine.nodes.size()); }

bool has_node(const MachineEntry& machine, int node) {
  return std::ranges::any_of(machine.nodes,
                             [node](const MachineNode& it) { return it.node == node; });
}

}  // namespace

int Admission::awaited() const {
  int awaited = options_.elsewhere;
  for (const MachineEntry& each : joined_) awaited -= workers_of(each);
  return awaited;
}

bool Admission::knows(MachineId id) const {
  return std::ranges::any_of(joined_, [id](const MachineEntry& it) { return it.id == id; });
}

std::string Admission::refusal(const MachineHello& hello) const {
  if (hello.topology != options_.topology) {
    return fmt::format("the topology of the run is {}, not {}", options_.topology, hello.topology);
  }
  // A machine that drops events would not wait for a worker that reads slowly, and one that blocks
  // drops none of them: nothing would bound what waits for that worker.
  if (hello.when_full != options_.when_full) {
    return fmt::format("the policy of full queues in the run is '{}', not '{}' (when_full)",
                       options_.when_full, hello.when_full);
  }
  if (hello.machine.nodes.empty()) return "it brings no workers";
  std::vector<MachineEntry> there = joined_;
  there.insert(there.begin(), options_.own);
  for (const MachineEntry& each : there) {
    for (const MachineNode& it : hello.machine.nodes) {
      if (!has_node(each, it.node)) continue;
      return fmt::format("the node id {} is taken by a worker of {}: give others in node_ids",
                         it.node, each.host);
    }
  }
  if (workers_of(hello.machine) > awaited()) {
    return fmt::format("it brings {} workers, and the run waits for {} (workers_elsewhere)",
                       workers_of(hello.machine), awaited());
  }
  return {};
}

MachineWelcome Admission::ask(const MachineHello& hello) {
  if (!knows(hello.machine.id)) {
    if (std::string why = refusal(hello); !why.empty()) return {.error = std::move(why)};
    joined_.push_back(hello.machine);
  }
  MachineWelcome welcome{.error = {},
                         .machines = {options_.own},
                         .index = workers_of(options_.own),
                         .count = workers_of(options_.own) + options_.elsewhere,
                         .awaited = awaited()};
  bool is_before = true;
  for (const MachineEntry& each : joined_) {
    if (each.id == hello.machine.id) {
      is_before = false;
      continue;
    }
    if (is_before) welcome.index += workers_of(each);
    welcome.machines.push_back(each);
  }
  return welcome;
}

}  // namespace trainyard::workers
