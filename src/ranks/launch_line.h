// The command of a launcher, and the environment of ranks. Pure; any thread.
#pragma once

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

}  // namespace trainyard::ranks
