#include "report/plan_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/bytes.h"

namespace trainyard::report {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr Duration kMinute{60'000};

/// Three tasks of a minute, each on half of the only GPU; the third waits.
struct Played {
  model::Plan plan;
  PlanView view;

  explicit Played(std::int64_t cpus = 4) {
    plan.groups = {{.name = "train"}};
    plan.shapes = {
        {.group = {0},
         .terms = {
             .request = {.memory = gb(1), .cpus = model::cpus(1), .gpus = 1, .gpu_memory = gb(4)},
             .train_expected = kMinute}}};
    plan.tasks.assign(3, {.shape = {0}});
    const model::Capacity machine{.memory = gb(10),
                                  .cpus = model::cpus(cpus),
                                  .gpus = {{.number = 0, .pci = "a", .memory = gb(8)}}};
    const model::Policy policy{.memory_remain = Bytes{0}, .gpu_memory_remain = Bytes{0}};
    auto run = plan::play_run(plan, policy, {{.name = "here", .capacity = machine}},
                              {3, {.train = kMinute, .memory = gb(1), .gpu_memory = gb(4)}});
    EXPECT_TRUE(run);
    view = {.job = "sweep",
            .task_ids = {"train/a", "train/b", "train/<c>"},
            .runs = {{.machine = "1x8GB",
                      .kinds = {{.machines = 1, .capacity = machine}},
                      .plan = &plan,
                      .run = run.value()}}};
  }
};

TEST(PlanReport, NamesTheMachineThatCannotRunIt) {
  Played played;
  played.view.runs.insert(played.view.runs.begin(),
                          {.machine = "1x4GB", .why_not = "a task can never run here: too large"});
  played.view.runs.push_back(played.view.runs.back());
  const std::string text = plan_text(played.view);
  EXPECT_THAT(text, HasSubstr("sweep\n1x4GB: cannot run it: a task can never run here: too large\n"
                              "1x8GB: 3 tasks in 2m\n"));
  EXPECT_THAT(text, HasSubstr("compared:\n"
                              "  1x4GB  cannot run it\n"
                              "  1x8GB        2m\n"
                              "  1x8GB        2m  1.00 x the speed of the first\n"));
  EXPECT_THAT(plan_json(played.view), HasSubstr("\"why_not\": \"a task can never run here"));
  EXPECT_THAT(plan_html(played.view), HasSubstr("<h2>1x4GB: cannot run it</h2>"));
}

TEST(PlanReport, CallsLittleNotNothing) {
  Played played;
  played.plan.shapes.front().terms.request.memory = mb(1);
  EXPECT_THAT(
      plan_text(played.view),
      HasSubstr(
          "  memory   with tasks 100 % of the time;  <1 % of the memory reserved on average\n"));
  played.plan.shapes.front().terms.request.memory = Bytes{0};
  EXPECT_THAT(
      plan_text(played.view),
      HasSubstr(
          "  memory   with tasks   0 % of the time;   0 % of the memory reserved on average\n"));
}

TEST(PlanReport, SaysHowLongItTakesAndWhatWaits) {
  const Played played;
  EXPECT_EQ(plan_text(played.view),
            "sweep\n"
            "1x8GB: 3 tasks in 2m\n"
            "  GPU 0    with tasks 100 % of the time;  75 % of its memory reserved on average\n"
            "  CPUs     with tasks 100 % of the time;  38 % of the CPUs reserved on average\n"
            "  memory   with tasks 100 % of the time;  15 % of the memory reserved on average\n"
            "  time during which tasks wait, by reason:\n"
            "    1m: needs 4 GB on its GPU\n");
}

TEST(PlanReport, NamesTheGpuWhereTheCpusThatGoWithItAreReservedAsWell) {
  EXPECT_THAT(plan_text(Played(2).view), HasSubstr("by reason:\n    1m: needs 4 GB on its GPU\n"));
  EXPECT_THAT(plan_text(Played(1).view), HasSubstr("by reason:\n    2m: needs 1 CPU"))
      << "the GPU has room for another task";
}

TEST(PlanReport, CountsTheTimeInWhichTwoKindsOfTasksWaitForOneReasonOnce) {
  Played played;
  played.view.runs.front().run.waits = {{.at = Instant{},
                                         .shape = {0},
                                         .reason = "x, 1 free",
                                         .brief = "x",
                                         .cause = model::Cause::Cpus},
                                        {.at = Instant{kMinute / 2},
                                         .shape = {1},
                                         .reason = "x, 0 free",
                                         .brief = "x",
                                         .cause = model::Cause::Cpus},
                                        {.at = Instant{kMinute}, .shape = {0}},
                                        {.at = Instant{kMinute + kMinute / 2}, .shape = {1}}};
  EXPECT_THAT(plan_text(played.view),
              HasSubstr("  time during which tasks wait, by reason:\n    1m30s: x\n"));
  const auto waits = nlohmann::json::parse(plan_json(played.view)).at("runs").at(0).at("waits");
  EXPECT_EQ(waits,
            nlohmann::json::parse(R"([{"cause": "cpus", "reason": "x", "waited_ms": 90000}])"));
}

TEST(PlanReport, NamesTheTasksThatDoNotFinish) {
  Played played;
  std::vector<plan::PlayedTask>& tasks = played.view.runs.front().run.tasks;
  tasks[1].finished = false;
  tasks[2].finished = false;
  tasks[2].attempts = 0;
  EXPECT_THAT(
      plan_text(played.view),
      HasSubstr("1x8GB: 1 of 3 tasks finish in 2m\n"
                "  does not finish: train/b (exceeds the time limit or the memory)\n"
                "  does not start: train/<c> (a task that it needs does not finish, or 'if' does "
                "not hold)\n"
                "  GPU 0 "));
}

TEST(PlanReport, GivesARangeWhereNobodyKnowsWhatSharingCosts) {
  Played played;
  played.view.runs.front().at_the_worst = 3 * kMinute;
  EXPECT_THAT(
      plan_text(played.view),
      HasSubstr("1x8GB: 3 tasks in 2m, or 3m if tasks that share a GPU slow each other down\n"));
  EXPECT_THAT(plan_json(played.view), HasSubstr(R"("makespan_at_the_worst_ms": 180000)"));
  EXPECT_THAT(
      plan_html(played.view),
      HasSubstr("<h2>1x8GB: 2m, or 3m if tasks that share a GPU slow each other down</h2>"));
  played.view.runs.front().at_the_worst = 2 * kMinute;
  EXPECT_THAT(plan_text(played.view), HasSubstr("1x8GB: 3 tasks in 2m\n"));
}

TEST(PlanReport, PlaysTasksThatShareAGpuSlowerThanOnesThatHaveThemToThemselves) {
  const Played played;
  const model::Policy policy{.memory_remain = Bytes{0}, .gpu_memory_remain = Bytes{0}};
  const model::Capacity& machine = played.view.runs.front().kinds.front().capacity;
  const auto ended = [&](int share) {
    const plan::Course course{
        .train = kMinute, .memory = gb(1), .gpu_share = share, .gpu_memory = gb(4)};
    return plan::play_run(played.plan, policy, {{.name = "here", .capacity = machine}}, {3, course})
        .value()
        .ended;
  };
  EXPECT_EQ(ended(500), Instant{2 * kMinute});
  // Two need two minutes, and the third one more.
  EXPECT_EQ(ended(1000), Instant{3 * kMinute});
  // Each as long as it would be alone at three quarters: 1.5 minutes, and the third alone.
  EXPECT_EQ(ended(750), Instant{2 * kMinute + kMinute / 2});
}

TEST(PlanReport, ComparesMachines) {
  Played played;
  PlannedRun faster = played.view.runs.front();
  faster.machine = "2x8GB";
  faster.run.ended = Instant{kMinute};
  played.view.runs.push_back(faster);
  faster.machine = "2x8GB, 64GB of memory, 8 CPUs";
  played.view.runs.push_back(faster);
  EXPECT_THAT(
      plan_text(played.view),
      HasSubstr("compared:\n"
                "  1x8GB                                2m\n"
                "  2x8GB                                1m  2.00 x the speed of the first\n"
                "  2x8GB, 64GB of memory, 8 CPUs        1m  2.00 x the speed of the first\n"));
}

TEST(PlanReport, CountsWhatTheTasksOfEachRunRequest) {
  Played played;
  model::Plan lesser = played.plan;
  lesser.shapes.front().terms.request.cpus = model::Cpus{500};
  PlannedRun run = played.view.runs.front();
  run.plan = &lesser;
  played.view.runs.push_back(run);
  const std::string text = plan_text(played.view);
  const std::string cpus = "CPUs     with tasks 100 % of the time;  ";
  EXPECT_THAT(text, HasSubstr(cpus + "38 % of the CPUs reserved on average\n"));
  EXPECT_THAT(text, HasSubstr(cpus + "19 % of the CPUs reserved on average\n"));
}

TEST(PlanReport, IsJsonForProgramsAndAPageForPeople) {
  const Played played;
  const std::string json = plan_json(played.view);
  EXPECT_THAT(json, HasSubstr(R"("makespan_ms": 120000)"));
  EXPECT_THAT(json, HasSubstr(R"("id": "train/<c>")"));
  const std::string html = plan_html(played.view);
  EXPECT_THAT(html, HasSubstr("<svg"));
  EXPECT_THAT(html, HasSubstr("train/&lt;c&gt;: 1m to 2m"));
  EXPECT_THAT(html, Not(HasSubstr("<c>")));
}

/// Two machines of one GPU that takes one task at a time, and one without; a fifth task trains on
/// CPUs.
PlanView of_three_machines(const model::Plan& plan) {
  const model::Capacity large{.memory = gb(10),
                              .cpus = model::cpus(4),
                              .gpus = {{.number = 0, .pci = "a", .memory = gb(8)}}};
  const model::Capacity small{.memory = gb(10), .cpus = model::cpus(4)};
  const model::Policy policy{.memory_remain = Bytes{0}, .gpu_memory_remain = Bytes{0}};
  auto run =
      plan::play_run(plan, policy, {{.capacity = large}, {.capacity = large}, {.capacity = small}},
                     std::vector<plan::Course>(plan.tasks.size(), {.train = kMinute}));
  EXPECT_TRUE(run);
  return {.job = "sweep",
          .task_ids = {"a", "b", "c", "d", "e"},
          .runs = {{.machine = "2x(1x8GB)+1x(4 CPUs)",
                    .kinds = {{.text = "2x(1x8GB)", .machines = 2, .capacity = large},
                              {.text = "1x(4 CPUs)", .machines = 1, .capacity = small}},
                    .plan = &plan,
                    .run = run.value()}}};
}

model::Plan five_tasks() {
  model::Plan plan;
  plan.groups = {{.name = "train"}};
  plan.shapes = {{.group = {0}, .terms = {.request = {.cpus = model::cpus(1), .gpus = 1}}},
                 {.group = {0}, .terms = {.request = {.memory = gb(9), .cpus = model::cpus(4)}}}};
  plan.tasks.assign(4, {.shape = {0}});
  plan.tasks.push_back({.shape = {1}});
  return plan;
}

TEST(PlanReport, TellsEachKindOfSeveralMachines) {
  const model::Plan plan = five_tasks();
  const std::string text = plan_text(of_three_machines(plan));
  EXPECT_THAT(text, HasSubstr("2x(1x8GB)+1x(4 CPUs): 5 tasks in 2m\n"
                              "  2x(1x8GB): tasks ran on 2 of 2 machines\n"
                              "    GPUs     with tasks 100 % of the time; 100 % of their "
                              "memory reserved on average\n"));
  EXPECT_THAT(
      text,
      HasSubstr(
          "  1x(4 CPUs): tasks ran on 1 of 1 machine\n"
          "    CPUs     with tasks  50 % of the time;  50 % of the CPUs reserved on average\n"));
}

TEST(PlanReport, SaysOnWhichMachineEachTaskIs) {
  const model::Plan plan = five_tasks();
  const PlanView view = of_three_machines(plan);
  const auto run = nlohmann::json::parse(plan_json(view))["runs"][0];
  std::vector<int> machines;
  for (const auto& task : run["tasks"]) machines.push_back(task["machine"]);
  EXPECT_THAT(machines, ElementsAre(0, 1, 0, 1, 2));
  EXPECT_EQ(run["kinds"][0]["kind"], "2x(1x8GB)");
  EXPECT_EQ(run["kinds"][0]["machines"], 2);
  EXPECT_EQ(run["kinds"][0]["used"], 2);
  EXPECT_EQ(run["kinds"][1]["devices"][0]["name"], "CPUs");
  EXPECT_EQ(run["devices"], nullptr) << "there is no one machine";
  const std::string page = plan_html(view);
  EXPECT_THAT(page, HasSubstr(">1: GPU 0</text>"));
  EXPECT_THAT(page, HasSubstr(">2: CPUs</text>"));
  EXPECT_THAT(page, HasSubstr("<td>2x(1x8GB): GPUs</td><td>100 %</td>"));
}

}  // namespace
}  // namespace trainyard::report
