// The output of `trainyard plan` for a run that was played through: its time, the use of the
// machine, the reasons for waiting, and a picture. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/time.h"
#include "model/plan.h"
#include "model/resources.h"
#include "plan/play_run.h"
#include "report/sink.h"

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
  std::string why_not;  ///< The job cannot run there, and was not played; empty: it can.
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

/// The progress of `trainyard plan` in playing a run through, which takes minutes for a million
/// tasks. In a terminal one line is redrawn, elsewhere there is a line every ten seconds. Has no
/// clock: the caller passes the time. Belongs to one thread.
class PlanProgress {
 public:
  static constexpr Duration kDrawEvery{500};
  static constexpr Duration kLineEvery{10'000};

  PlanProgress(bool terminal, Sink write) : terminal_(terminal), write_(std::move(write)) {}

  /// `tasks` is the number to play through; `what` names the machine and the way.
  void begin(std::string what, std::size_t tasks, Duration now);
  void on(std::size_t ended, Duration now);
  /// Takes the line away.
  void finish();

 private:
  bool terminal_;
  Sink write_;
  std::string what_;
  std::size_t tasks_ = 0;
  Duration shown_at_{0};
  bool drawn_ = false;
};

}  // namespace trainyard::report
