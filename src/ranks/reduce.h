// The same buffer of several ranks made one: element by element, their sum or their mean.
// No state; any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "trainyard/buffer.h"
#include "trainyard/shareable.h"

namespace trainyard::ranks {

enum class Reduction : std::uint8_t { Sum, Mean };

/// Every buffer of the first, reduced with those of the same name of the others, in memory from
/// `alloc`. An error: one has it not, or with another type or shape, or of a type that cannot be.
Result<Shareable> reduce(const std::vector<Shareable>& replies, Reduction reduction,
                         const std::function<Result<Buffer>(DType, Dimensions)>& alloc);

}  // namespace trainyard::ranks
