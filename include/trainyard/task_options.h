// The options of a task of the C++ library.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "trainyard/bytes.h"

namespace trainyard {

/// The terms of a task: the keys of a task in a job file, with their rules (docs/job-file.md).
/// Options that are left out come from its group, then from the configuration. They are checked
/// before anything runs (Yard::check).
struct TaskOptions {
  std::string id = {};               ///< Also its directory's; empty: a UUID, never kept on resume.
  std::optional<Bytes> memory = {};  ///< Of the host: reserved while it runs (`estimate_memory`).
  /// In its place: from so much on, and more as tasks of its kind are seen to take.
  std::optional<Bytes> memory_at_least = {};
  std::optional<double> cpus = {};  ///< While it trains.
  /// Room on the disk of the run's directory. The task starts when so much is free beyond what the
  /// running tasks have reserved, and keeps its reservation until it ends.
  std::optional<Bytes> disk = {};
  /// How many GPUs it trains on. Without gpu_memory they are its own.
  std::optional<int> gpus = {};
  /// On each GPU (`estimate_cuda_memory`), shared with others; anything but 0 asks for one.
  std::optional<Bytes> gpu_memory = {};
  std::optional<Bytes> gpu_memory_at_least = {};  ///< The same as for the host, in its place.
  /// Whether it is kept to that (`gpu-memory-limit`): "none", "soft" or "hard". With "soft" it is
  /// told what it should take at most (Device::memory_max), with "hard" ended when it has more.
  /// Empty: "soft".
  std::string gpu_memory_limit = {};
  /// How much of a GPU it uses when it is alone there, above 0 to 1: those that share a GPU use no
  /// more together than utilization-limit.gpu, as far as they say it.
  std::optional<double> gpu_utilization = {};
  /// How many tasks may share its GPU, itself included: at most 32; 0: any number.
  std::optional<int> max_per_gpu = {};
  /// The device: "cpu", "cuda", or "cuda:<index>". Empty: gpus and gpu_memory decide.
  std::string device = {};
  /// So many processes, each a fork that calls load() and train() as the others do, end together:
  /// for collective operations (`ranks`). Task::rank() says which one it is. Nothing: one process.
  std::optional<int> ranks = {};

  /// It is ended when it takes more than `memory` (`memory-limit: hard`). The library looks each
  /// second, as it moves no process of the program into a control group.
  std::optional<bool> memory_hard = {};
  /// Waiting tasks with a larger number start first, whatever their order is else: -1,000 to 1,000;
  /// default: 0.
  std::optional<int> priority = {};
  /// Whether it may be interrupted, to be tried again, when memory runs short; true by default.
  std::optional<bool> preemptible = {};
  /// The signal that it gets a while before any TERM: "USR1@120", in seconds. Empty: none.
  std::string signal = {};
  /// How long it is expected to train: who knows it of all tasks gets the best order of them.
  std::optional<std::chrono::milliseconds> duration = {};
  /// It is ended when it has loaded and trained for so long. 0: never.
  std::optional<std::chrono::milliseconds> time_limit = {};
  /// How many more tries it has after what it did itself: exceptions, exit codes, signals; 0 by
  /// default. After `retry_delay`, doubled each time.
  std::optional<int> retries = {};
  std::optional<bool> retry_on_time_limit = {};  ///< Also after its time limit; needs retries.
  std::optional<std::chrono::milliseconds> retry_delay = {};
  /// It starts no earlier than so long after the run began.
  std::optional<std::chrono::milliseconds> start_after = {};
  /// How many more it has after memory ran out; 2 by default.
  std::optional<int> oom_retries = {};
  /// Variables added to the environment of the program. The task's override the group's.
  std::vector<std::pair<std::string, std::string>> environment = {};

  /// Anything besides its id that its result depends on: a version of the code or the data, its
  /// numbers. When the program is run again in the same directory, a task that had finished is kept
  /// if this is the same, and runs again if it is not.
  std::string fingerprint = {};
};

}  // namespace trainyard
