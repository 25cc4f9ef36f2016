// From what a task and its group say to the terms on which it runs: the rules that are about
// several keys at once. One place for the job file and for the library. Pure.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "job/learned.h"
#include "job/task_keys.h"
#include "model/resources.h"
#include "model/terms.h"
#include "settings/configuration.h"

namespace trainyard::job {

/// Values that are each right and do not go together.
struct TermsMistake {
  TaskKey key;  ///< The key to report it at.
  std::string message;
};

struct TermsBasis {
  const settings::Configuration& configuration;
  const model::Capacity& capacity;
  /// The machines of the run; none: the one with `capacity`.
  std::span<const model::NamedMachine> machines = {};
};

struct MadeTerms {
  model::Terms terms;
  std::vector<TermsMistake> mistakes;
};

/// `device_goes_first`: the task itself names a device, and only its group says anything else of
/// GPUs.
MadeTerms make_terms(const Asked& asked, bool device_goes_first, const TermsBasis& basis);

/// The CPUs of a task that does not set them: one for each of its processes. On GPUs it is the
/// task's share of the machine's CPUs; where several machines may run it, of the smallest. A task
/// that is to learn its GPU memory counts as one without GPUs until that is known.
model::Cpus default_cpus(const model::Terms& terms, const TermsBasis& basis);

/// Tells for each of a task's numbers whether it is learned from earlier runs.
struct LearnedUse {
  bool memory = false;
  bool gpu_memory = false;
  bool duration = false;
  /// More was taken of a GPU than any here has: it was learned on a larger one, and is not used.
  bool gpu_too_small = false;
  /// Another command took less than the default reservation, which stays.
  bool memory_kept = false;
  bool gpu_kept = false;

  friend bool operator==(const LearnedUse&, const LearnedUse&) = default;
};

/// Learned estimates of a task count where the job file sets nothing, and instead of a configured
/// duration that is off by more than a quarter. Memory measured with another command only raises.
LearnedUse use_learned(model::Terms& terms, const ExpectedTask& expected, const TermsBasis& basis);

}  // namespace trainyard::job
