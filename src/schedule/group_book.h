// The groups of a run: which may run, which are over, and who is to blame when one cannot run.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/command.h"
#include "model/ids.h"
#include "model/plan.h"
#include "model/status.h"

namespace trainyard {

class GroupBook {
 public:
  /// `open_tasks` is how many of each group are still to be run.
  GroupBook(std::vector<PlannedGroup> groups, const std::vector<std::uint32_t>& open_tasks);

  [[nodiscard]] std::uint32_t size() const { return static_cast<std::uint32_t>(groups_.size()); }
  [[nodiscard]] const PlannedGroup& planned(GroupIndex group) const {
    return groups_[group.value].planned;
  }
  [[nodiscard]] GroupPhase phase(GroupIndex group) const { return groups_[group.value].phase; }
  [[nodiscard]] std::uint32_t open(GroupIndex group) const { return groups_[group.value].open; }
  /// Whether max-parallel lets another of its tasks start.
  [[nodiscard]] bool has_room(GroupIndex group) const;

  void task_started(GroupIndex group) { ++groups_[group.value].running; }
  void task_stopped(GroupIndex group) { --groups_[group.value].running; }
  void task_concluded(GroupIndex group, Verdict verdict);

  /// Looks at what a blocked group needs: Running when all of it has finished, Skipped (with the
  /// cause) when some of it never will, Blocked while that is open.
  struct Outlook {
    GroupPhase phase = GroupPhase::Blocked;
    std::string cause;
  };
  [[nodiscard]] Outlook outlook(GroupIndex group) const;

  /// What a group whose tasks have all ended has become.
  [[nodiscard]] GroupPhase result(GroupIndex group) const;

  void enter(GroupIndex group, GroupPhase phase);

 private:
  struct Group {
    PlannedGroup planned;
    GroupPhase phase = GroupPhase::Blocked;
    std::uint32_t open = 0;
    int running = 0;
    std::uint32_t failed = 0;
    std::uint32_t skipped = 0;
    std::uint32_t stopped = 0;
  };
  std::vector<Group> groups_;
};

}  // namespace trainyard
