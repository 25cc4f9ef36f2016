#include "model/rank_share.h"

#include <algorithm>
#include <cstddef>

#include <fmt/format.h>

namespace trainyard::model {

std::vector<GpuIndex> share_of_rank(int rank, int ranks, const std::vector<GpuIndex>& gpus) {
  if (gpus.empty()) return {};
  const std::size_t each = std::max<std::size_t>(gpus.size() / static_cast<std::size_t>(ranks), 1);
  std::vector<GpuIndex> share;
  share.reserve(each);
  for (std::size_t i = 0; i < each; ++i) {
    share.push_back(gpus[((static_cast<std::size_t>(rank) * each) + i) % gpus.size()]);
  }
  return share;
}

std::string device_names(const std::vector<GpuIndex>& gpus) {
  std::string names;
  for (const GpuIndex gpu : gpus) {
    names += fmt::format("{}cuda:{}", names.empty() ? "" : ",", gpu.value);
  }
  return names;
}

}  // namespace trainyard::model
