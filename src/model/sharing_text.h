// What sharing GPUs costs, in the words that people read.
#pragma once

#include <string>

#include "model/plan.h"

namespace trainyard::model {

/// "3 to a GPU: 1.7 x one to a GPU, 9 tasks", and where more gain nothing "; no more than 3 to a
/// GPU, as more gain nothing".
std::string sharing_text(const SharingMeasured& measured);

}  // namespace trainyard::model
