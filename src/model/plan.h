// What is to be run, as the scheduler sees it: groups, shapes and tasks, without names, commands
// and files. Made once from the job file and not changed afterwards. Small on purpose: a run of a
// million tasks holds a million PlannedTasks.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/time.h"
#include "model/ids.h"
#include "model/resources.h"

namespace trainyard {

struct PlannedGroup {
  std::string name;
  std::vector<GroupIndex> needs;  ///< Groups that must have ended without a failure. No cycles.
  int parallel_max = 0;           ///< How many of its tasks at once; 0 is no limit.
  bool fail_fast = false;         ///< The first failure ends the group.
};

/// The tasks of one group that ask for the same.
struct Shape {
  GroupIndex group;
  Request request;
  Duration time_limit{0};  ///< Of one attempt, waiting for a device left out; 0 is none.
  /// Loads first, says so, and waits for a device to train on. Else it trains from its start.
  bool two_phase = false;
};

struct PlannedTask {
  ShapeIndex shape;
  /// The number that its next attempt gets: 1, or more when a resumed run has tried it before.
  std::uint32_t first_attempt = 1;
  /// Ended well in an earlier execution of the run: counted, and not run again.
  bool finished_before = false;
};

struct Plan {
  std::vector<PlannedGroup> groups;
  std::vector<Shape> shapes;       ///< In the order in which the first task of each comes.
  std::vector<PlannedTask> tasks;  ///< In the order of the job file: group by group.
};

/// How the scheduler may use the machine. fedflow's keys, resolved to plain numbers.
struct Limits {
  double cpu_utilization_max = 0.8;     ///< utilization-limit.cpu, of use by others
  double memory_utilization_max = 1.0;  ///< utilization-limit.memory, of the whole
  Bytes memory_remain;                  ///< remain-limit.memory
  int processes_max = 0;                ///< scheduler.max-process; 0 is no limit
  int waiting_max = 0;                  ///< scheduler.max-waiting; 0 is no limit
  int load_retries = 3;                 ///< scheduler.load-nretry
  int train_retries = 3;                ///< scheduler.train-nretry
  /// Between TERM and KILL.
  Duration stop_grace{10'000};
  /// Once the oldest waiting task has been passed so often, or has waited so long since it was
  /// first passed, what it needs is reserved.
  int passes_max = 32;
  Duration passed_time_max{60'000};
};

}  // namespace trainyard
