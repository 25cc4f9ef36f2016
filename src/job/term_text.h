// The text forms of some terms of a task, to read and to print: its `if`, its retries, its early
// signal and its workers. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "model/plan.h"
#include "model/terms.h"

namespace trainyard::job {

/// Reads success(), failure() or always(), with or without the parentheses. An error names these.
Result<model::RunIf> parse_run_if(std::string_view text);

/// The number of retries: a whole number from 0 to 254.
Result<int> parse_retries(std::string_view text);

/// Words with commas between them, of which there is one: `time-limit`. Returns whether it is
/// there; the error names the word that is not known.
Result<bool> parse_retry_on(std::string_view text);

/// "2 after a failure or the time limit, the first after 30 s; 5 after out of memory". Empty
/// where nothing is said.
std::string to_text(const model::Retries& retries);

/// The signal that a task wants a while before any TERM, as people write it: "USR1@120".
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

/// The workers of `trainyard parallel`: `4`, or the number of each role, `collector=2,learner=1`.
struct Workers {
  int count = 0;
  std::vector<std::string> roles;  ///< One for each, in the order written; empty: they have none.

  friend bool operator==(const Workers&, const Workers&) = default;
};

/// At least one, and model::kWorkersMax together. The error says which role it is about.
Result<Workers> parse_workers(std::string_view text);

/// "2 of role collector, 1 of role learner", or "4".
std::string to_text(const Workers& workers);

}  // namespace trainyard::job
