// The signal that a task wants a while before any TERM, as people write it: "USR1@120".
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "base/time.h"
#include "model/plan.h"

namespace trainyard::job {

/// Reads "USR1@120", "SIGUSR2@2min" and "USR1", which is "USR1@60" (Slurm's sbatch --signal). The
/// time is from one second to a day. KILL and STOP, which nobody can catch, TERM, which comes
/// anyway, and numbers are errors.
Result<model::EarlySignal> parse_early_signal(std::string_view text);

/// Whether the signal comes after the start: always true if the limit is 0, which means no limit.
bool fits_into(Duration time_limit, const model::EarlySignal& signal);

/// The reason why the signal does not fit.
std::string too_early_text(Duration time_limit, const model::EarlySignal& signal);

/// "SIGUSR1, 2:00 before TERM".
std::string to_text(const model::EarlySignal& signal);

}  // namespace trainyard::job
