// The forecast of `trainyard plan`: the run of a job, simulated on each of the planned machines.
// Reads the job and the clock by functions that the caller has. From one thread at a time.
#pragma once

#include <cstdint>
#include <expected>
#include <functional>
#include <string>
#include <vector>

#include "app/planned_machines.h"
#include "base/time.h"
#include "job/job.h"
#include "model/plan.h"
#include "report/plan_report.h"
#include "text/mistake.h"

namespace trainyard::app {

/// A job with all the rounds of its repeat: the maximum number, if nothing ends them.
struct SimulatedJob {
  job::Job job;  ///< The job at the beginning.
  model::Plan plan;
  std::vector<std::string> names;  ///< The names of its tasks.
  std::vector<int> gpu_shares;
  std::uint32_t rounds = 0;  ///< The number of simulated rounds; 0: nothing is repeated.
};

struct JobForecast {
  report::PlanView view = {};           ///< Points at the plans of `jobs`.
  std::vector<SimulatedJob> jobs = {};  ///< For each of the machines that can run the job.
  text::Mistakes mistakes = {};  ///< For the first machines that cannot run it; empty: all can.
};

struct ForecastTools {
  /// Reads the job for these machines.
  std::function<std::expected<job::Job, text::Mistakes>(job::LoadOptions, const PlannedMachines&)>
      load;
  std::function<Duration()> now;
  report::PlanProgress& progress;
};

/// A run for each of the machines, or the reason why they cannot run the job. `notes` are on this
/// machine; those on the job come before them.
JobForecast forecast_job(const job::LoadOptions& load, const std::vector<PlannedMachines>& machines,
                         std::vector<std::string> notes, const ForecastTools& tools);

}  // namespace trainyard::app
