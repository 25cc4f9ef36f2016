// How the parts of the program name things to each other: small dense numbers, given out in the
// order of the job file and stable for one execution of the program. People see ids and names
// (model/plan.h says which number has which name).
#pragma once

#include <compare>
#include <cstdint>

namespace trainyard::model {

/// A task among all tasks of the run.
struct TaskIndex {
  std::uint32_t value = 0;
  friend auto operator<=>(TaskIndex, TaskIndex) = default;
};

/// A group among the groups of the run, in the order of the job file.
struct GroupIndex {
  std::uint32_t value = 0;
  friend auto operator<=>(GroupIndex, GroupIndex) = default;
};

/// A kind of request among those of the run: the tasks of one group that ask for the same.
struct ShapeIndex {
  std::uint32_t value = 0;
  friend auto operator<=>(ShapeIndex, ShapeIndex) = default;
};

/// A machine among those of the run, in the order in which they first joined. One that comes back
/// has the number that it had.
struct MachineIndex {
  std::uint32_t value = 0;
  friend auto operator<=>(MachineIndex, MachineIndex) = default;
};

/// A GPU among those of its machine that tasks may have, in the order of Capacity::gpus.
struct GpuIndex {
  std::uint32_t value = 0;
  friend auto operator<=>(GpuIndex, GpuIndex) = default;
};

/// A GPU among those of all machines of the run.
struct GpuPlace {
  MachineIndex machine;
  GpuIndex gpu;
  friend auto operator<=>(GpuPlace, GpuPlace) = default;
};

/// One try at a task. Attempts are numbered from 1, over all executions of a resumed run.
struct AttemptKey {
  TaskIndex task;
  std::uint32_t attempt = 1;
  friend auto operator<=>(AttemptKey, AttemptKey) = default;
};

}  // namespace trainyard::model
