#include "model/rank_environment.h"

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

std::vector<std::string> common_rank_environment(int ranks, int port) {
  std::vector<std::string> environment{"TRAINYARD_RANK",
                                       "RANK",
                                       "LOCAL_RANK",
                                       "OMPI_COMM_WORLD_RANK",
                                       "OMPI_COMM_WORLD_SIZE",
                                       "OMPI_COMM_WORLD_LOCAL_RANK",
                                       "PMIX_RANK",
                                       "PMI_RANK",
                                       "PMI_SIZE",
                                       "SLURM_PROCID",
                                       "SLURM_LOCALID"};
  environment.push_back(fmt::format("WORLD_SIZE={}", ranks));
  environment.push_back(fmt::format("LOCAL_WORLD_SIZE={}", ranks));
  environment.emplace_back("GROUP_RANK=0");
  environment.emplace_back("MASTER_ADDR=127.0.0.1");
  environment.push_back(port == 0 ? "MASTER_PORT" : fmt::format("MASTER_PORT={}", port));
  return environment;
}

std::vector<std::string> rank_environment(const RankPosition& position) {
  return {fmt::format("TRAINYARD_RANK={}", position.rank), fmt::format("RANK={}", position.rank),
          fmt::format("LOCAL_RANK={}", position.local_rank),
          fmt::format("WORLD_SIZE={}", position.ranks)};
}

int gpus_in(std::string_view visible_devices) {
  if (visible_devices.empty() || visible_devices == "-1") return 0;
  return 1 + static_cast<int>(std::ranges::count(visible_devices, ','));
}

}  // namespace trainyard::model
