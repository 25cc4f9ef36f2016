// What a batch system says that it has given, as whatever stands in its place may have written it.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "base/time.h"
#include "run/allocation.h"

using trainyard::check;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto granted = trainyard::run::granted_nodes(text);
  if (!granted) return 0;
  check(!granted->left || *granted->left >= trainyard::Duration{0}, "no time is below zero");
  check(!granted->nodes.empty() && granted->nodes.size() <= trainyard::run::kNodesMax,
        "some nodes");
  check(std::ranges::adjacent_find(granted->nodes, std::ranges::greater_equal{}) ==
            granted->nodes.end(),
        "each once, in order");
  for (const auto& node : granted->nodes) check(!node.starts_with('-'), "no option");
  return 0;
}
