// NVIDIA's multi-process service (MPS): whether its daemon runs for this user, so that programs
// share GPUs through it, and are kept to what a variable says.
//
// Reads files and /proc; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace trainyard::hardware {

/// Where its daemon keeps its pipes unless this variable says otherwise.
constexpr const char* kMpsDirectory = "/tmp/nvidia-mps";
constexpr const char* kMpsPipes = "CUDA_MPS_PIPE_DIRECTORY";

/// A daemon, through which programs that begin while it runs share GPUs until they end.
struct MpsService {
  std::string directory;    ///< Where its pipes are.
  std::int64_t daemon = 0;  ///< Its process.
};

/// The running MPS daemon of this user, by the pid file in its directory. Nothing if that daemon
/// has died, also if another program has its process number now. The daemon of another user does
/// not count: it accepts no programs of this user. A pipe in the place of the file is not waited
/// for.
std::optional<MpsService> find_mps(const std::string& directory);

/// It has died, or another one has taken its place.
bool is_gone(const MpsService& service);

}  // namespace trainyard::hardware
