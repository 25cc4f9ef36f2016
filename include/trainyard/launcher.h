// Who starts the processes of a group of ranks.
//
// A value. Whoever starts them, they connect back to their RankExecutor, and find the same in their
// environment: RANK, LOCAL_RANK, WORLD_SIZE, LOCAL_WORLD_SIZE, MASTER_ADDR, MASTER_PORT.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "trainyard/result.h"

namespace trainyard {

struct Launcher {
  /// The command that starts the ranks: {ranks} is their number, {port} is MASTER_PORT, and the
  /// item {command} is the command line of a rank. Empty: each rank is started on this machine by
  /// the executor itself.
  std::vector<std::string> arguments = {};

  static Launcher built_in() { return {}; }
  /// Open MPI; `more` goes before the command: {"--map-by", "socket"}.
  static Launcher mpirun(std::vector<std::string> more = {});
  /// PyTorch's, which restarts nothing here.
  static Launcher torchrun(std::vector<std::string> more = {});
  /// Slurm's, within an allocation or with one that it makes. All ranks must run on this machine,
  /// as they connect to a socket on it; the nodes may be several.
  static Launcher srun(std::vector<std::string> more = {});
  static Launcher command(std::vector<std::string> arguments) { return {std::move(arguments)}; }

  /// "built-in", "mpirun", "torchrun" or "srun". An error names the nearest.
  [[nodiscard]] static Result<Launcher> named(std::string_view name);

  /// "built-in", or the name of the program.
  [[nodiscard]] std::string name() const;
};

}  // namespace trainyard
