// The matrix of a group whose tasks are matched with those of other groups: their cells, and in
// each of these what the group's own matrix adds.
#pragma once

#include <span>

#include "base/result.h"
#include "job/job_spec.h"
#include "job/matrix.h"

namespace trainyard::job {

/// `own` is what the group says itself; nullptr where it says none. A key that both have is
/// matched: its values are the group's own. Costs O(combinations that come out). An error names a
/// combination of its own without a counterpart, or says what is too much.
Result<Matrix> inherit(const Matrix* own, std::span<const Need> needs,
                       std::span<const GroupSpec> before);

}  // namespace trainyard::job
