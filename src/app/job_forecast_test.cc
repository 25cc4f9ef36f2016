#include "app/job_forecast.h"

#include <string_view>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/bytes.h"
#include "job/test_job.h"

namespace trainyard::app {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr std::string_view kNoteOnMachine = "a note on this machine";

/// Two tasks of a minute, each on less than half of a GPU of 24 GB.
constexpr std::string_view kTwoOnAGpu =
    "groups: [{name: g, cpus: 1, gpu-memory: 10GB, memory: 1GB, duration: 1m, matrix: {n: [1, 2]}, "
    "tasks: "
    "[{command: 'true {n}'}]}]";

JobForecast forecast_of(std::string_view text, const MachineWords& words,
                        const model::Capacity& here = {.memory = gb(64), .cpus = model::cpus(8)},
                        const std::vector<model::GpuReading>& others = {}) {
  report::PlanProgress progress(false, [](std::string_view) {});
  const auto load = [text](const job::LoadOptions& options, const PlannedMachines& machines) {
    return job::Job::parse(text, options, machines.most());
  };
  const auto machines =
      planned_machines(words, {.host = "lab", .capacity = here, .others = others});
  return forecast_job(job::in_job_directory(), machines.value(), {std::string(kNoteOnMachine)},
                      {.load = load, .now = [] { return Duration{0}; }, .progress = progress});
}

TEST(JobForecast, HasTheTimeWithAndWithoutAGainBySharing) {
  const JobForecast forecast = forecast_of(kTwoOnAGpu, {.gpus = {"24GB"}});
  EXPECT_THAT(forecast.mistakes, IsEmpty());
  EXPECT_EQ(forecast.view.job, "sweep");
  EXPECT_THAT(forecast.view.task_ids, ElementsAre("g/n=1", "g/n=2"));
  ASSERT_THAT(forecast.view.runs, SizeIs(1));
  const report::PlannedRun& run = forecast.view.runs[0];
  EXPECT_EQ(run.machine, "24GB");
  EXPECT_EQ(run.run.ended, Instant{Duration{60'000}});
  EXPECT_EQ(run.at_the_worst, Duration{120'000});
  EXPECT_EQ(run.plan, &forecast.jobs.at(0).plan);
}

TEST(JobForecast, NotesOnTheJobComeBeforeThoseOnTheMachine) {
  EXPECT_THAT(
      forecast_of("groups: [{name: g, tasks: [{command: 'true'}]}]", {}).view.notes,
      ElementsAre("the duration of 1 of 1 tasks is unknown: 1m each is assumed. Set 'duration: "
                  "10m' in the job file, or run it once: runs with a task of 1 s or more are "
                  "learned",
                  kNoteOnMachine));
}

TEST(JobForecast, AJobIsDescribedOnceForAllMachines) {
  const JobForecast forecast =
      forecast_of("groups: [{name: g, tasks: [{command: 'true'}]}]", {.gpus = {"0", "24GB"}});
  EXPECT_THAT(forecast.view.runs, SizeIs(2));
  EXPECT_THAT(forecast.jobs, SizeIs(2));
  EXPECT_THAT(forecast.view.notes, SizeIs(2)) << "the unknown duration, and that on the machine";
  EXPECT_THAT(forecast.view.task_ids, SizeIs(1));
}

TEST(JobForecast, ARepeatHasAllItsRounds) {
  const auto repeat = [](std::string_view until) {
    return fmt::format(
        "groups:\n"
        "- {{name: first, duration: 1m, tasks: [{{id: a, command: x}}]}}\n"
        "- repeat: 3\n{}"
        "  groups:\n"
        "  - {{name: g, duration: 1m, tasks: [{{id: b, command: x}}]}}\n",
        until);
  };
  const JobForecast forecast = forecast_of(repeat("  until: g.result.acc >= 0.5\n"), {});
  EXPECT_THAT(forecast.view.task_ids, ElementsAre("first/a", "g.0/b", "g.1/b", "g.2/b"));
  EXPECT_THAT(forecast.view.notes,
              ElementsAre("3 of at most 3 rounds are simulated, as if g.result.acc >= 0.5 never "
                          "held",
                          kNoteOnMachine));
  EXPECT_THAT(forecast_of(repeat(""), {}).view.notes,
              ElementsAre("3 of at most 3 rounds are simulated", kNoteOnMachine));
}

TEST(JobForecast, OneNoteSaysThatMachinesOfTheCommandLineHaveNoNames) {
  constexpr std::string_view kWithWhere =
      "groups: [{name: g, cpus: 1, gpu-memory: 10GB, duration: 1m, where: {machine: lab1, gpu: "
      "H100}, "
      "tasks: [{command: 'true'}]}]";
  const std::string note =
      "'where' is ignored on machines that only the command line describes: they have no names";
  const MachineWords words{.machines = {"1x(1x24GB)", "2x(1x24GB)"}};
  EXPECT_THAT(forecast_of(kWithWhere, words).view.notes, ElementsAre(kNoteOnMachine, note));
  EXPECT_THAT(forecast_of(kTwoOnAGpu, words).view.notes, ElementsAre(kNoteOnMachine));
}

TEST(JobForecast, AMachineThatCannotRunTheJobIsComparedWithTheOthers) {
  const JobForecast forecast = forecast_of(kTwoOnAGpu, {.gpus = {"4GB", "0", "24GB"}});
  ASSERT_THAT(forecast.view.runs, SizeIs(3));
  EXPECT_THAT(forecast.view.runs[0].why_not,
              HasSubstr("needs 10 GB of memory on a GPU, the largest here has 3.6 GB"));
  EXPECT_EQ(forecast.view.runs[0].plan, nullptr);
  EXPECT_THAT(forecast.view.runs[1].why_not,
              HasSubstr("needs a GPU, the planned machine (no GPU) has none"));
  EXPECT_EQ(forecast.view.runs[2].why_not, "");
  EXPECT_THAT(forecast.jobs, SizeIs(1));
  ASSERT_FALSE(forecast.mistakes.empty());
  EXPECT_EQ(forecast.mistakes.front().message, forecast.view.runs[0].why_not);
}

TEST(JobForecast, AGpuThatDoesNotAnswerMayBeTheReason) {
  const JobForecast forecast =
      forecast_of(kTwoOnAGpu, {},
                  {.memory = gb(64),
                   .cpus = model::cpus(8),
                   .gpus = {{.number = 0, .memory = gb(4)}, {.number = 1, .late = true}}});
  const std::string silent = "GPU 1 DOES NOT ANSWER, and is left out here ('trainyard devices')";
  EXPECT_THAT(forecast.jobs, IsEmpty());
  EXPECT_THAT(forecast.view.runs.at(0).why_not, EndsWith(". " + silent));
  EXPECT_THAT(forecast.mistakes.at(0).message, EndsWith(". " + silent));
  EXPECT_THAT(forecast.view.notes, Contains(silent));
}

TEST(JobForecast, ARunThatWaitsForeverSaysThatOthersAreAssumedToStay) {
  const JobForecast forecast = forecast_of(
      "groups: [{name: g, cpus: 1, gpu-memory: 3GB, memory: 1GB, duration: 1m, tasks: [{command: "
      "'true'}]}]",
      {},
      {.memory = gb(64),
       .cpus = model::cpus(8),
       .gpus = {{.number = 0, .uuid = "GPU-a", .pci = "a", .memory = gb(8)}}},
      {{.used = gb(5), .of_strangers = gb(5)}});
  EXPECT_THAT(forecast.jobs, IsEmpty());
  const std::string& why_not = forecast.view.runs.at(0).why_not;
  EXPECT_THAT(why_not, HasSubstr("the run would never end: "));
  EXPECT_THAT(why_not,
              EndsWith("'trainyard plan sweep.yaml --gpus 1x7629MiB' simulates the job on free "
                       "GPUs"));
  EXPECT_EQ(forecast.mistakes.at(0).file, "sweep.yaml");
  EXPECT_EQ(forecast.mistakes.at(0).message, why_not);
}

}  // namespace
}  // namespace trainyard::app
