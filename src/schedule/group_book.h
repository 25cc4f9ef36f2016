// The groups of a run: which may run, which are over, and who is to blame when one cannot run.
//
// Blocked -> Running -> Finished, Failed, Skipped or Stopped; Blocked -> Skipped or Stopped; back
// to Blocked from each of these ends where a task of it begins anew. A group leaves
// Running in the turn in which its last task gets its verdict, never later: what needs it is looked
// at in the same turn.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/time.h"
#include "model/command.h"
#include "model/ids.h"
#include "model/plan.h"
#include "model/status.h"

namespace trainyard::schedule {

/// The first task, and one past the last.
using TaskRange = std::pair<model::TaskIndex, model::TaskIndex>;

/// A group that begins with one of its tasks.
struct Trial {
  model::TaskIndex task;              ///< That one.
  std::optional<Instant> told_since;  ///< Since when it trains, as was last said.
};

class GroupBook {
 public:
  /// The number of tasks of each outcome.
  struct Counts {
    std::uint32_t open = 0;  ///< Without a verdict.
    std::uint32_t finished = 0;
    std::uint32_t failed = 0;
    std::uint32_t skipped = 0;
    std::uint32_t stopped = 0;

    void count(model::Verdict verdict, int by);
  };

  /// When it is known whether a group runs whose needs are not all fulfilled.
  enum class Patience : std::uint8_t {
    UntilOneFails,      ///< It is skipped as soon as one of them never will be.
    UntilAllHaveEnded,  ///< It runs then: some of its tasks do so after a failure, too.
  };

  /// Adds a group, whose needs and members are numbered over the whole run.
  void add(model::PlannedGroup group, TaskRange members, const Counts& tasks, Patience patience);

  [[nodiscard]] std::uint32_t size() const { return static_cast<std::uint32_t>(groups_.size()); }
  [[nodiscard]] const model::PlannedGroup& planned(model::GroupIndex group) const {
    return groups_[group.value].planned;
  }
  [[nodiscard]] TaskRange members(model::GroupIndex group) const {
    return groups_[group.value].members;
  }
  [[nodiscard]] model::GroupPhase phase(model::GroupIndex group) const {
    return groups_[group.value].phase;
  }
  [[nodiscard]] std::uint32_t open(model::GroupIndex group) const {
    return groups_[group.value].tasks.open;
  }
  /// Whether max-parallel lets another of its tasks start.
  [[nodiscard]] bool has_room(model::GroupIndex group) const;

  void task_started(model::GroupIndex group) { ++groups_[group.value].running; }
  void task_stopped(model::GroupIndex group) { --groups_[group.value].running; }
  void task_concluded(model::GroupIndex group, model::Verdict verdict);
  /// One that had ended begins anew.
  void task_reopened(model::GroupIndex group, model::Verdict before);

  /// Looks at what a blocked group needs: Running when all of it has finished, Skipped when some of
  /// it never will, or Running all the same once the rest has ended, as the group's patience says;
  /// Blocked while that is open.
  struct Outlook {
    model::GroupPhase phase = model::GroupPhase::Blocked;
    std::string cause;  ///< The need that never will be fulfilled; empty where each may be, or is.
  };
  [[nodiscard]] Outlook outlook(model::GroupIndex group) const;
  /// Whether some of what it needs has ended without having finished. Of one that runs: when it
  /// began, whatever has begun anew of that since.
  [[nodiscard]] bool needs_a_bad_one(model::GroupIndex group) const;

  /// The phase of a group whose tasks have all ended: Skipped where some of them were, and none of
  /// them ran.
  [[nodiscard]] model::GroupPhase result(model::GroupIndex group) const;

  void enter(model::GroupIndex group, model::GroupPhase phase);
  /// One that is over is blocked again, for tasks that begin anew.
  void reopen(model::GroupIndex group);

 private:
  struct Group {
    model::PlannedGroup planned;
    TaskRange members;
    model::GroupPhase phase = model::GroupPhase::Blocked;
    Counts tasks;
    Patience patience = Patience::UntilOneFails;
    bool began_after_failure = false;
    int running = 0;  ///< How many of its tasks have an attempt.
  };
  /// Why what needs this one never will run after its success; empty while it may.
  static std::string why_never(const Group& other);
  std::vector<Group> groups_;
};

}  // namespace trainyard::schedule
