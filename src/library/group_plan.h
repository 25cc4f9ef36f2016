// A group of tasks as a plan for the scheduler, by the rules of a job file: ids, terms, and the
// check that this machine can run them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "job/learned.h"
#include "job/learned_notes.h"
#include "model/plan.h"
#include "model/resources.h"
#include "settings/configuration.h"
#include "trainyard/task.h"
#include "trainyard/task_group.h"

namespace trainyard::library {

/// The inputs of the plans of groups. All must outlive it.
struct GroupBasis {
  const settings::Configuration& configuration;
  const model::Capacity& capacity;
  const job::Learned& learned;
  job::LearnedFor here = {};
  /// Told what of the tasks is learned. May be missing.
  job::LearnedNotes* notes = nullptr;
};

/// Stands for the class of a task among learned estimates, as job::command_fingerprint() does for a
/// command.
std::int64_t class_fingerprint(const Task& task);

/// The name for users of the tasks that a group had at its run number `part`, from 1: "folds",
/// "folds (2)".
std::string part_name(const std::string& group, int part);

/// An error if ids of a group occur twice or are not valid. `tasks` are all of its tasks.
Result<void> check_ids(const std::vector<Task*>& tasks);

/// The plan of some tasks of a group, in their order, as its so-many-th part. An error says what is
/// wrong with the first that is wrong.
Result<model::Plan> plan_of(const TaskGroup& group, int part, const std::vector<Task*>& tasks,
                            const GroupBasis& basis);

}  // namespace trainyard::library
