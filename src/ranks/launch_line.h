// The command of a launcher, the environment of ranks, and the rank that a process finds there.
// Pure; any thread.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/launch.h"
#include "trainyard/launcher.h"

namespace trainyard::ranks {

/// The program of a rank.
struct RankCommand {
  std::vector<std::string> line;  ///< Empty: this program.
  /// Modules for a rank in Python that no other launcher starts: the rank is a fork of a process
  /// that has imported them.
  model::Preload preload;
};

struct RankPlan {
  int ranks = 1;
  int port = 0;                      ///< MASTER_PORT
  std::vector<std::string> command;  ///< Command of each rank.
};

/// The command line of the launcher, which must not be the built-in one. An error: it does not say
/// where the command goes.
Result<std::vector<std::string>> launch_line(const Launcher& launcher, const RankPlan& plan);

/// Descent from the launcher means nothing where others start the processes.
bool starts_descendants(const Launcher& launcher);

/// The rank of a process, by the variables that its launcher has set.
///
/// The variables are read in this order: TRAINYARD_RANK, RANK (torchrun), OMPI_COMM_WORLD_RANK (Open
/// MPI), PMIX_RANK, PMI_RANK, SLURM_PROCID (if SLURM_NTASKS has more than one). An empty variable
/// counts as missing.
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
