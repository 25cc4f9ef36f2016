// Which program this is, for starting it again as something else.
#pragma once

#include <string>

#include "base/result.h"

namespace trainyard {

/// The path of the program that runs.
Result<std::string> own_program();

}  // namespace trainyard
