// The requests of tasks, and the resources of machines. Plain values.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/time.h"
#include "model/ids.h"
#include "model/site_wish.h"

namespace trainyard::model {

/// A number of CPUs in thousandths, so that sums are exact. A task may ask for half a CPU, or none.
struct Cpus {
  std::int64_t milli = 0;

  friend auto operator<=>(Cpus, Cpus) = default;
  friend constexpr Cpus operator+(Cpus a, Cpus b) { return {a.milli + b.milli}; }
  friend constexpr Cpus operator-(Cpus a, Cpus b) { return {a.milli - b.milli}; }
};

constexpr Cpus cpus(std::int64_t count) { return {count * 1000}; }
/// As people count them: 0.5.
constexpr double as_number(Cpus cpus) { return static_cast<double>(cpus.milli) / 1000; }

/// As many tasks as may be said to be on a GPU at most.
constexpr int kMaxPerGpuMost = 32;

/// The settings of a task about other tasks on its GPUs.
struct GpuSharing {
  /// How much of a GPU it uses when it is alone there, in thousandths; 0: nobody said.
  int utilization = 0;
  int max_per_gpu = 0;  ///< So many tasks there at most, itself included; 0: any number.

  friend auto operator<=>(const GpuSharing&, const GpuSharing&) = default;
};

/// The resources reserved for a task while it runs.
struct Request {
  Bytes memory;                 ///< Of the host, per task.
  Cpus cpus;                    ///< Per task.
  int gpus = 0;                 ///< How many GPUs.
  Bytes gpu_memory;             ///< On each of its GPUs, shared with others; 0: each is its own.
  std::optional<GpuIndex> gpu;  ///< The one that it wants; nothing: whichever.
  /// Only the largest GPUs that answer will do: the task ran out of memory on the others.
  bool largest = false;
  /// No late GPU will do: its process received the list of GPUs when it started.
  bool listed_only = false;
  GpuSharing sharing;
  /// Room on the disk of the run's directory, for each task. What a task wrote stays when it ends.
  Bytes disk;
  SiteWish where = {};  ///< Machines and GPUs that will do.
  /// GPUs that will not do, because they dropped out.
  std::vector<GpuPlace> avoids = {};

  friend auto operator<=>(const Request&, const Request&) = default;
};

/// True for a request that wants each of its GPUs for itself.
constexpr bool wants_whole_gpus(const Request& request) {
  return request.gpus > 0 && request.gpu_memory == Bytes{};
}

enum class GpuMaker : std::uint8_t { Nvidia, Amd };

/// One GPU, or one MIG slice of one, as it always is.
struct Gpu {
  int number = 0;    ///< The driver's: that of nvidia-smi and rocm-smi. Slices have their card's.
  std::string uuid;  ///< "GPU-8a56...", "MIG-41b3...": the name for it in variables of programs.
  std::string name;  ///< "NVIDIA H200"
  std::string pci;   ///< "00000000:65:00.0"
  Bytes memory;      ///< In all.
  std::int64_t speed = 0;  ///< Cores times their highest clock in MHz; compares within a machine.
  GpuMaker maker = GpuMaker::Nvidia;
  /// The number of the MIG slice on its card. A program that uses a slice can use no other GPU.
  std::optional<int> slice;
  /// It did not answer when the run began, and nothing but its number was known of it then. Such
  /// are behind the others.
  bool late = false;
  /// Its number in CUDA with CUDA_DEVICE_ORDER=PCI_BUS_ID. Nothing where CUDA may count other GPUs
  /// than the driver does: one does not answer, or one is split (MIG).
  std::optional<int> cuda_number = std::nullopt;

  /// Its name for users: "0", and "0:1" for a slice.
  [[nodiscard]] std::string label() const {
    const std::string card = std::to_string(number);
    return slice ? card + ":" + std::to_string(*slice) : card;
  }

  friend bool operator==(const Gpu&, const Gpu&) = default;
};

/// All resources for tasks: the machine, or the part of it that cgroups, CPU affinity and an outer
/// Slurm job leave to us.
struct Capacity {
  Bytes memory;
  Cpus cpus;
  /// How many task processes the operating system lets us have at once; 0 is no limit.
  int processes_max = 0;
  /// Why processes_max is what it is, as in "512 open files"; empty when there is no limit.
  std::string processes_max_reason;
  std::vector<Gpu> gpus;  ///< Those that tasks may have.
  /// Why there are no GPUs, where that is known: "the driver is not loaded".
  std::string no_gpus_reason;

  friend bool operator==(const Capacity&, const Capacity&) = default;
};

/// A machine of a run by the name that people know it by, and what it has.
struct NamedMachine {
  std::string name;
  Capacity capacity;

  friend bool operator==(const NamedMachine&, const NamedMachine&) = default;
};

/// Whether somebody means this one by "1", or by "1:0" this slice of it: by "1" all slices.
bool is_called(const Gpu& gpu, std::string_view name);

/// The largest amount of each resource that `most` or any machine has. The GPUs are those of the
/// machine with the most GPUs.
Capacity most_of(Capacity most, std::span<const NamedMachine> machines);

/// Where an attempt is: a machine, and the GPUs there that it has.
struct Site {
  MachineIndex machine;
  std::vector<GpuIndex> gpus;

  friend auto operator<=>(const Site&, const Site&) = default;
};

/// The measured usage of an attempt: of the whole process tree.
struct Usage {
  /// Anonymous memory of the tree, summed: the largest of the samples, or what the kernel says.
  Bytes memory_peak;
  /// It was that of the largest of its processes alone: together they may have had more.
  bool memory_at_least = false;
  Bytes gpu_memory_peak;  ///< On that of its GPUs where it had most; 0 when nobody could see it.
  /// It could not have more of a GPU: what it had says nothing of what it needs.
  bool gpu_capped = false;
  Duration cpu_time{0};  ///< User and system.

  friend bool operator==(const Usage&, const Usage&) = default;
};

/// Whether one that was told to take no more of a GPU than this had, or wanted, about as much: what
/// it lacked then was what it was kept from. 0: it was told nothing.
constexpr bool is_near_cap(Bytes had, Bytes cap) {
  return cap > Bytes{} && had >= cap - Bytes{cap.count / 10};
}

}  // namespace trainyard::model
