// How long a run was expected to take when it began, beside how long it took. Pure.
#pragma once

#include <string>

#include "base/time.h"
#include "journal/reader.h"

namespace trainyard::report {

/// "3:32", "3:32, or 9:31 if tasks that share a GPU slow each other down".
std::string range_text(Duration free, Duration worst);

/// "expected 3:32; took 3:40"; without the second where the run has not ended or was interrupted.
/// Empty where nobody knew how long it would take.
std::string planned_time_text(const journal::ExecutionRow& execution);

}  // namespace trainyard::report
