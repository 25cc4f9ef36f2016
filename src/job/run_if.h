// The text of `if`: success(), failure() or always().
#pragma once

#include <string_view>

#include "base/result.h"
#include "model/terms.h"

namespace trainyard::job {

/// With or without the parentheses. An error names what there is.
Result<model::RunIf> parse_run_if(std::string_view text);

}  // namespace trainyard::job
