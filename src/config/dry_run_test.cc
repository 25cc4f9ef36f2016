// What --dry-run shows: everything that a run would do.
#include "config/dry_run.h"

#include <string>
#include <string_view>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <nlohmann/json_fwd.hpp>

#include "base/bytes.h"
#include "config/job.h"
#include "config/test_job.h"
#include "model/resources.h"

namespace trainyard {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using testing_only::in_job_directory;
using testing_only::job_of;

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
  EXPECT_EQ(dry_run_text(job_of(kText), 2),
            "job sweep: 3 tasks in 2 groups\n"
            "job file: /job/sweep.yaml\n"
            "run directory: /job/runs/sweep\n"
            "machine: 4 CPUs, 20 GB of memory, of which tasks may have 18 GB (2 GB stays free)\n"
            "at once: as many tasks as their CPUs and memory allow\n"
            "\n"
            "group prepare\n"
            "  task get\n"
            "    command      ./get 'a b'\n"
            "    directory    /job\n"
            "    asks for     1 CPU, 1 GB of memory\n"
            "    time limit   none\n"
            "    stdout       /job/runs/sweep/prepare/get/stdout.log\n"
            "    stderr       /job/runs/sweep/prepare/get/stderr.log\n"
            "    result       /job/runs/sweep/prepare/get/result.json\n"
            "    environment  TRAINYARD_TASK_ID=get\n"
            "                 TRAINYARD_GROUP=prepare\n"
            "                 TRAINYARD_RUN_DIR=/job/runs/sweep\n"
            "                 TRAINYARD_TASK_DIR=/job/runs/sweep/prepare/get\n"
            "                 TRAINYARD_RESULT=/job/runs/sweep/prepare/get/result.json\n"
            "                 TRAINYARD_ATTEMPT=1\n"
            "                 TRAINYARD_SEED=1543793850\n"
            "                 OMP_NUM_THREADS=1\n"
            "                 OPENBLAS_NUM_THREADS=1\n"
            "                 MKL_NUM_THREADS=1\n"
            "                 PYTHONUNBUFFERED=1\n"
            "\n"
            "group train: needs prepare, at most 2 at once, ends with the first failure\n"
            "  task lr=1e-3\n"
            "    command      /bin/sh -c './train --lr 1e-3'\n"
            "    directory    /job\n"
            "    asks for     2 CPUs, 500 MB of memory\n"
            "    time limit   2:00:00\n"
            "    stdout       /job/runs/sweep/train/lr=1e-3/stdout.log\n"
            "    stderr       /job/runs/sweep/train/lr=1e-3/stderr.log\n"
            "    result       /job/runs/sweep/train/lr=1e-3/result.json\n"
            "    environment  TRAINYARD_TASK_ID=lr=1e-3\n"
            "                 TRAINYARD_GROUP=train\n"
            "                 TRAINYARD_RUN_DIR=/job/runs/sweep\n"
            "                 TRAINYARD_TASK_DIR=/job/runs/sweep/train/lr=1e-3\n"
            "                 TRAINYARD_RESULT=/job/runs/sweep/train/lr=1e-3/result.json\n"
            "                 TRAINYARD_ATTEMPT=1\n"
            "                 TRAINYARD_SEED=1252252158\n"
            "                 OMP_NUM_THREADS=2\n"
            "                 OPENBLAS_NUM_THREADS=2\n"
            "                 MKL_NUM_THREADS=2\n"
            "                 PYTHONUNBUFFERED=1\n"
            "                 NOTE='lr is 1e-3'\n"
            "\n"
            "and 1 task more\n");
}

TEST(DryRun, ShowsTheLimitsOfMachineAndConfiguration) {
  LoadOptions options = in_job_directory();
  options.settings = {"scheduler.max-process=1"};
  const Job job = job_of(kText, options,
                         {.memory = gb(20),
                          .cpus = cpus(4),
                          .processes_max = 90,
                          .processes_max_reason = "512 open files"});
  EXPECT_THAT(dry_run_text(job, 0), HasSubstr(" stays free)\n"
                                              "at once: at most 1 task, and at most 90 processes "
                                              "(512 open files)\n"
                                              "\nand 3 tasks more\n"));
}

TEST(DryRun, ShowsOfAResumedRunWhatWouldRunAgainAndUnderWhichNumber) {
  const Job job = job_of(kText);
  ResumedPlan resumed{.plan = job.plan(), .notes = {"1 of 3 is kept", "task 'x' is new"}};
  resumed.plan.tasks[0].finished_before = true;
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

TEST(DryRun, IsJsonForPrograms) {
  const auto json = nlohmann::json::parse(dry_run_json(job_of(kText), 2));
  EXPECT_EQ(json["name"], "sweep");
  EXPECT_EQ(json["task_count"], 3);
  EXPECT_EQ(json["machine"]["memory_to_give_bytes"], gb(18).count);
  EXPECT_EQ(json["configuration"]["scheduler.interval"]["value"], "60");
  EXPECT_EQ(
      json["groups"][1],
      nlohmann::json::parse(
          R"({"name": "train", "needs": ["prepare"], "max_parallel": 2, "fail_fast": true})"));
  ASSERT_EQ(json["tasks"].size(), 2U);
  const auto& task = json["tasks"][1];
  EXPECT_EQ(task["group"], "train");
  EXPECT_EQ(task["id"], "lr=1e-3");
  EXPECT_EQ(task["matrix"], nlohmann::json::parse(R"({"lr": "1e-3"})"));
  EXPECT_EQ(task["command"], nlohmann::json::parse(R"(["/bin/sh", "-c", "./train --lr 1e-3"])"));
  EXPECT_EQ(task["environment"]["NOTE"], "lr is 1e-3");
  EXPECT_EQ(task["environment"].size(), 12U);
  EXPECT_EQ(task["working_directory"], "/job");
  EXPECT_EQ(task["memory_bytes"], mb(500).count);
  EXPECT_EQ(task["cpus"], 2);
  EXPECT_EQ(task["time_limit_ms"], 7'200'000);
}

}  // namespace
}  // namespace trainyard
