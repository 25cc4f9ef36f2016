// How a task is kept to what it may take of a GPU that it shares: the variables that its framework
// understands, where it is one of which that is known.
//
// A framework counts what its allocator has. What it has beside that (the context of CUDA, the
// buffers of NCCL) is left out of what it is told; the reservation holds both.
//
// Reads the files beside the command's Python (hardware/python_packages.h), and runs nothing.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "job/task_environment.h"
#include "model/terms.h"

namespace trainyard::job {

/// What of a GPU a framework does not count for each of its processes.
constexpr Bytes kUncountedAlone = mb(500);
constexpr Bytes kUncountedOfRank = mb(800);  ///< With the buffers of collective operations.

/// What a task is started with, as far as it says how it can be capped.
struct CapBasis {
  /// The first word of its command; empty: a shell makes of it what nobody knows before.
  std::string program;
  std::string working_directory;  ///< Absolute.
  /// What it finds, with what decides which Python it is (PATH, HOME, PYTHONPATH, PYTHONNOUSERSITE)
  /// and what caps it already (below).
  Variables environment;
  bool mps = false;  ///< Its user's MPS daemon runs.
};

constexpr std::string_view kTorchConf = "PYTORCH_CUDA_ALLOC_CONF";
constexpr std::string_view kTorchConfNew = "PYTORCH_ALLOC_CONF";
constexpr std::string_view kJaxFraction = "XLA_CLIENT_MEM_FRACTION";
constexpr std::string_view kJaxFractionOld = "XLA_PYTHON_CLIENT_MEM_FRACTION";
constexpr std::string_view kJaxAllocator = "XLA_PYTHON_CLIENT_ALLOCATOR";
constexpr std::string_view kMpsLimit = "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT";

/// What understands a cap there.
struct Capper {
  enum class Kind { Torch, Jax, Mps };
  Kind kind = Kind::Torch;
  std::string_view variable;  ///< By which it is told.
  std::string before;         ///< What its user says there, which is kept.
  std::string name;           ///< For people: "torch 2.10.0".
};

struct Cappers {
  std::vector<Capper> found;
  std::string why_not;  ///< For people, where there are none.
};

/// The ways to cap the memory of a task on an NVIDIA GPU.
Cappers find_cappers(const CapBasis& basis);

/// How much one may take, of which the variables are made.
struct CapAmount {
  Bytes most;          ///< Of each of its GPUs, all its processes together.
  int sharing = 1;     ///< How many of its own processes share a GPU.
  bool ranks = false;  ///< They are ranks of a group.
  /// What its GPU has; of several the least, so that nobody has less than was promised.
  Bytes total;
  int gpus_of_machine = 1;
};

/// The variables that tell it; all of `cappers`. Of one that is only looked at, how much that is
/// has yet to be chosen.
Variables cap_variables(const Cappers& cappers, const std::optional<CapAmount>& amount);

/// Whether one may be told at its start what it may take: it shares its GPUs, and nobody has said
/// that it may take anything. One of two phases is told when it gets its device.
bool is_capped_at_start(const model::Terms& terms);

/// "torch 2.10.0, MPS"; empty where there are none.
std::string to_text(const Cappers& cappers);

}  // namespace trainyard::job
