// A command run as several ranks: what `trainyard ranks` does, by hand or for a task of a job file.
//
// The command knows nothing of trainyard: it finds RANK, LOCAL_RANK, WORLD_SIZE, LOCAL_WORLD_SIZE,
// MASTER_ADDR and MASTER_PORT in its environment, and TRAINYARD_DEVICE where there are GPUs, unless
// the yard tells it which it has (two phases). When one rank fails the others are ended. Rank 0
// writes where we write, the others to rank-1.log ...
//
// For the main thread of a program that does nothing else: it takes over signals, and is the
// subreaper of all that the ranks start.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "trainyard/launcher.h"

namespace trainyard {

struct CommandRanks {
  int ranks = 1;
  Launcher launcher;
  std::vector<std::string> command;
  std::string log_directory;  ///< Absolute; made when it is not there.
  std::string self;           ///< This program: with the word "rank", it becomes one (become_rank).
  Duration grace{10'000};     ///< Between TERM and KILL.
  /// What is worth knowing, a line each.
  std::function<void(std::string_view)> say;
};

/// Returns when all ranks have ended and nothing of them is left: 0, or the code of the first that
/// failed (128 and the signal for one that was killed). SIGTERM and SIGINT are passed on. An error:
/// they could not be started.
Result<int> run_ranks(const CommandRanks& ranks);

/// What a launcher that others wrote starts for each rank: finds out which one it is, sees to its
/// output, and becomes the command. Returns only when it cannot, with the reason.
Error become_rank(const std::vector<std::string>& command);

}  // namespace trainyard
