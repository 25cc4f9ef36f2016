// The output of `trainyard plan` for a run that was played through: its time, the use of the
// machine, the reasons for waiting, and a picture. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/time.h"
#include "model/plan.h"
#include "model/resources.h"
#include "plan/play_run.h"

namespace trainyard::report {

/// Machines that are alike, one behind the other.
struct PlannedKind {
  std::string text;  ///< For people: "8x(4x80GB)".
  std::uint32_t machines = 1;
  model::Capacity capacity;  ///< The capacity of each machine.
};

/// One machine, or several, on which the run was played.
struct PlannedRun {
  std::string machine;             ///< For people: "4 x 24 GB", "this machine".
  std::vector<PlannedKind> kinds;  ///< In the order of the machines.
  /// The plan that was played. Requests may follow from the machine, so each run has its own. Not
  /// owned; null if the job cannot run there.
  const model::Plan* plan = nullptr;
  plan::PlayedRun run;
  /// The time of the run if tasks that share a GPU gain nothing by that; nothing: not known.
  std::optional<Duration> at_the_worst;
  std::string why_not;  ///< It cannot be run there, and was not played; empty: it can.
};

struct PlanView {
  std::string job;
  std::vector<std::string> task_ids;  ///< By task: "train/lr=1".
  std::vector<std::string> notes;
  std::vector<PlannedRun> runs;  ///< At least one.
};

std::string plan_text(const PlanView& view);
std::string plan_json(const PlanView& view);
/// A page with a timeline for each machine.
std::string plan_html(const PlanView& view);

}  // namespace trainyard::report
