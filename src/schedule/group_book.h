// The groups of a run: which may run, which are over, and who is to blame when one cannot run.
//
// Blocked -> Running -> Finished, Failed or Stopped; Blocked -> Skipped or Stopped. A group leaves
// Running in the turn in which its last task gets its verdict, never later: what needs it is looked
// at in the same turn.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/command.h"
#include "model/ids.h"
#include "model/plan.h"
#include "model/status.h"

namespace trainyard::schedule {

class GroupBook {
 public:
  /// Adds a group, whose needs are numbered over the whole run; `open_tasks` of its tasks are still
  /// to be run.
  void add(model::PlannedGroup group, std::uint32_t open_tasks);

  [[nodiscard]] std::uint32_t size() const { return static_cast<std::uint32_t>(groups_.size()); }
  [[nodiscard]] const model::PlannedGroup& planned(model::GroupIndex group) const {
    return groups_[group.value].planned;
  }
  [[nodiscard]] model::GroupPhase phase(model::GroupIndex group) const {
    return groups_[group.value].phase;
  }
  [[nodiscard]] std::uint32_t open(model::GroupIndex group) const {
    return groups_[group.value].open;
  }
  /// Whether max-parallel lets another of its tasks start.
  [[nodiscard]] bool has_room(model::GroupIndex group) const;

  void task_started(model::GroupIndex group) { ++groups_[group.value].running; }
  void task_stopped(model::GroupIndex group) { --groups_[group.value].running; }
  void task_concluded(model::GroupIndex group, model::Verdict verdict);

  /// Looks at what a blocked group needs: Running when all of it has finished, Skipped (with the
  /// cause) when some of it never will, Blocked while that is open.
  struct Outlook {
    model::GroupPhase phase = model::GroupPhase::Blocked;
    std::string cause;
  };
  [[nodiscard]] Outlook outlook(model::GroupIndex group) const;

  /// What a group whose tasks have all ended has become.
  [[nodiscard]] model::GroupPhase result(model::GroupIndex group) const;

  void enter(model::GroupIndex group, model::GroupPhase phase);

 private:
  struct Group {
    model::PlannedGroup planned;
    model::GroupPhase phase = model::GroupPhase::Blocked;
    std::uint32_t open = 0;  ///< How many of its tasks have no verdict.
    int running = 0;         ///< How many of its tasks have an attempt.
    std::uint32_t failed = 0;
    std::uint32_t skipped = 0;
    std::uint32_t stopped = 0;
  };
  std::vector<Group> groups_;
};

}  // namespace trainyard::schedule
