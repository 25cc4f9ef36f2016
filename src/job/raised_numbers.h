// The numbers of a job file, compared with the measurements of earlier runs: notes on numbers that
// differ, and the use of tasks in the place of numbers that were too small. Pure.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/time.h"
#include "job/learned.h"
#include "job/task_terms.h"
#include "model/ids.h"
#include "model/plan.h"
#include "model/terms.h"

namespace trainyard::job {

/// The differences between the needs in a job file and the measurements of its tasks. Pure.
class WrittenAndTaken {
 public:
  /// Maximum number of notes for each group.
  static constexpr std::size_t kNotesMax = 3;

  /// Compares the number in the job file with the measured use of a task; `taken` is 0 if it was
  /// not measured.
  void see(const std::string& group, const std::string& key, Bytes written, Bytes taken);

  /// A duration in the job file that does not count in this run, and the measured one of a task.
  void see(const std::string& group, Duration written, Duration measured);

  /// The amount in the job file does not count in this run: `reserved` does, for a kind of its
  /// tasks.
  void raised(const std::string& group, const std::string& key, Bytes written, Bytes reserved);

  /// For people, one line for each number in the file: if its tasks took more, or less than three
  /// quarters, and for each such duration.
  [[nodiscard]] std::vector<std::string> notes() const;

 private:
  struct Seen {
    Bytes most;
    Bytes reserved_least;  ///< 0: the amount in the file is reserved.
    Bytes reserved_most;
  };
  struct Measured {
    Duration least{0};
    Duration most{0};
  };
  std::map<std::tuple<std::string, std::string, Bytes>, Seen> seen_;  ///< By the amount in the
                                                                      ///< file.
  std::map<std::pair<std::string, Duration>, Measured> durations_;    ///< The same.
};

/// Numbers of a job file that earlier runs have proved too small: in a run, the use of tasks of the
/// same kind replaces them.
class RaisedNumbers {
 public:
  /// The last measurement of a task of a shape; 0 where nothing is known.
  void see(model::ShapeIndex shape, const LearnedTask& taken);

  /// Raises the memory in the job file to the use of the tasks of the shape: the 95th percentile of
  /// their peaks without a margin, as in a run, to three digits. A hard limit stays, and so does a
  /// learned amount. An amount of GPU memory that no GPU here has does not count. Returns the
  /// numbers that were raised.
  LearnedUse raise(model::ShapeIndex shape, model::Terms& terms, const TermsBasis& basis) const;

  struct OfGroup {
    const std::string& name;
    std::size_t first = 0;  ///< Its first shape; all later ones belong to it, too.
    TermsBasis basis;
  };
  /// The same for the shapes of a group. Adds the raised numbers to the uses, and reports them.
  void raise_all(const OfGroup& of, std::vector<model::Shape>& shapes,
                 std::vector<LearnedUse>& uses, WrittenAndTaken& told) const;

 private:
  struct Taken {
    std::vector<Bytes> memory;
    std::vector<Bytes> gpu_memory;
  };
  std::map<model::ShapeIndex, Taken> taken_;
};

}  // namespace trainyard::job
