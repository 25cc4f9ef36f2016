// What earlier runs have taught of a job, beside what its file says and what would be reserved: for
// `trainyard learned`. Pure.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "job/job.h"
#include "job/learned.h"
#include "job/task_keys.h"
#include "model/ids.h"

namespace trainyard::job {

/// The keys whose numbers are learned.
constexpr std::array<TaskKey, 3> kLearnedKeys{TaskKey::Memory, TaskKey::GpuMemory,
                                              TaskKey::Duration};

/// A number of the tasks of a group for which it is said in one place of the file, or nowhere. Of a
/// memory in bytes, of a duration in milliseconds.
struct LearnedNumber {
  TaskKey key = TaskKey::Memory;
  std::optional<Job::SaidValue> said;
  std::size_t tasks = 0;            ///< How many it is of.
  std::int64_t taken_most = 0;      ///< 0: nobody saw it.
  bool at_least = false;            ///< One of them may have taken more than was seen.
  std::int64_t reserved_least = 0;  ///< What would be reserved, or is expected.
  std::int64_t reserved_most = 0;
  /// What the runs say that it should be: the most of a memory, the mean of a duration. Of memory
  /// only what was measured with the command of now.
  std::int64_t should_be = 0;
  LearnedFrom from;            ///< The last of them.
  bool hard = false;           ///< It is a limit, too.
  bool asked = false;          ///< A number of GPUs' memory that is asked for at all.
  bool other_command = false;  ///< A memory that another command than that of now took.
};

/// A task of which something is known.
struct LearnedCell {
  std::string id;
  Learned::Taken taken;
  std::int64_t memory = 0;      ///< What would be reserved.
  std::int64_t gpu_memory = 0;  ///< The same on each GPU; 0: none, or all of it.
  std::int64_t duration = 0;    ///< What is expected; 0: nothing.
};

struct LearnedGroup {
  std::string name;
  std::size_t tasks = 0;
  std::vector<LearnedNumber> numbers;
  std::vector<LearnedCell> cells;  ///< In the order of the job file.
  /// Not all of them would get the same, or some took a fourth more than others.
  [[nodiscard]] bool cells_differ() const;
};

struct LearnedView {
  std::vector<LearnedGroup> groups;  ///< Of which something is known, in the order of the file.
  /// What is known of that the file has no more: groups, and how many tasks of each.
  std::vector<std::pair<std::string, std::size_t>> gone;
  std::size_t tasks = 0;  ///< How many are known, those among them.
};

/// `learned` is what is kept for the job, which was loaded with it.
LearnedView view_learned(const Job& job, Learned learned);

}  // namespace trainyard::job
