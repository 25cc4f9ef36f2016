// The way to cap a task's memory on a GPU that it shares: variables that its framework understands,
// if the framework is known.
//
// A framework counts the memory of its allocator. Its other memory (the context of CUDA, the
// buffers of NCCL) is left out of the number in the variables; the reservation includes both.
//
// Reads the files next to the command's Python (hardware/python_packages.h), and runs nothing.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "job/task_environment.h"
#include "model/terms.h"

namespace trainyard::job {

/// GPU memory of each process that a framework does not count.
constexpr Bytes kUncountedAlone = mb(500);
constexpr Bytes kUncountedOfRank = mb(800);  ///< With the buffers of collective operations.

/// The part of a task's start that says how it can be capped.
struct CapBasis {
  /// The first word of its command; empty: it is only known once a shell has read the command.
  std::string program;
  std::string working_directory;  ///< Absolute.
  /// The variables that the task finds, with those that decide its Python (PATH, HOME, PYTHONPATH,
  /// PYTHONNOUSERSITE) and those that cap it already (below).
  Variables environment;
  bool mps = false;  ///< Its user's MPS daemon runs.
};

constexpr std::string_view kTorchConf = "PYTORCH_CUDA_ALLOC_CONF";
constexpr std::string_view kTorchConfNew = "PYTORCH_ALLOC_CONF";
constexpr std::string_view kJaxFraction = "XLA_CLIENT_MEM_FRACTION";
constexpr std::string_view kJaxFractionOld = "XLA_PYTHON_CLIENT_MEM_FRACTION";
constexpr std::string_view kJaxAllocator = "XLA_PYTHON_CLIENT_ALLOCATOR";
constexpr std::string_view kMpsLimit = "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT";

/// A framework or daemon that understands a cap.
struct Capper {
  enum class Kind { Torch, Jax, Mps };
  Kind kind = Kind::Torch;
  std::string_view variable;  ///< The variable that sets the cap.
  std::string before;         ///< The user's own value of the variable, which is kept.
  std::string name;           ///< For people: "torch 2.10.0".
};

struct Cappers {
  std::vector<Capper> found;
  std::string why_not;  ///< For people, where there are none.
};

/// The ways to cap the memory of a task on an NVIDIA GPU.
Cappers find_cappers(const CapBasis& basis);

/// The amount of GPU memory that a task may use; the variables are made from it.
struct CapAmount {
  Bytes most;          ///< On each of its GPUs, for all its processes together.
  int sharing = 1;     ///< The number of its own processes that share a GPU.
  bool ranks = false;  ///< They are ranks of a group.
  /// The memory of its GPU; of several GPUs the smallest, so that no process gets less than was
  /// reserved.
  Bytes total;
  int gpus_of_machine = 1;
};

/// The variables that set the cap, for all of `cappers`. Without an amount, as for a task that is
/// only shown, their values are still to be chosen.
Variables cap_variables(const Cappers& cappers, const std::optional<CapAmount>& amount);

/// Whether the cap can be set when the task starts: it shares its GPUs, and nobody has set it to be
/// without a limit. A task of two phases receives its cap with its device.
bool is_capped_at_start(const model::Terms& terms);

/// "torch 2.10.0, MPS"; empty where there are none.
std::string to_text(const Cappers& cappers);

}  // namespace trainyard::job
