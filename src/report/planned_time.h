// The expected time of a run when it began, next to the time it took. Pure.
#pragma once

#include <string>

#include "base/time.h"
#include "journal/reader.h"

namespace trainyard::report {

/// "3m32s", "3m32s, or 9m31s if tasks that share a GPU slow each other down".
std::string range_text(Duration free, Duration worst);

/// "3m32s in total; took 3m40s"; without the second if the run has not ended or was interrupted.
/// Empty if no time was expected.
std::string planned_time_text(const journal::ExecutionRow& execution);

}  // namespace trainyard::report
