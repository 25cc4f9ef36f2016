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
  TaskKey key;  ///< At which it is told.
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

/// The CPUs of a task that says nothing about them: one for each of its processes, or, on GPUs, its
/// part of the CPUs of the machine, where several may run it of the smallest. One that is to learn
/// how much of a GPU it needs counts as one without GPUs until that is known.
model::Cpus default_cpus(const model::Terms& terms, const TermsBasis& basis);

/// Which of a task's numbers are what earlier runs have taught.
struct LearnedUse {
  bool memory = false;
  bool gpu_memory = false;
  bool duration = false;
  /// More was taken of a GPU than any here has: it was learned on a larger one, and is not used.
  bool gpu_too_small = false;
  /// Another command took less than what is reserved without any estimate: that stays.
  bool memory_kept = false;
  bool gpu_kept = false;

  friend bool operator==(const LearnedUse&, const LearnedUse&) = default;
};

/// What earlier runs have taught of a task counts where nothing is written, and instead of a
/// written duration that is off by more than a quarter. The memory of another command only raises.
LearnedUse use_learned(model::Terms& terms, const ExpectedTask& expected, const TermsBasis& basis);

}  // namespace trainyard::job
