// The GPUs of each rank of a task with several ranks. Any thread.
#pragma once

#include <string>
#include <vector>

#include "model/ids.h"

namespace trainyard::model {

/// As many processes as a task can be.
constexpr int kRanksMax = 4'096;

/// Those of the rank `rank` of `ranks`, which are at least 1: of more GPUs than ranks several, as
/// many for each; of fewer one, which it shares. Empty when there are none.
std::vector<GpuIndex> share_of_rank(int rank, int ranks, const std::vector<GpuIndex>& gpus);

/// As frameworks call them: "cuda:0,cuda:2".
std::string device_names(const std::vector<GpuIndex>& gpus);

}  // namespace trainyard::model
