// The price of sharing GPUs, as text for users.
#pragma once

#include <string>

#include "model/plan.h"

namespace trainyard::model {

/// "3 tasks per GPU do 1.7 times the work of 1 (measured on 9 tasks)", and where more gain nothing
/// "; at most 3 per GPU, as more gain nothing".
std::string sharing_text(const SharingMeasured& measured);

}  // namespace trainyard::model
