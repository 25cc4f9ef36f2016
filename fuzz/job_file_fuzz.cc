// Any bytes as a job file: read, multiplied, and each of its first tasks launched. A job that was
// accepted must be able to do all a job can do.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/check.h"
#include "job/job.h"
#include "model/plan.h"
#include "model/resources.h"
#include "report/dry_run.h"
#include "text/mistake.h"

namespace {

/// What a repeat does after its first round.
void begin_round_1(const trainyard::job::Job& job) {
  std::vector<const trainyard::model::PlannedGroup*> groups;
  for (const auto& group : job.plan().groups) groups.push_back(&group);
  const auto round = job.later_round({.round = 1, .batch = 2, .groups_before = groups});
  if (!round) return;
  const auto tasks = static_cast<std::uint32_t>(round->plan().tasks.size());
  for (std::uint32_t i = 0; i < std::min(tasks, 8U); ++i) {
    const auto launch = round->launch({.task = {i}, .attempt = 1});
    trainyard::check(!launch.arguments.empty(), "a command of round 1");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  // No file is there, so that {file: ...} finds nothing.
  const trainyard::job::LoadOptions options{.job_file = "sweep.yaml",
                                            .current_directory = "/nowhere/at/all"};
  const trainyard::model::Capacity machine{.memory = trainyard::gb(64),
                                           .cpus = trainyard::model::cpus(8)};
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto job = trainyard::job::Job::parse(text, options, machine);
  if (!job) {
    trainyard::check(!job.error().empty(), "a refused job file with a reason");
    for (const trainyard::text::Mistake& mistake : job.error()) {
      trainyard::check(!trainyard::text::to_text(mistake).empty(), "a mistake in words");
    }
    return 0;
  }
  const auto tasks = static_cast<std::uint32_t>(job->plan().tasks.size());
  trainyard::check(tasks > 0, "an accepted job with a task");
  for (std::uint32_t i = 0; i < std::min(tasks, 8U); ++i) {
    const auto found =
        job->find(job->plan().groups[job->group_of({i}).value].name, job->task_id({i}));
    trainyard::check(found && found->value == i, "a task that is found by its names");
    static_cast<void>(job->fingerprint({i}));
  }
  if (job->repeat()) begin_round_1(*job);
  trainyard::check(!trainyard::report::dry_run_text(*job, 4).empty(), "a dry run");
  trainyard::check(!trainyard::report::dry_run_json(*job, 4).empty(), "a dry run as JSON");
  return 0;
}
