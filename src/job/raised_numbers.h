// Numbers of a job file that earlier runs have proved too small: for a run they are what tasks of
// their kind took. Pure.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "job/learned.h"
#include "job/task_terms.h"
#include "job/written_and_taken.h"
#include "model/ids.h"
#include "model/plan.h"
#include "model/terms.h"

namespace trainyard::job {

class RaisedNumbers {
 public:
  /// What a task of a shape took the last time; 0 where nothing is known of it.
  void see(model::ShapeIndex shape, const LearnedTask& taken);

  /// Raises what is written of memory to what the tasks of the shape took: the 95th percentile of
  /// their peaks and no margin, as in a run, to three digits. A hard limit stays, what is learned
  /// is not written, and of a GPU nothing counts that none has here. Returns which were raised.
  LearnedUse raise(model::ShapeIndex shape, model::Terms& terms, const TermsBasis& basis) const;

  struct OfGroup {
    const std::string& name;
    std::size_t first = 0;  ///< Its first shape: those that come after it are its own, too.
    TermsBasis basis;
  };
  /// The same of the shapes of a group. Adds what was raised to
  /// what is used of each, and tells of it.
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
