// Learned estimates of a job next to the values in its file and the amounts that would be reserved:
// for `trainyard learned`. Pure.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/time.h"
#include "job/job.h"
#include "job/learned.h"
#include "job/task_keys.h"
#include "model/ids.h"

namespace trainyard::job {

/// The keys whose numbers are learned.
constexpr std::array<TaskKey, 3> kLearnedKeys{TaskKey::Memory, TaskKey::GpuMemory,
                                              TaskKey::Duration};

/// A number of the tasks of a group that share one place in the file, or that have none. Memory in
/// bytes, durations in milliseconds.
struct LearnedNumber {
  TaskKey key = TaskKey::Memory;
  std::optional<Job::SaidValue> said;
  std::size_t tasks = 0;            ///< The number of tasks that it applies to.
  std::int64_t taken_most = 0;      ///< 0: not measured.
  bool at_least = false;            ///< A task may have taken more than was seen.
  std::int64_t reserved_least = 0;  ///< The amount that would be reserved, or is expected.
  std::int64_t reserved_most = 0;
  /// The value that the runs suggest: the maximum for memory, the mean for a duration. For memory,
  /// only measurements with the current command count.
  std::int64_t should_be = 0;
  LearnedFrom from;            ///< The last of them.
  bool hard = false;           ///< It is a limit, too.
  bool asked = false;          ///< For GPU memory: it is requested at all.
  bool other_command = false;  ///< A memory that another command than that of now took.
  /// The value to put into the job file: "2.2GB", "at least 6.6GB", "95s". Empty if the present one
  /// is within 10 % of it, or comes from the matrix. A number is only raised if it is a hard limit,
  /// or if the learned one is uncertain: a peak of a single process, or from another GPU model. An
  /// uncertain one replaces `auto`, or a missing value, as "at least".
  std::string suggested;
};

/// A task of which something is known.
struct LearnedCell {
  std::string id;
  Learned::Taken taken;
  std::int64_t memory = 0;      ///< The amount that would be reserved.
  std::int64_t gpu_memory = 0;  ///< The same on each GPU; 0: none, or all of it.
  std::int64_t duration = 0;    ///< The expected duration; 0: none.
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
  std::vector<LearnedGroup> groups;  ///< The groups with learned estimates, in the order of the
                                     ///< file.
  /// Known tasks that the file no longer has: their group, and their number.
  std::vector<std::pair<std::string, std::size_t>> gone;
  std::size_t tasks = 0;  ///< The number of known tasks, including those.
};

/// `learned` are the estimates of the job, which was loaded with them.
LearnedView view_learned(const Job& job, Learned learned);

/// The form that a person would write: three digits, rounded up; "1.14GB", "3.6s", "90s", "2h30m".
std::string size_to_write(Bytes size);
std::string time_to_write(Duration time);

}  // namespace trainyard::job
