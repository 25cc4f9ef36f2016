// The text form of the workers of a task: `4`, or the number of each role, `collector=2,learner=1`.
// Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace trainyard::job {

/// The workers of `trainyard parallel`.
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
