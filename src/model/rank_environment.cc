#include "model/rank_environment.h"

#include <algorithm>

#include <fmt/format.h>

namespace trainyard::model {

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
