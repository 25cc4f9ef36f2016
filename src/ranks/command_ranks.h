// A command run as several ranks: the body of `trainyard ranks`, by hand, and for a task whose
// ranks are started by another launcher.
//
// The command knows nothing of trainyard: it finds RANK, LOCAL_RANK, WORLD_SIZE, LOCAL_WORLD_SIZE,
// MASTER_ADDR and MASTER_PORT in its environment, and TRAINYARD_DEVICE where there are GPUs, unless
// the yard tells it which it has (two phases). When one rank fails, the others are killed. Rank 0
// writes where we write, the others to rank-1.log ...
//
// It is a keeper with one attempt (process/keeper.h): however this program ends, nothing that the
// ranks have started is left. For the main thread of a program that does nothing else: it takes
// over signals.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "trainyard/launcher.h"

namespace trainyard::ranks {

struct CommandRanks {
  int ranks = 1;
  Launcher launcher;
  std::vector<std::string> command;
  std::string log_directory;  ///< Absolute; made when it is not there.
  std::uint32_t attempt = 1;  ///< Of the logs: rank-1.log, and rank-1.2.log of the second.
  std::string self;           ///< This program: with the word "rank", it becomes one (become_rank).
  Duration grace{10'000};     ///< Between TERM and KILL.
  /// Notes for the user, a line each.
  std::function<void(std::string_view)> say;
};

/// Returns when all ranks have ended and nothing of them is left: 0, or the code of the first that
/// failed (128 and the signal for one that was killed). On SIGTERM, SIGINT and SIGHUP they get
/// TERM, and KILL after the grace or with the next of these. An error: they could not be started.
Result<int> run_ranks(const CommandRanks& ranks);

/// The variable that run_ranks() sets for the program below.
inline constexpr const char* kRanksVariable = "TRAINYARD_RANKS";

/// The program that another launcher starts for each rank: finds out its rank, sees to its output,
/// and becomes the command. Returns only when it cannot, with the reason.
Error become_rank(const std::vector<std::string>& command);

/// The attempt at a task of a yard to which this process belongs; 1 if to none.
std::uint32_t own_attempt();

}  // namespace trainyard::ranks
