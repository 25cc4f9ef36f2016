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
