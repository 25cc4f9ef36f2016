#include "model/task_seed.h"

#include "base/fingerprint.h"

namespace trainyard::model {

std::uint32_t task_seed(std::string_view group, std::string_view id, std::uint32_t attempt) {
  Fingerprint print;
  print.add(group);
  print.add(id);
  print.add(std::int64_t{attempt});
  // FNV leaves what comes last in the low bits, and generators look at all of them.
  std::uint64_t mixed = print.value();
  mixed = (mixed ^ (mixed >> 33U)) * 0xff51afd7ed558ccdU;
  return static_cast<std::uint32_t>(mixed >> 32U);
}

}  // namespace trainyard::model
