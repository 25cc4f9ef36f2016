// The text form of a retry policy, to read and to print.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "model/terms.h"

namespace trainyard::job {

/// The number of retries: a whole number from 0 to 254.
Result<int> parse_retries(std::string_view text);

/// Words with commas between them, of which there is one: `time-limit`. Returns whether it is
/// there; the error names the word that is not known.
Result<bool> parse_retry_on(std::string_view text);

/// "2 after a failure or the time limit, the first after 30 s; 5 after out of memory". Empty
/// where nothing is said.
std::string to_text(const model::Retries& retries);

}  // namespace trainyard::job
