// The output of `trainyard learned`.
#include "report/learned_report.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <nlohmann/json_fwd.hpp>

#include "base/bytes.h"
#include "base/time.h"
#include "job/task_keys.h"
#include "report/terminal_text.h"

namespace trainyard::report {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::json;

const job::LearnedFrom kRun{.run = "runs/sweep-2",
                            .started_unix_ms = 1'763'800'000'000,
                            .host = "lab2",
                            .gpu = "NVIDIA A40"};

job::LearnedCell cell(std::string id, Bytes memory) {
  return {.id = std::move(id),
          .taken = {.task = {.memory = memory,
                             .memory_at_least = memory == gb(3),
                             .gpu_memory = gb(6),
                             .train = Duration{95'000}},
                    .from = kRun,
                    .gpu_from = kRun},
          .memory = memory.count + memory.count / 10,
          .gpu_memory = (gb(6) + mb(600)).count,
          .duration = 95'000};
}

LearnedPage learned_page() {
  job::LearnedGroup group{.name = "train", .tasks = 3};
  const auto said = [](std::string text, int line) {
    return job::Job::SaidValue{
        .place = {.line = line, .column = 11}, .text = std::move(text), .fixed = true};
  };
  group.numbers = {
      {.key = job::TaskKey::Memory,
       .said = said("2GB", 4),
       .tasks = 2,
       .taken_most = gb(3).count,
       .at_least = true,
       .reserved_least = gb(2).count,
       .reserved_most = (gb(3) + mb(300)).count,
       .should_be = (gb(3) + mb(300)).count,
       .from = kRun,
       .suggested = "3.3GB"},
      {.key = job::TaskKey::Memory,
       .said = said("1GB", 7),
       .tasks = 1,
       .reserved_least = gb(1).count,
       .reserved_most = gb(1).count},
      {.key = job::TaskKey::GpuMemory,
       .tasks = 3,
       .taken_most = gb(6).count,
       .should_be = (gb(6) + mb(600)).count,
       .from = kRun,
       .asked = true,
       .suggested = "6.6GB"},
      {.key = job::TaskKey::Duration,
       .tasks = 3,
       .taken_most = 95'000,
       .reserved_least = 95'000,
       .reserved_most = 95'000,
       .should_be = 95'000,
       .from = kRun},
  };
  group.cells = {cell("lr=1", gb(2)), cell("lr=2", gb(3))};
  return {.job_file = "sweep.yaml",
          .kept_in = ".trainyard/sweep.yaml.learned.json",
          .here = {.host = "lab1", .gpus = {"NVIDIA H100"}},
          .view = {.groups = {group}, .gone = {{"old", 2}}, .tasks = 4}};
}

TEST(LearnedReport, ShowsWhatIsWrittenAndWasTakenAndComesNext) {
  EXPECT_EQ(
      learned_text(learned_page()),
      "learned estimates of sweep.yaml, kept in .trainyard/sweep.yaml.learned.json\n"
      "\n"
      "train: 3 tasks, 2 known\n"
      "              JOB FILE      USED AT MOST   NEXT RUN        SUGGESTED  FROM\n"
      "  memory      2GB (line 4)  at least 3 GB  2 GB to 3.3 GB  3.3GB      runs/sweep-2 of "
      "2025-11-22 on "
      "lab2, NVIDIA A40\n"
      "  memory      1GB (line 7)  -              1 GB            -\n"
      "  gpu-memory  -             6 GB           all of it       6.6GB      runs/sweep-2 of "
      "2025-11-22 on "
      "lab2, NVIDIA A40\n"
      "  duration    -             1m35s          1m35s           -          runs/sweep-2 of "
      "2025-11-22 on "
      "lab2, NVIDIA A40\n"
      "    TASK  MEMORY         RESERVED NEXT  GPU MEMORY  RESERVED NEXT  TIME   EXPECTED NEXT\n"
      "    lr=1  2 GB           2.2 GB         6 GB        6.6 GB         1m35s  1m35s\n"
      "    lr=2  at least 3 GB  3.3 GB         6 GB        6.6 GB         1m35s  1m35s\n"
      "\n"
      "tasks that are no longer in the job file:\n"
      "  old: 2 tasks\n");
}

TEST(LearnedReport, ShowsTheTasksOfAGroupOnlyWhereTheyDiffer) {
  LearnedPage alike = learned_page();
  alike.view.groups[0].cells = {cell("lr=1", gb(2)), cell("lr=2", gb(2))};
  EXPECT_THAT(learned_text(alike), Not(HasSubstr("lr=1")));

  LearnedPage many = learned_page();
  for (int i = 0; i < 60; ++i) {
    many.view.groups[0].cells.push_back(cell(fmt::format("seed={}", i), gb(1)));
  }
  const std::string text = learned_text(many);
  EXPECT_THAT(text, HasSubstr("    seed=37  "));
  EXPECT_THAT(text, Not(HasSubstr("    seed=38  ")));
  EXPECT_THAT(text, HasSubstr("    and 22 more; --json has them all\n"));
}

TEST(LearnedReport, SaysWhenThereIsNothingOrNobodyUsesIt) {
  LearnedPage nothing = learned_page();
  nothing.view = {};
  EXPECT_EQ(learned_text(nothing),
            "learned estimates of sweep.yaml: none yet; a run in which a task took 1 s or longer "
            "saves them when it ends\n");
  nothing.note = "'x' is not used: not JSON\x1b[2J";
  EXPECT_EQ(learned_text(nothing),
            "learned estimates of sweep.yaml: none; 'x' is not used: not JSON[2J\n");
  LearnedPage unused = learned_page();
  unused.used = false;
  EXPECT_THAT(learned_text(unused),
              HasSubstr("\nscheduler.auto-adjust is off: no run uses it\n\ntrain: 3 tasks"));
}

TEST(LearnedReport, HasAllOfItForPrograms) {
  const Json json = Json::parse(learned_json(learned_page()));
  EXPECT_EQ(json["job_file"], "sweep.yaml");
  EXPECT_EQ(json["learned_file"], ".trainyard/sweep.yaml.learned.json");
  EXPECT_TRUE(json["note"].is_null());
  EXPECT_EQ(json["used"], true);
  EXPECT_EQ(json["tasks"], 4);
  EXPECT_EQ(json["gone"], Json::parse(R"([{"group": "old", "tasks": 2}])"));
  const Json& group = json["groups"][0];
  EXPECT_EQ(group["group"], "train");
  EXPECT_EQ(group["tasks"], 3);
  const Json from = Json::parse(R"({"run": "runs/sweep-2", "started_unix_ms": 1763800000000,
                                    "host": "lab2", "gpu": "NVIDIA A40"})");
  EXPECT_EQ(group["numbers"]["memory_bytes"][0],
            (Json{{"written", {{"text", "2GB"}, {"line", 4}, {"column", 11}, {"of_matrix", false}}},
                  {"tasks", 2},
                  {"taken_at_most", 3'000'000'000},
                  {"at_least", true},
                  {"next_at_least", 2'000'000'000},
                  {"next_at_most", 3'300'000'000},
                  {"suggested", "3.3GB"},
                  {"other_command", false},
                  {"from", from}}));
  EXPECT_TRUE(group["numbers"]["memory_bytes"][1]["taken_at_most"].is_null());
  EXPECT_TRUE(group["numbers"]["memory_bytes"][1]["suggested"].is_null());
  EXPECT_TRUE(group["numbers"]["gpu_memory_bytes"][0]["written"].is_null());
  EXPECT_EQ(group["numbers"]["duration_ms"][0]["taken_at_most"], 95'000);
  ASSERT_EQ(group["cells"].size(), 2U);
  EXPECT_EQ(group["cells"][1]["id"], "lr=2");
  EXPECT_EQ(
      group["cells"][1]["memory_bytes"],
      (Json{
          {"taken", 3'000'000'000}, {"at_least", true}, {"next", 3'300'000'000}, {"from", from}}));
  EXPECT_EQ(group["cells"][1]["duration_ms"],
            (Json{{"taken", 95'000}, {"next", 95'000}, {"from", from}}));
}

}  // namespace
}  // namespace trainyard::report
