// NVIDIA's multi-process service (MPS): whether its daemon runs for this user, so that programs
// share GPUs through it, and are kept to what a variable says.
//
// Reads files and /proc; any thread.
#pragma once

#include <string>

namespace trainyard::hardware {

/// Where its daemon keeps its pipes unless CUDA_MPS_PIPE_DIRECTORY says otherwise.
constexpr const char* kMpsDirectory = "/tmp/nvidia-mps";

/// Whether a daemon of our own user runs by the file that it has left there. One that has died is
/// none, nor is another program that has its number since. That of another user takes none of ours.
bool mps_runs(const std::string& directory);

}  // namespace trainyard::hardware
