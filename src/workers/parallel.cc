#include "trainyard/parallel.h"

#include <cstdlib>
#include <exception>
#include <iostream>
#include <utility>

#include <fmt/format.h>

#include "base/result.h"
#include "pipeline/trouble.h"
#include "trainyard/worker.h"
#include "workers/parallel_options.h"
#include "workers/parallel_run.h"
#include "workers/worker_state.h"

namespace trainyard {

std::string ParallelResult::text() const {
  std::string text = error;
  for (const WorkerFailure& each : failures) {
    if (!text.empty()) text += '\n';
    text += fmt::format("worker {} failed: {}", each.node, each.what);
    if (!each.stderr_end.empty()) text += "\n  it printed last:\n" + each.stderr_end;
  }
  return text;
}

namespace workers {
namespace {

/// In a fork: its exit code.
int be_a_worker(const std::function<void(Worker&)>& work) {
  auto worker = Worker::from_environment();
  if (!worker) {
    std::cerr << "trainyard: " << worker.error().message << '\n' << std::flush;
    return EXIT_FAILURE;
  }
  try {
    work(*worker);
    return EXIT_SUCCESS;
  } catch (...) {
    WorkerState::of(*worker).finish(Outcome::Failed,
                                    pipeline::full_text_of(std::current_exception()));
    return EXIT_FAILURE;
  }
}

ParallelResult run_here(const ParallelOptions& options, const WorkerPlan& plan,
                        const std::function<void(Worker&)>& work) {
  ParallelResult result;
  auto worker = WorkerState::join({.node = plan.node,
                                   .index = 0,
                                   .count = 1,
                                   .port = plan.port,
                                   .life = 1,
                                   .labels = options.labels,
                                   .roles = plan.roles});
  result.started = true;
  try {
    work(worker.value());
  } catch (...) {
    result.failures.push_back(
        {.node = plan.node, .what = pipeline::full_text_of(std::current_exception())});
  }
  return result;
}

ParallelResult run_all(const ParallelOptions& options, ParallelRun::Work work,
                       const std::stop_token& stop, ParallelRun::Periods periods) {
  auto plan = plan_workers(options);
  if (!plan) {
    ParallelResult result;
    result.error = plan.error().message;
    return result;
  }
  ParallelRun run(options, *std::move(plan), periods);
  return run.run(std::move(work), stop);
}

}  // namespace

ParallelResult run_in_forks(const ParallelOptions& options, std::function<void(Worker&)> work,
                            const std::stop_token& stop, ParallelRun::Periods periods) {
  return run_all(options, {.function = [work = std::move(work)] { return be_a_worker(work); }},
                 stop, periods);
}

}  // namespace workers

ParallelResult parallel(const ParallelOptions& options, std::function<void(Worker&)> work,
                        const std::stop_token& stop) {
  if (options.workers == 1 && options.attach_to.empty()) {
    const auto plan = workers::plan_workers(options);
    if (plan) return workers::run_here(options, plan->front(), work);
  }
  return workers::run_in_forks(options, std::move(work), stop, {});
}

ParallelResult parallel(const ParallelOptions& options, const std::vector<std::string>& command,
                        const std::stop_token& stop) {
  if (command.empty()) {
    ParallelResult result;
    result.error = "no program is given";
    return result;
  }
  return workers::run_all(options, {.command = command}, stop, {});
}

}  // namespace trainyard
