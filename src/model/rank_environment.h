// The environment of ranks: the number of each, the number of all, where they meet, and the GPUs of
// each. Pure; any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "model/ids.h"

namespace trainyard::model {

/// As many processes as a task can be.
constexpr int kRanksMax = 4'096;

/// The GPUs of the rank `rank` of `ranks`, which are at least 1: of more GPUs than ranks several, as
/// many for each; of fewer one, which it shares. Empty when there are none.
std::vector<GpuIndex> share_of_rank(int rank, int ranks, const std::vector<GpuIndex>& gpus);

/// As frameworks call them: "cuda:0,cuda:2".
std::string device_names(const std::vector<GpuIndex>& gpus);

/// The position of a process among the ranks.
struct RankPosition {
  int rank = 0;
  int local_rank = 0;  ///< Among those of its machine.
  int ranks = 1;
};

/// The variables that all ranks of an attempt, and a launcher that starts them, have in common, as
/// NAME=value. A name alone is to be taken out: the numbers of ranks that whoever starts them has
/// himself. They meet at `port`; 0: there is no MASTER_PORT.
std::vector<std::string> common_rank_environment(int ranks, int port);

/// By which a rank finds itself, and PyTorch and others do, as NAME=value.
std::vector<std::string> rank_environment(const RankPosition& position);

/// How many GPUs a list names that CUDA_VISIBLE_DEVICES has ("0,2", "GPU-8a5f,GPU-11d3"); none when
/// it is empty, or "-1".
int gpus_in(std::string_view visible_devices);

}  // namespace trainyard::model
