// The matrix of a group whose tasks are matched with those of other groups: their cells, and in
// each of these the values that the group's own matrix adds.
#pragma once

#include <span>

#include "base/result.h"
#include "job/job_spec.h"
#include "job/matrix.h"

namespace trainyard::job {

/// `own` is the group's own matrix; nullptr if it has none. A key that both have is matched: its
/// values are the group's own. Costs O(combinations of the result). An error names a combination of
/// `own` without a counterpart, or the limit that is exceeded.
Result<Matrix> inherit(const Matrix* own, std::span<const Need> needs,
                       std::span<const GroupSpec> before);

}  // namespace trainyard::job
