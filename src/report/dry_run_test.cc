// --dry-run shows everything that a run would do.
#include "report/dry_run.h"

#include <string_view>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <nlohmann/json_fwd.hpp>

#include "base/bytes.h"
#include "base/time.h"
#include "job/learned.h"
#include "job/task_keys.h"
#include "job/test_job.h"
#include "job/test_task_keys.h"
#include "model/resources.h"
#include "model/status.h"
#include "sys/test_directory.h"

namespace trainyard::report {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::string_view kText =
    "groups:\n"
    "- {name: prepare, memory: 1GB, tasks: [{id: get, command: [./get, 'a b']}]}\n"
    "- name: train\n"
    "  matrix: {lr: [1e-3, 1e-4]}\n"
    "  max-parallel: 2\n"
    "  fail-fast: true\n"
    "  memory: 500MB\n"
    "  cpus: 2\n"
    "  time-limit: 2h\n"
    "  env: {NOTE: 'lr is {lr}'}\n"
    "  tasks: [{command: './train --lr {lr}'}]\n";

TEST(DryRun, ShowsEverythingOfEveryTask) {
  EXPECT_EQ(dry_run_text(job::job_of(kText), 2),
            "job sweep: 3 tasks in 2 groups\n"
            "job file: /job/sweep.yaml\n"
            "run directory: /job/runs/sweep\n"
            "machine: 4 CPUs, 20 GB of memory, 18 GB available to tasks (2 GB stays free)\n"
            "at once: as many tasks as their CPUs and memory allow\n"
            "\n"
            "group prepare\n"
            "  task get\n"
            "    command      ./get 'a b'\n"
            "    directory    /job\n    requests     1 CPU, 1 GB of memory\n"
            "    time limit   none\n"
            "    stdout       /job/runs/sweep/prepare/get/stdout.log\n"
            "    stderr       /job/runs/sweep/prepare/get/stderr.log\n"
            "    result       /job/runs/sweep/prepare/get/result.1.json\n"
            "    environment  TRAINYARD_TASK_ID=get\n"
            "                 TRAINYARD_GROUP=prepare\n"
            "                 TRAINYARD_RUN_DIR=/job/runs/sweep\n"
            "                 TRAINYARD_TASK_DIR=/job/runs/sweep/prepare/get\n"
            "                 TRAINYARD_CHECKPOINT_DIR=/job/runs/sweep/prepare/get/checkpoints\n"
            "                 TRAINYARD_RESULT=/job/runs/sweep/prepare/get/result.1.json\n"
            "                 TRAINYARD_ATTEMPT=1\n"
            "                 TRAINYARD_SEED=1543793850\n"
            "                 OMP_NUM_THREADS=1\n"
            "                 OPENBLAS_NUM_THREADS=1\n"
            "                 MKL_NUM_THREADS=1\n"
            "                 PYTHONUNBUFFERED=1\n"
            "\n"
            "group train: needs prepare, at most 2 at once, ends with the first failure\n"
            "  task lr=1e-3\n"
            "    command      /bin/bash -c './train --lr 1e-3'\n"
            "    runs as      TRAINYARD_V1=1e-3 /bin/bash -c './train --lr \"$TRAINYARD_V1\"'\n"
            "    directory    /job\n    requests     2 CPUs, 500 MB of memory\n"
            "    time limit   2h\n"
            "    stdout       /job/runs/sweep/train/lr=1e-3/stdout.log\n"
            "    stderr       /job/runs/sweep/train/lr=1e-3/stderr.log\n"
            "    result       /job/runs/sweep/train/lr=1e-3/result.1.json\n"
            "    environment  TRAINYARD_TASK_ID=lr=1e-3\n"
            "                 TRAINYARD_GROUP=train\n"
            "                 TRAINYARD_RUN_DIR=/job/runs/sweep\n"
            "                 TRAINYARD_TASK_DIR=/job/runs/sweep/train/lr=1e-3\n"
            "                 TRAINYARD_CHECKPOINT_DIR=/job/runs/sweep/train/lr=1e-3/checkpoints\n"
            "                 TRAINYARD_RESULT=/job/runs/sweep/train/lr=1e-3/result.1.json\n"
            "                 TRAINYARD_ATTEMPT=1\n"
            "                 TRAINYARD_SEED=1252252158\n"
            "                 OMP_NUM_THREADS=2\n"
            "                 OPENBLAS_NUM_THREADS=2\n"
            "                 MKL_NUM_THREADS=2\n"
            "                 PYTHONUNBUFFERED=1\n"
            "                 NOTE='lr is 1e-3'\n"
            "                 TRAINYARD_V1=1e-3\n"
            "\n"
            "and 1 task more\n");
}

TEST(DryRun, ShowsATaskThatDiffersInItsMatrixValuesAsOneLine) {
  constexpr std::string_view kLast =
      "\ntasks in one line have the requests and options of the task above them: --json shows each "
      "in "
      "full\n";
  EXPECT_THAT(dry_run_text(job::job_of(kText), 3),
              EndsWith("                 TRAINYARD_V1=1e-3\n"
                       "  task lr=1e-4: NOTE='lr is 1e-4' /bin/bash -c './train --lr 1e-4'\n" +
                       std::string(kLast)));
  const job::Job job = job::job_of(
      "groups: [{name: g, tasks: [{id: a, command: [x]}, {id: b, command: [y], cpus: 2}, "
      "{id: c, command: [z], cpus: 2}]}]");
  const std::string text = dry_run_text(job, 3);
  EXPECT_THAT(text, HasSubstr("  task a\n    command      x\n"));
  EXPECT_THAT(text, HasSubstr("  task b\n    command      y\n")) << "it requests more";
  EXPECT_THAT(text, EndsWith("  task c: z\n" + std::string(kLast)));
  EXPECT_THAT(dry_run_text(job, 2), Not(HasSubstr("--json")));
}

TEST(DryRun, ShowsACommandThatCanBePastedAndThenWhatRuns) {
  const auto lines_of = [](std::string_view command) {
    const std::string text = dry_run_text(
        job::job_of(fmt::format(
            "groups: [{{matrix: {{v: [a b]}}, tasks: [{{id: x, command: {}}}]}}]", command)),
        1);
    const auto begin = text.find("    command");
    return text.substr(begin, text.find("    directory") - begin);
  };
  EXPECT_EQ(lines_of(R"("echo '{v}' {v}")"),
            R"(    command      /bin/bash -c 'echo '\''a b'\'' '\''a b'\'''
    runs as      TRAINYARD_V1='a b' /bin/bash -c 'echo '\'''\''"${TRAINYARD_V1}"'\'''\'' "$TRAINYARD_V1"'
)");
  // No quotes keep a value from ending a document.
  EXPECT_EQ(lines_of(R"("cat <<E\n{v}\nE")"),
            "    command      TRAINYARD_V1='a b' /bin/bash -c 'cat <<E\n${TRAINYARD_V1}\nE'\n");
  EXPECT_EQ(lines_of("echo"), "    command      /bin/bash -c echo\n");
  EXPECT_EQ(lines_of("[echo, '{v}']"), "    command      echo 'a b'\n");
  EXPECT_EQ(lines_of("'echo # {v}'"), "    command      /bin/bash -c 'echo # '\n");
}

TEST(DryRun, ShowsTheLimitsOfMachineAndConfiguration) {
  job::LoadOptions options = job::in_job_directory();
  options.settings = {"scheduler.max-process=1"};
  const job::Job job = job::job_of(kText, options,
                                   {.memory = gb(20),
                                    .cpus = model::cpus(4),
                                    .processes_max = 90,
                                    .processes_max_reason = "512 open files"});
  EXPECT_THAT(dry_run_text(job, 0), HasSubstr(" stays free)\n"
                                              "at once: at most 1 task, and at most 90 processes, "
                                              "limited by 512 open files\n"
                                              "\nand 3 tasks more\n"));
}

TEST(DryRun, ShowsOfAResumedRunWhatWouldRunAgainAndUnderWhichNumber) {
  const job::Job job = job::job_of(kText);
  ResumedPlan resumed{.plan = job.plan(), .notes = {"1 of 3 is kept", "task 'x' is new"}};
  resumed.plan.tasks[0].before = model::Verdict::Finished;
  resumed.plan.tasks[1].first_attempt = 3;
  const std::string text = dry_run_text(job, 1, &resumed);
  EXPECT_THAT(text, HasSubstr("\n1 of 3 is kept\ntask 'x' is new\n\ngroup train: needs prepare"));
  EXPECT_THAT(text, HasSubstr("  task lr=1e-3\n    attempt      3\n"));
  EXPECT_THAT(text, HasSubstr("/job/runs/sweep/train/lr=1e-3/stdout.3.log\n"));
  EXPECT_THAT(text, HasSubstr("TRAINYARD_ATTEMPT=3\n"));
  EXPECT_THAT(text, Not(HasSubstr("task get")));
  EXPECT_THAT(text, HasSubstr("\nand 1 task more\n"));
  const auto json = nlohmann::json::parse(dry_run_json(job, 2, &resumed));
  EXPECT_EQ(json["task_count"], 3);
  EXPECT_EQ(json["finished_before"], 1);
  EXPECT_EQ(json["notes"][1], "task 'x' is new");
  ASSERT_EQ(json["tasks"].size(), 2U);
  EXPECT_EQ(json["tasks"][0]["attempt"], 3);
  EXPECT_EQ(json["tasks"][1]["attempt"], 1);
}

TEST(DryRun, NamesTheCommandThatStandsForAJobFile) {
  const job::Job job = job::job_of(kText);
  const std::string text = dry_run_text(job, 1, nullptr, "python3 fit.py");
  EXPECT_THAT(text, HasSubstr("\ncommand: python3 fit.py\nrun directory: "));
  EXPECT_THAT(text, Not(HasSubstr("job file")));
  const auto json = nlohmann::json::parse(dry_run_json(job, 1, nullptr, "python3 fit.py"));
  EXPECT_TRUE(json["job_file"].is_null());
  EXPECT_EQ(nlohmann::json::parse(dry_run_json(job, 1))["job_file"], "/job/sweep.yaml");
}

TEST(DryRun, NamesTheMachinesThatItDidNotCheck) {
  const auto notes_on = [](const std::string& machines) {
    job::LoadOptions options = job::in_job_directory();
    options.settings = {"machines=" + machines};
    const job::Job job = job::job_of(kText, options);
    const auto notes = nlohmann::json::parse(dry_run_json(job, 0)).at("notes");
    for (const auto& note : notes) {
      EXPECT_THAT(dry_run_text(job, 0), HasSubstr("\n" + note.get<std::string>() + "\n"));
    }
    return notes.dump();
  };
  EXPECT_EQ(notes_on("local"), "[]");
  EXPECT_EQ(notes_on("local,lab1"),
            "[\"not checked: machine lab1 (a dry run connects to no machine)\"]");
  EXPECT_EQ(
      notes_on("lab1,slurm"),
      "[\"not checked: machine lab1 and the nodes of Slurm (a dry run connects to no machine)\"]");
}

TEST(DryRun, SaysTimesWithTheirUnits) {
  const std::string text = dry_run_text(
      job::job_of("groups: [{name: g, time-limit: 1-12:30, duration: 1m30s, start-after: 90m, "
                  "tasks: [{id: a, command: x}]}]"),
      1);
  EXPECT_THAT(text, HasSubstr("\n    start after  1h30m\n"));
  EXPECT_THAT(text, HasSubstr("\n    expected     1m30s\n"));
  EXPECT_THAT(text, HasSubstr("\n    time limit   1d12h30m\n"));
}

TEST(DryRun, NamesTheTaskThatIsTriedFirst) {
  const job::Job job = job::job_of(
      "try-first: 1\n"
      "groups:\n"
      "- name: g\n"
      "  tasks: [{id: a, memory: 1GB, command: x}, {id: b, memory: 3GB, command: x},\n"
      "          {id: c, memory: 2GB, command: x}]\n"
      "- {name: h, tasks: [{id: a, command: x}]}\n");
  EXPECT_THAT(dry_run_text(job, 9), HasSubstr("\ngroup g: runs b first\n"));
  EXPECT_THAT(dry_run_text(job, 9), HasSubstr("\ngroup h: needs g\n")) << "there is only one";
  ResumedPlan resumed{.plan = job.plan()};
  resumed.plan.tasks[1].before = model::Verdict::Finished;
  resumed.plan.reached = {{.task = {0}, .memory = gb(4)}};
  const auto json = nlohmann::json::parse(dry_run_json(job, 9, &resumed));
  EXPECT_EQ(json["groups"][0]["try_first"], "a");
  EXPECT_TRUE(json["groups"][1]["try_first"].is_null());
}

TEST(DryRun, SaysWhatOfATaskIsLearnedAndFromWhere) {
  const sys::TemporaryDirectory directory;
  directory.write(
      "sweep.yaml",
      "groups:\n"
      "- {name: g, gpu-memory: auto, tasks: [{id: a, command: x}, {id: b, command: x}]}\n"
      "- {name: h, memory: 1GB, duration: 1m, tasks: [{id: a, command: x}]}\n");
  job::Learned learned;
  const job::LearnedFrom from{.run = "runs/sweep",
                              .started_unix_ms = 1'763'800'000'000,
                              .host = "lab1",
                              .gpu = "NVIDIA H100"};
  learned.add(
      "g", "a",
      {.memory = gb(1), .memory_at_least = true, .gpu_memory = gb(4), .train = Duration{60'000}},
      from);
  learned.add("h", "a", {.memory = gb(1)}, from);
  model::Capacity machine = job::small_machine();
  machine.gpus = {{.number = 0, .name = "NVIDIA H100", .memory = gb(80)}};
  const job::LoadOptions options{
      .job_file = "sweep.yaml", .current_directory = directory.path(), .host = "lab1"};
  const auto before = job::Job::load(options, machine);
  ASSERT_TRUE(before);
  directory.make(".trainyard");
  directory.write(".trainyard/sweep.yaml.learned.json",
                  job::measured_from(*before, learned).to_json());
  const auto job = job::Job::load(options, machine);
  ASSERT_TRUE(job);
  EXPECT_THAT(dry_run_text(*job, 1),
              HasSubstr("    requests     0.25 CPUs, 1.1 GB of memory, 4.4 GB on 1 GPU\n"
                        "    learned      memory 1.1 GB (it may need more), from runs/sweep of "
                        "2025-11-22\n"
                        "                 gpu-memory 4.4 GB, from runs/sweep of 2025-11-22\n"
                        "                 duration 1m, from runs/sweep of 2025-11-22\n"));
  const auto json = nlohmann::json::parse(dry_run_json(*job, 3));
  EXPECT_EQ(json["tasks"][0]["learned"]["memory_bytes"], nlohmann::json::parse(R"({
    "value": 1100000000, "of_this_run": false, "at_least": true, "run": "runs/sweep",
    "started_unix_ms": 1763800000000, "host": "lab1", "gpu": "NVIDIA H100"})"));
  EXPECT_EQ(json["tasks"][0]["learned"]["duration_ms"]["value"], 60'000);
  EXPECT_TRUE(json["tasks"][0]["reached"].is_null());
  EXPECT_EQ(json["tasks"][2]["learned"], nlohmann::json::parse(R"({
    "memory_bytes": null, "gpu_memory_bytes": null, "duration_ms": null})"));

  ResumedPlan resumed{.plan = job->plan()};
  resumed.plan.tasks[0].before = model::Verdict::Finished;
  resumed.plan.taken = {{.task = {0}, .memory = gb(2), .gpu_memory = gb(5)}};
  resumed.plan.reached = {{.task = {2}, .memory = gb(3), .tries = {.train = 2}}};
  const std::string text = dry_run_text(*job, 3, &resumed);
  EXPECT_THAT(text, HasSubstr("    learned      memory 2.4 GB, in this run\n"
                              "                 gpu-memory 6 GB, in this run\n"
                              "                 duration 1m, from runs/sweep of 2025-11-22\n"));
  EXPECT_THAT(text, HasSubstr("    resumes with 3 GB of memory, as memory ran out 2 times\n"));
  const auto again = nlohmann::json::parse(dry_run_json(*job, 3, &resumed));
  EXPECT_EQ(again["tasks"][0]["learned"]["memory_bytes"],
            nlohmann::json::parse(R"({"value": 2400000000, "of_this_run": true})"));
  EXPECT_EQ(again["tasks"][1]["reached"], nlohmann::json::parse(R"({
    "memory_bytes": 3000000000, "gpu_memory_bytes": 0, "alone": false, "tries": 2})"));
}

TEST(DryRun, IsJsonForPrograms) {
  const auto json = nlohmann::json::parse(dry_run_json(job::job_of(kText), 2));
  EXPECT_EQ(json["name"], "sweep");
  EXPECT_EQ(json["task_count"], 3);
  EXPECT_EQ(json["machine"]["memory_to_give_bytes"], gb(18).count);
  EXPECT_EQ(json["configuration"]["scheduler.interval"]["value"], "1m");
  EXPECT_EQ(
      json["groups"][1],
      nlohmann::json::parse(
          R"({"name": "train", "needs": ["prepare"], "needs_by_task": [], "max_parallel": 2, "fail_fast": true,
              "try_first": null, "keep": null})"));
  ASSERT_EQ(json["tasks"].size(), 2U);
  const auto& task = json["tasks"][1];
  EXPECT_EQ(task["group"], "train");
  EXPECT_EQ(task["id"], "lr=1e-3");
  EXPECT_EQ(task["matrix"], nlohmann::json::parse(R"({"lr": "1e-3"})"));
  EXPECT_EQ(task["command_line"], "/bin/bash -c './train --lr 1e-3'");
  EXPECT_EQ(task["command"],
            nlohmann::json::parse(R"(["/bin/bash", "-c", "./train --lr \"$TRAINYARD_V1\""])"));
  EXPECT_EQ(task["command_values"], nlohmann::json::parse(R"({"TRAINYARD_V1": "1e-3"})"));
  EXPECT_EQ(json["tasks"][0]["command_line"], "./get 'a b'");
  EXPECT_EQ(json["tasks"][0]["command_values"], nlohmann::json::object());
  EXPECT_EQ(task["environment"]["NOTE"], "lr is 1e-3");
  EXPECT_EQ(task["environment"].size(), 14U);
  EXPECT_EQ(task["working_directory"], "/job");
  EXPECT_EQ(task["memory_bytes"], mb(500).count);
  EXPECT_EQ(task["cpus"], 2);
  EXPECT_EQ(task["disk_bytes"], 0);
  EXPECT_EQ(task["time_limit_ms"], 7'200'000);
}

TEST(DryRun, ShowsEveryKeyOfTheTable) {
  for (const job::TaskKeyInfo& info : job::task_keys()) {
    const std::string without = job::job_text(job::needed_by(info.key), "");
    const std::string with = job::job_text(job::needed_by(info.key) + job::said(info), "");
    const job::Job before = job::job_of(without, job::in_job_directory(), job::examples_machine());
    const job::Job after = job::job_of(with, job::in_job_directory(), job::examples_machine());
    EXPECT_NE(dry_run_text(before, 1), dry_run_text(after, 1)) << info.name;
    EXPECT_NE(dry_run_json(before, 1), dry_run_json(after, 1)) << info.name;
  }
}

}  // namespace
}  // namespace trainyard::report
