#include "app/job_forecast.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include <fmt/format.h>

#include "base/duration_text.h"
#include "base/result.h"
#include "job/keep_learned.h"
#include "plan/expected_courses.h"
#include "plan/play_run.h"
#include "schedule/scheduler.h"

namespace trainyard::app {
namespace {

/// Maximum number of tasks of later rounds that a plan simulates.
constexpr std::size_t kTasksOfRoundsMax = 20'000;

void add_round(const job::Job& next, SimulatedJob& whole) {
  model::append(whole.plan, next.plan());
  for (std::uint32_t task = 0; task < next.plan().tasks.size(); ++task) {
    const model::PlannedGroup& group = next.plan().groups[next.group_of({task}).value];
    whole.names.push_back(fmt::format("{}/{}", group.shown(), next.task_id({task})));
  }
  whole.gpu_shares.insert(whole.gpu_shares.end(), next.gpu_shares().begin(),
                          next.gpu_shares().end());
}

std::expected<SimulatedJob, text::Mistakes> with_its_rounds(job::Job job) {
  SimulatedJob whole{.job = std::move(job), .plan = {}, .names = {}, .gpu_shares = {}};
  add_round(whole.job, whole);
  const auto repeat = whole.job.repeat();
  if (!repeat) return whole;
  for (whole.rounds = 1; whole.rounds < repeat->rounds_max; ++whole.rounds) {
    if (whole.plan.tasks.size() > kTasksOfRoundsMax) break;
    std::vector<const model::PlannedGroup*> before;
    before.reserve(whole.plan.groups.size());
    for (const model::PlannedGroup& group : whole.plan.groups) before.push_back(&group);
    auto round = whole.job.later_round(
        {.round = whole.rounds, .batch = whole.rounds + 1, .groups_before = std::move(before)});
    if (!round) return std::unexpected(std::move(round.error()));
    add_round(*round, whole);
  }
  return whole;
}

/// Describes the job once, by the first machine that it was checked against.
void describe_job(const SimulatedJob& whole, const plan::Expected& expected,
                  report::PlanView& view) {
  const job::Job& job = whole.job;
  view.task_ids = whole.names;
  view.job = job.name();
  std::vector<std::string> notes = job.notes();
  if (const auto repeat = job.repeat()) {
    notes.push_back(
        fmt::format("{} of at most {} rounds {} simulated{}", whole.rounds, repeat->rounds_max,
                    whole.rounds == 1 ? "is" : "are",
                    repeat->until.empty() ? "" : ", as if " + repeat->until + " never held"));
  }
  if (expected.unknown > 0) {
    notes.push_back(fmt::format(
        "the duration of {} of {} tasks is unknown: {} each is assumed. Set 'duration: "
        "10m' in the job file, or run it once: runs with a task of {} or more are learned",
        expected.unknown, whole.plan.tasks.size(), exact_text(expected.assumed),
        exact_text(job::kTrainedLeast)));
  }
  view.notes.insert(view.notes.begin(), notes.begin(), notes.end());
}

/// Adds a note, once, that `where` is ignored, because machines of the command line have no names.
void note_where(const model::Plan& plan, std::vector<std::string>& notes) {
  const std::string note =
      "'where' is ignored on machines that only the command line describes: they have no names";
  const bool said = std::ranges::any_of(plan.shapes, [](const model::Shape& shape) {
    return !shape.terms.request.where.says_nothing();
  });
  if (said && std::ranges::find(notes, note) == notes.end()) notes.push_back(note);
}

/// A sentence behind another one, where there is one to say.
std::string and_then(const std::string& message, const std::string& sentence) {
  return sentence.empty() ? message : fmt::format("{}. {}", message, sentence);
}

/// Simulates the job there and adds its run; if that fails, adds the reason and returns the
/// mistakes.
std::expected<void, text::Mistakes> add_run(job::LoadOptions load, const PlannedMachines& machines,
                                            const ForecastTools& tools, JobForecast& forecast) {
  report::PlanView& view = forecast.view;
  load.machines = machines.one_of_each();
  if (machines.name != schedule::kThisMachine) {
    load.machine_text = fmt::format("the planned machine ({})", machines.name);
  }
  report::PlannedRun planned{
      .machine = machines.name, .kinds = machines.kinds, .run = {}, .why_not = {}};
  std::expected<job::Job, text::Mistakes> loaded = tools.load(load, machines);
  std::expected<SimulatedJob, text::Mistakes> job =
      loaded ? with_its_rounds(std::move(*loaded)) : std::unexpected(std::move(loaded.error()));
  if (!job) {
    planned.why_not = and_then(job.error().front().message, machines.silent);
    view.runs.push_back(std::move(planned));
    for (text::Mistake& mistake : job.error()) {
      if (mistake.of_machine) mistake.message = and_then(mistake.message, machines.silent);
    }
    return std::unexpected(std::move(job.error()));
  }
  const plan::Expected expected = plan::expected_of(job->plan, job->gpu_shares);
  // The scheduler itself chooses the order, by what it knows.
  model::Policy policy = job->job.policy();
  // Tasks take what is expected of them, so there is nothing to learn from them.
  policy.auto_adjust = false;
  policy.gpu_settle_max = {};
  // The time is read once for this number of tasks, of which some thousand are played in a second.
  constexpr std::size_t kTellEvery = 64;
  const auto on_finished = [&tools](std::size_t finished) {
    if (finished % kTellEvery == 0) tools.progress.on(finished, tools.now());
  };
  const auto play = [&](const std::vector<plan::Course>& courses, const std::string& what) {
    tools.progress.begin(what, job->plan.tasks.size(), tools.now());
    return plan::play_run(job->plan, policy, machines.all(), courses,
                          {.others = machines.others, .on_finished = on_finished});
  };
  Result<plan::PlayedRun> run = play(expected.courses, machines.name);
  if (!run) {
    planned.why_not =
        and_then(run.error().message + advice_on_others(load.job_file, machines), machines.silent);
    view.runs.push_back(planned);
    return std::unexpected(
        text::Mistakes{{.file = load.job_file, .message = std::move(planned.why_not)}});
  }
  if (forecast.jobs.empty()) describe_job(*job, expected, view);
  if (machines.host.empty()) note_where(job->plan, view.notes);
  planned.run = std::move(*run);
  const auto worst = play(plan::at_the_worst(job->plan, expected.courses),
                          machines.name + ", where sharing gains nothing");
  if (worst) planned.at_the_worst = worst->ended - Instant{};
  forecast.jobs.push_back(std::move(*job));
  planned.plan = &forecast.jobs.back().plan;
  view.runs.push_back(std::move(planned));
  return {};
}

}  // namespace

JobForecast forecast_job(const job::LoadOptions& load, const std::vector<PlannedMachines>& machines,
                         std::vector<std::string> notes, const ForecastTools& tools) {
  JobForecast forecast;
  forecast.view.notes = std::move(notes);
  forecast.jobs.reserve(machines.size());  // The runs of the view point at the plans of their jobs.
  for (const PlannedMachines& each : machines) {
    if (!each.silent.empty()) forecast.view.notes.push_back(each.silent);
    std::expected<void, text::Mistakes> added = add_run(load, each, tools, forecast);
    if (!added && forecast.mistakes.empty()) forecast.mistakes = std::move(added.error());
  }
  tools.progress.finish();
  return forecast;
}

}  // namespace trainyard::app
