// Several made-up machines behind the one port, as run/fleet.h: that of the yard, where tasks may
// run, and those that agents look after. Each command goes to the machine that it is for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/time.h"
#include "model/command.h"
#include "model/event.h"
#include "model/ids.h"
#include "run/machine.h"
#include "sim/fleet_workload.h"
#include "sim/machine.h"
#include "sim/made_up_agent.h"
#include "sim/made_up_remote.h"

namespace trainyard::sim {

class MadeUpFleet final : public run::Machine {
 public:
  /// `workload` and what the world refers to must outlive it.
  MadeUpFleet(std::uint64_t seed, const FleetWorkload& workload, World world);

  void carry_out(const model::Command& command) override;
  std::vector<model::Event> wait(std::optional<Instant> until) override {
    return local_.wait(until);
  }
  [[nodiscard]] bool more_to_come() const override { return local_.more_to_come(); }

  [[nodiscard]] bool disk_full() const { return local_.disk_full(); }
  /// On all machines.
  [[nodiscard]] std::size_t processes() const;

 private:
  struct Member {
    std::unique_ptr<MadeUpAgent> agent;
    std::unique_ptr<MadeUpRemote> remote;
  };

  void add(std::uint64_t seed, const FleetMember& member);
  void plan(Member& member, const LinkTrouble& trouble);
  [[nodiscard]] MadeUpRemote* remote_for(const model::Command& command);
  void about_to_start(model::TaskIndex task);

  World world_;
  bool local_joins_;
  MadeUpMachine local_;
  std::vector<Member> members_;
  std::uint32_t joined_;  ///< The number that have joined.
};

}  // namespace trainyard::sim
