// The rank of a process, by the variables that its launcher has set.
//
// The variables are read in this order: TRAINYARD_RANK, RANK (torchrun), OMPI_COMM_WORLD_RANK (Open
// MPI), PMIX_RANK, PMI_RANK, SLURM_PROCID (if SLURM_NTASKS has more than one). An empty variable
// counts as missing. Pure; any thread.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "base/result.h"

namespace trainyard::ranks {

struct RankNumber {
  int rank = 0;
  int local_rank = 0;
  std::optional<int> ranks;  ///< As far as its environment has it.

  friend bool operator==(const RankNumber&, const RankNumber&) = default;
};

using Lookup = std::function<std::optional<std::string>(const char* name)>;

/// Rank 0 of 1 where nothing speaks of ranks. An error: something says that there are several, and
/// nothing which one this is; or a number is none.
Result<RankNumber> rank_number(const Lookup& environment);

/// An error: it is not one of `ranks`, or reports another number of ranks.
Result<void> check_rank(const RankNumber& number, int ranks);

}  // namespace trainyard::ranks
