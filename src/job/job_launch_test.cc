// The start of a task: command, directory, environment and files.
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "job/job.h"
#include "job/test_job.h"
#include "model/launch.h"
#include "run/code_copy.h"
#include "sys/test_directory.h"

namespace trainyard::job {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

model::Launch launch_of(std::string_view text, std::uint32_t task = 0, std::uint32_t attempt = 1,
                        const std::vector<std::string>& yards = {}) {
  LoadOptions options = in_job_directory();
  options.environment = yards;
  return job_of(text, options).launch({.task = {task}, .attempt = attempt});
}

TEST(Launch, HasEverythingForAnAttempt) {
  const model::Launch launch = launch_of(
      "groups:\n"
      "- name: train\n"
      "  matrix: {lr: [1e-3]}\n"
      "  tasks: [{command: 'train --lr {lr} --out {task_dir}/m'}]\n");
  EXPECT_THAT(
      launch.arguments,
      ElementsAre("/bin/bash", "-c", R"(train --lr "$TRAINYARD_V1" --out "$TRAINYARD_V2"/m)"));
  EXPECT_EQ(launch.working_directory, "/job");
  EXPECT_EQ(launch.task_directory, "/job/runs/sweep/train/lr=1e-3");
  EXPECT_EQ(launch.run_directory, "/job/runs/sweep");
  EXPECT_EQ(launch.stdout_path, "/job/runs/sweep/train/lr=1e-3/stdout.log");
  EXPECT_EQ(launch.stderr_path, "/job/runs/sweep/train/lr=1e-3/stderr.log");
  EXPECT_EQ(launch.result_path, "/job/runs/sweep/train/lr=1e-3/result.1.json");
  EXPECT_EQ(launch.result_copy_path, "/job/runs/sweep/train/lr=1e-3/result.json");
  EXPECT_THAT(launch.environment,
              ElementsAre("TRAINYARD_TASK_ID=lr=1e-3", "TRAINYARD_GROUP=train",
                          "TRAINYARD_RUN_DIR=/job/runs/sweep",
                          "TRAINYARD_TASK_DIR=/job/runs/sweep/train/lr=1e-3",
                          "TRAINYARD_CHECKPOINT_DIR=/job/runs/sweep/train/lr=1e-3/checkpoints",
                          "TRAINYARD_RESULT=/job/runs/sweep/train/lr=1e-3/result.1.json",
                          "TRAINYARD_ATTEMPT=1", "TRAINYARD_SEED=1252252158", "OMP_NUM_THREADS=1",
                          "OPENBLAS_NUM_THREADS=1", "MKL_NUM_THREADS=1", "PYTHONUNBUFFERED=1",
                          "TRAINYARD_V1=1e-3", "TRAINYARD_V2=/job/runs/sweep/train/lr=1e-3"));
}

TEST(Launch, NumbersTheFilesOfLaterAttempts) {
  const model::Launch launch = launch_of("groups: [{name: g, tasks: [{id: t, command: x}]}]", 0, 3);
  EXPECT_EQ(launch.task_directory, "/job/runs/sweep/g/t");
  EXPECT_EQ(launch.stdout_path, "/job/runs/sweep/g/t/stdout.3.log");
  EXPECT_EQ(launch.stderr_path, "/job/runs/sweep/g/t/stderr.3.log");
  EXPECT_EQ(launch.result_path, "/job/runs/sweep/g/t/result.3.json");
  EXPECT_THAT(launch.environment, Contains("TRAINYARD_ATTEMPT=3"));
  EXPECT_THAT(launch.environment, Contains("TRAINYARD_RESULT=/job/runs/sweep/g/t/result.3.json"));
}

TEST(Launch, HasVariablesForValuesInTextsForTheShellAndNotInLists) {
  constexpr std::string_view kText =
      "groups:\n"
      "- name: my group\n"
      "  matrix: {name: [\"it's\"]}\n"
      "  tasks:\n"
      "  - {id: a, command: 'echo {name} \"{name}\" {task_dir} ${HOME} {{name}} {group} "
      "{task_id}'}\n"
      "  - {id: b, command: [echo, '{name}', '\"{name}\"', '${HOME}', '{run_dir}/{group}', null, "
      "1]}\n";
  EXPECT_EQ(
      launch_of(kText, 0).arguments[2],
      R"(echo "$TRAINYARD_V1" "${TRAINYARD_V1}" "$TRAINYARD_V2" ${HOME} {name} "$TRAINYARD_V3" "$TRAINYARD_V4")");
  EXPECT_THAT(launch_of(kText, 1).arguments, ElementsAre("echo", "it's", "\"it's\"", "${HOME}",
                                                         "/job/runs/sweep/my group", "null", "1"));
}

TEST(Launch, PutsTheTasksEnvironmentOverItsGroups) {
  const model::Launch launch = launch_of(
      "groups:\n"
      "- name: g\n"
      "  matrix: {n: [7]}\n"
      "  env: {A: group, B: 'n is {n}', C: \"$HOME\"}\n"
      "  tasks: [{id: t, command: x, env: {A: task, D: '{task_dir}', E: ''}}]\n");
  const std::vector<std::string> said(launch.environment.begin() + 12, launch.environment.end());
  EXPECT_THAT(said, ElementsAre("A=task", "B=n is 7", "C=$HOME", "D=/job/runs/sweep/g/t", "E="));
  EXPECT_EQ(launch.user_variables, said);
}

TEST(Launch, SetsNumbersOfThreadsToTheCpusOfTheTask) {
  const auto threads = [](std::string_view cpus) {
    return launch_of("groups: [{cpus: " + std::string(cpus) + ", tasks: [{command: x}]}]")
        .environment[8];
  };
  EXPECT_EQ(threads("3"), "OMP_NUM_THREADS=3");
  EXPECT_EQ(threads("2.5"), "OMP_NUM_THREADS=2");
  EXPECT_EQ(threads("0.5"), "OMP_NUM_THREADS=1");
  EXPECT_EQ(threads("0"), "OMP_NUM_THREADS=1");
}

TEST(Launch, RunsEachCombinationAsSoManyProcessesAsItSays) {
  const Job job = job_of(
      "groups: [{name: g, matrix: {n: [1, 4]}, ranks: '{n}', launcher: mpirun, cpus: 4,\n"
      "  tasks: [{command: [train, '{n}']}]}]",
      in_job_directory());
  for (const std::uint32_t task : {0U, 1U}) {
    const std::string ranks = task == 0 ? "1" : "4";
    const model::Launch launch = job.launch({.task = {task}, .attempt = 1});
    EXPECT_EQ(launch.ranks, std::stoi(ranks));
    EXPECT_EQ(job.plan().shape_of({task}).terms.ranks, launch.ranks);
    EXPECT_THAT(
        std::vector(launch.arguments.begin() + 1, launch.arguments.end()),
        ElementsAre("ranks", "--ranks", ranks, "--launcher", "mpirun", "--", "train", ranks));
    EXPECT_EQ(launch.environment[8], task == 0 ? "OMP_NUM_THREADS=4" : "OMP_NUM_THREADS=1");
  }
}

TEST(Launch, LeavesRanksToTheKeeperUnlessAnotherLauncherStartsThem) {
  const Job job = job_of(
      "groups: [{name: g, ranks: 3, tasks: [{id: a, command: [train]},\n"
      "  {id: b, launcher: built-in, command: [train]},\n"
      "  {id: c, launcher: mpirun, command: [train]}]}]",
      in_job_directory());
  for (const std::uint32_t task : {0U, 1U}) {
    const model::Launch launch = job.launch(
        {.task = {task}, .attempt = 2}, {.gpus = {{.number = 4}, {.number = 5}, {.number = 6}}});
    EXPECT_THAT(launch.arguments, ElementsAre("train"));
    EXPECT_EQ(launch.ranks, 3);
    const std::string directory = task == 0 ? "/job/runs/sweep/g/a" : "/job/runs/sweep/g/b";
    EXPECT_EQ(
        launch.own_ranks,
        (model::OwnRanks{.gpus = 3,
                         .log_paths = {directory + "/rank-1.2.log", directory + "/rank-2.2.log"}}));
  }
  EXPECT_EQ(job.launch({.task = {2}, .attempt = 1}).own_ranks, std::nullopt);
  EXPECT_EQ(launch_of("groups: [{tasks: [{command: x}]}]").own_ranks, std::nullopt);
}

TEST(Launch, DealsTheGpusThatTheJobFileShowsToItsRanks) {
  const auto gpus = [](const std::string& more) {
    return launch_of("groups: [{name: g, " + more + ", tasks: [{ranks: 2, command: x}]}]")
        .own_ranks->gpus;
  };
  EXPECT_EQ(gpus("env: {CUDA_VISIBLE_DEVICES: '0,3'}"), 2);
  EXPECT_EQ(gpus("env: {HIP_VISIBLE_DEVICES: '1'}"), 1);
  EXPECT_EQ(gpus("env: {A: b}"), 0);
  // It receives its GPUs later.
  EXPECT_EQ(gpus("env: {CUDA_VISIBLE_DEVICES: '0,3'}, two-phase: true"), 0);
}

TEST(Launch, GivesRanksACpuEachUnlessSomethingElseIsSaid) {
  const Job job = job_of(
      "groups: [{name: g, tasks: [{id: a, ranks: 3, command: x},"
      " {id: b, ranks: 3, cpus: 1, command: x}, {id: c, command: x}]}]",
      in_job_directory());
  std::vector<std::int64_t> cpus;
  for (const std::uint32_t task : {0U, 1U, 2U}) {
    cpus.push_back(job.plan().shape_of({task}).terms.request.cpus.milli);
  }
  EXPECT_THAT(cpus, ElementsAre(3'000, 1'000, 1'000));
}

TEST(Launch, LeavesWhatTheUserSet) {
  constexpr std::string_view kText =
      "groups: [{name: g, cpus: 2, env: {OMP_NUM_THREADS: 8, PYTHONUNBUFFERED: ''}, "
      "tasks: [{id: t, command: x}]}]";
  const model::Launch launch = launch_of(kText, 0, 1, {"PATH", "MKL_NUM_THREADS"});
  const std::vector<std::string> rest(launch.environment.begin() + 8, launch.environment.end());
  EXPECT_THAT(rest,
              ElementsAre("OPENBLAS_NUM_THREADS=2", "OMP_NUM_THREADS=8", "PYTHONUNBUFFERED="));
}

TEST(Launch, RunsWhereItIsTold) {
  const auto directory = [](std::string_view said) {
    return launch_of(
               "groups: [{name: g, matrix: {n: [7]}, working-directory: elsewhere, tasks: "
               "[{id: t, command: x, working-directory: '" +
               std::string(said) + "'}]}]")
        .working_directory;
  };
  EXPECT_EQ(directory("src/"), "/job/src");
  EXPECT_EQ(directory("../other"), "/other");
  EXPECT_EQ(directory("/abs"), "/abs");
  EXPECT_EQ(directory("{task_dir}"), "/job/runs/sweep/g/t");
  EXPECT_EQ(directory("n{n}"), "/job/n7");
  EXPECT_EQ(launch_of("groups: [{working-directory: x, tasks: [{command: y}]}]").working_directory,
            "/job/x");
}

TEST(Launch, RunsInTheDirectoryOfACommandThatHasMoved) {
  const std::string text = "groups: [{working-directory: /orig, tasks: [{id: t, command: x}]}]";
  LoadOptions options = in_job_directory();
  options.moved_directory = {.was = "/orig", .is = "/copy"};
  const Job moved = job_of(text, options);
  EXPECT_EQ(moved.launch({.task = {0}, .attempt = 1}, {}).working_directory, "/copy");
  EXPECT_EQ(moved.fingerprint({0}), job_of(text, in_job_directory()).fingerprint({0}))
      << "it is the same task";
  options.moved_directory->was = "/else";
  EXPECT_EQ(job_of(text, options).launch({.task = {0}, .attempt = 1}, {}).working_directory,
            "/orig");
}

TEST(Launch, HasTheNamesOfThereOnAMachineWithDirectoriesOfItsOwn) {
  const Job job = job_of(
      "groups:\n"
      "- {name: a, tasks: [{id: one, command: x}]}\n"
      "- name: b\n"
      "  needs: [a]\n"
      "  ranks: 2\n"
      "  launcher: mpirun\n"
      "  tasks:\n"
      "  - {id: two, working-directory: src,\n"
      "     command: [x, '{needs.a.dir}', '{needs.a.result.model}', '{run_dir}', '{task_dir}', "
      "/job/y]}\n",
      in_job_directory());
  const model::Grant grant{
      .program = "/opt/trainyard",
      .elsewhere = {.run = {.here = "/job/runs/sweep", .there = "/far/.trainyard/sweep-1"},
                    .work = {.here = "/job", .there = "/far"}}};
  const auto result_of = [](const std::string&, const std::string&) {
    return std::optional<std::string>(R"({"model":"/job/runs/sweep/a/one/m"})");
  };
  const model::Launch launch = job.launch({.task = {1}, .attempt = 2}, grant, result_of);
  EXPECT_THAT(launch.arguments,
              ElementsAre("/opt/trainyard", "ranks", "--ranks", "2", "--launcher", "mpirun", "--",
                          "x", "/far/.trainyard/sweep-1/a/one", "/far/.trainyard/sweep-1/a/one/m",
                          "/far/.trainyard/sweep-1", "/far/.trainyard/sweep-1/b/two", "/job/y"))
      << "what its author has written out stays";
  EXPECT_EQ(launch.working_directory, "/far/src");
  EXPECT_EQ(launch.task_directory, "/far/.trainyard/sweep-1/b/two");
  EXPECT_EQ(launch.run_directory, "/far/.trainyard/sweep-1");
  EXPECT_EQ(launch.stdout_path, "/far/.trainyard/sweep-1/b/two/stdout.2.log");
  EXPECT_THAT(launch.environment, Contains("TRAINYARD_RUN_DIR=/far/.trainyard/sweep-1"));
  EXPECT_THAT(launch.environment,
              Contains("TRAINYARD_RESULT=/far/.trainyard/sweep-1/b/two/result.2.json"));
  EXPECT_THAT(launch.needed_directories, Contains("/job/runs/sweep/a/one"));
}

TEST(Launch, IsInACopyOfTheCodeWhereItWouldBeInTheOriginal) {
  Job job = job_of(
      "groups:\n"
      "- name: g\n"
      "  tasks:\n"
      "  - {id: a, command: x}\n"
      "  - {id: b, command: x, working-directory: sub}\n"
      "  - {id: c, command: x, working-directory: /job/sub}\n"
      "  - {id: d, command: x, working-directory: ..}\n"
      "  - {id: e, command: x, working-directory: '{task_dir}'}\n");
  const std::uint64_t before = job.fingerprint({1});
  EXPECT_EQ(job.code_copy(), std::nullopt);
  const run::CodeCopy copy{.root = "/job", .path = "/job/runs/sweep/trainyard.code"};
  job.work_in(copy);
  EXPECT_EQ(job.code_copy(), copy);
  std::vector<std::string> places;
  for (std::uint32_t task = 0; task < 5; ++task) {
    const model::Launch launch = job.launch({.task = {task}, .attempt = 1});
    places.push_back(launch.working_directory);
    EXPECT_EQ(launch.stdout_path, launch.task_directory + "/stdout.log");
    EXPECT_EQ(launch.task_directory, "/job/runs/sweep/g/" + job.task_id({task}));
  }
  EXPECT_THAT(places, ElementsAre(copy.path, copy.path + "/sub", copy.path + "/sub", "/",
                                  "/job/runs/sweep/g/e"));
  EXPECT_EQ(job.fingerprint({1}), before) << "it computes the same";
}

TEST(Launch, IsRefusedInACopyOfTheCodeThatALinkHasReplaced) {
  const sys::TemporaryDirectory place;
  place.make("evil");
  Job job = job_of(
      "groups:\n"
      "- name: g\n"
      "  tasks:\n"
      "  - {id: a, command: x}\n"
      "  - {id: b, command: x, working-directory: ..}\n");
  job.work_in({.root = "/job", .path = place / "code"});
  const auto reason = [&job](std::uint32_t task) {
    return job.launch({.task = {task}, .attempt = 1}).cannot_start;
  };
  EXPECT_EQ(reason(0), "");
  std::filesystem::create_directory_symlink(place / "evil", place / "code");
  EXPECT_THAT(reason(0), HasSubstr("was replaced by a symbolic link"));
  EXPECT_EQ(reason(1), "") << "it does not work in the copy";
}

}  // namespace
}  // namespace trainyard::job
