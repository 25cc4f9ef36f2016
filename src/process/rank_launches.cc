#include "process/rank_launches.h"

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <ranges>
#include <string>
#include <utility>

#include "model/ids.h"
#include "model/rank_environment.h"

namespace trainyard::process {
namespace {

void add(std::vector<std::string>& environment, std::vector<std::string> more) {
  environment.insert(environment.end(), std::make_move_iterator(more.begin()),
                     std::make_move_iterator(more.end()));
}

}  // namespace

std::vector<model::Launch> launches_of(model::Launch launch, int port) {
  std::vector<model::Launch> launches;
  const std::optional<model::OwnRanks> ranks = std::exchange(launch.own_ranks, std::nullopt);
  if (!ranks) {
    launches.push_back(std::move(launch));
    return launches;
  }
  const model::OwnRanks& own = *ranks;
  std::vector<model::GpuIndex> gpus;
  for (const int gpu : std::views::iota(0, own.gpus))
    gpus.push_back({static_cast<std::uint32_t>(gpu)});
  add(launch.environment, model::common_rank_environment(launch.ranks, port));
  for (int rank = 0; rank < launch.ranks; ++rank) {
    model::Launch& one = launches.emplace_back(launch);
    add(one.environment,
        model::rank_environment({.rank = rank, .local_rank = rank, .ranks = launch.ranks}));
    const std::string device = model::device_names(model::share_of_rank(rank, launch.ranks, gpus));
    one.environment.push_back(device.empty() ? "TRAINYARD_DEVICE" : "TRAINYARD_DEVICE=" + device);
    if (rank == 0) continue;
    one.result_path.clear();
    one.result_copy_path.clear();
    one.memory_group.clear();
    one.stdout_path = one.stderr_path = own.log_paths.at(static_cast<std::size_t>(rank) - 1);
  }
  return launches;
}

}  // namespace trainyard::process
