// How long a run was expected to take when it began, beside how long it took. Pure.
#pragma once

#include <string>

#include "base/time.h"
#include "journal/reader.h"

namespace trainyard::report {

/// "3m32s", "3m32s, or 9m31s if tasks that share a GPU slow each other down".
std::string range_text(Duration free, Duration worst);

/// "expected 3m32s; took 3m40s"; without the second where the run has not ended or was interrupted.
/// Empty where nobody knew how long it would take.
std::string planned_time_text(const journal::ExecutionRow& execution);

}  // namespace trainyard::report
