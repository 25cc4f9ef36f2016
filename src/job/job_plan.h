// Multiplies a JobSpec into the Plan that the scheduler works with, and finds the mistakes that
// only show then: ids taken twice, a placeholder without a value, an estimate that the machine can
// never hold, groups that need each other in a circle.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "job/job_needs.h"
#include "job/job_spec.h"
#include "job/learned.h"
#include "job/task_terms.h"
#include "model/plan.h"
#include "model/resources.h"
#include "schedule/scheduler.h"
#include "settings/configuration.h"
#include "text/mistake.h"
#include "text/yaml_reader.h"

namespace trainyard::job {

constexpr std::size_t kTasksMax = 1'000'000;

struct PlannedJob {
  model::Plan plan;
  /// For people: differences between the file and the learned estimates, and tasks without room
  /// here.
  std::vector<std::string> notes;
  bool lacks_gpu = false;                   ///< See Job::lacks_gpu().
  std::vector<std::uint32_t> group_starts;  ///< The number of the first task of each group.
  std::vector<LearnedUse> learned_uses;     ///< By shape: the estimates that are used.
};

/// The input of the plan, apart from the file.
struct PlanBasis {
  const settings::Configuration& configuration;
  const model::Capacity& capacity;
  const std::vector<model::NamedMachine>& machines;  ///< See LoadOptions.
  const Learned& learned;
  LearnedFor here = {};
  std::uint32_t batch = 1;  ///< The number in the run that it gets.
  /// The groups of all batches before, in order: its own groups may need them, too.
  GroupsBefore groups_before;
  /// A request that this machine can never hold is a note, as in LoadOptions.
  bool only_shown = false;
  bool gpus_unknown = false;                      ///< See LoadOptions.
  std::optional<Bytes> disk_size = std::nullopt;  ///< Nothing: it is not known, or is not compared.
  schedule::MachineText machine = {};             ///< The machine in mistakes.
};

/// `spec` may have come from a file with mistakes. Those of the plan are added to `mistakes`; the
/// returned plan must not be used then.
PlannedJob plan_job(const JobSpec& spec, const PlanBasis& basis, const text::YamlDocument& document,
                    text::MistakeList& mistakes);

}  // namespace trainyard::job
