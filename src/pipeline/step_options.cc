#include "trainyard/step_options.h"

namespace trainyard::detail {

bool Touched::overlaps(const Touched& other, const Context& context) const {
  if (!member || !other.member) {
    return !member && !other.member && !resource.empty() && resource == other.resource;
  }
  const Range mine = member(context);
  const Range its = other.member(context);
  return mine.first < its.first + its.size && its.first < mine.first + mine.size;
}

}  // namespace trainyard::detail
