#include "trainyard/step_options.h"

#include "trainyard/context.h"

namespace trainyard {

bool Touch::overlaps(const Touch& other, const Context& context) const {
  if (!range_ || !other.range_) return !name_.empty() && name_ == other.name_;
  const Range mine = range_(context);
  const Range its = other.range_(context);
  return mine.first < its.first + its.size && its.first < mine.first + mine.size;
}

}  // namespace trainyard
