// The groups of a run: which may run, which are over, and the cause when one cannot run.
//
// Blocked -> Running -> Finished, Failed, Skipped or Stopped; Blocked -> Skipped or Stopped; back
// to Blocked from each of these ends when a task of it starts over. A group leaves Running in the
// turn in which its last task gets its verdict, never later: groups that need it are checked in the
// same turn.
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
  model::TaskIndex task;              ///< The task that is tried first.
  std::optional<Instant> told_since;  ///< The start of its training, as last reported.
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

  /// The moment at which it is decided whether a group runs whose needs are not all fulfilled.
  enum class Patience : std::uint8_t {
    UntilOneFails,      ///< It is skipped as soon as one need can never be fulfilled.
    UntilAllHaveEnded,  ///< It runs then: some of its tasks run after a failure, too.
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
  /// A task that had ended starts over.
  void task_reopened(model::GroupIndex group, model::Verdict before);

  /// Checks the needs of a blocked group: Running when all of them have finished, Skipped when some
  /// never will, or Running all the same once the rest has ended, as the group's patience says;
  /// Blocked while that is open.
  struct Outlook {
    model::GroupPhase phase = model::GroupPhase::Blocked;
    std::string cause;  ///< The need that can never be fulfilled; empty: none.
  };
  [[nodiscard]] Outlook outlook(model::GroupIndex group) const;
  /// Whether some of its needs have ended without having finished. For a running group: when it
  /// began, even if some have started over since.
  [[nodiscard]] bool needs_a_bad_one(model::GroupIndex group) const;

  /// The phase of a group whose tasks have all ended: Skipped where some of them were, and none of
  /// them ran.
  [[nodiscard]] model::GroupPhase result(model::GroupIndex group) const;

  void enter(model::GroupIndex group, model::GroupPhase phase);
  /// A group that is over is blocked again, for tasks that start over.
  void reopen(model::GroupIndex group);

 private:
  struct Group {
    model::PlannedGroup planned;
    TaskRange members;
    model::GroupPhase phase = model::GroupPhase::Blocked;
    Counts tasks;
    Patience patience = Patience::UntilOneFails;
    bool began_after_failure = false;
    int running = 0;  ///< Number of its tasks that have an attempt.
  };
  /// Why groups that run after the success of this one never will; empty while they may.
  static std::string why_never(const Group& other);
  std::vector<Group> groups_;
};

}  // namespace trainyard::schedule
