// How much more memory a task reserves after it ran out of it: 20% more, or 50% more on a GPU.
#pragma once

#include "base/bytes.h"

namespace trainyard::model {

constexpr Bytes more_memory(Bytes had) { return had + Bytes{had.count / 5}; }
constexpr Bytes more_gpu_memory(Bytes had) { return had + Bytes{had.count / 2}; }

}  // namespace trainyard::model
