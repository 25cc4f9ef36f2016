// The output of `trainyard status`, letter by letter.
#include "report/status_text.h"

#include <filesystem>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <nlohmann/json_fwd.hpp>

#include "base/bytes.h"
#include "model/command.h"
#include "model/resources.h"
#include "model/status.h"
#include "model/waiting.h"
#include "report/digest.h"
#include "report/test_rows.h"
#include "sys/test_directory.h"

namespace trainyard::report {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

journal::TaskRow running_row(std::string_view id) {
  journal::TaskRow row = started_row(id);
  row.standing = {.status = Status::Training};
  row.started = Instant{Duration{60'000}};
  row.pid = 77;
  row.memory_now = mb(120);
  return row;
}

StatusView view_of_a_live_run() {
  StatusView view{.job = "mnist", .run_directory = "runs/mnist", .now = Instant{Duration{185'000}}};
  view.execution = {.number = 1, .yard_pid = 42, .host = "node7", .job_file = "/mnist.yaml"};
  view.groups = {
      {.name = "prepare", .phase = model::GroupPhase::Finished, .tasks = 1, .finished = 1},
      {.name = "train",
       .phase = model::GroupPhase::Running,
       .tasks = 12'000,
       .finished = 5,
       .failed = 1,
       .running = 1,
       .waiting = 11'993}};
  view.running = {running_row("lr=0.1")};
  view.failed = {failed_row("lr=1", model::Failure::OutOfMemory, "took 1.2 GB of 1 GB")};
  view.failed[0].attempt = 3;
  view.waiting = {
      {.group_name = "train",
       .tasks = 11'993,
       .memory = gb(6),
       .cause = model::Cause::Memory,
       .reason = "needs 6 GB of memory, 3.1 GB available, 8 GB reserved or used by 2 tasks"}};
  view.sample = {.at = Instant{}, .memory_available = mb(3100), .memory_of_tasks = mb(120)};
  return view;
}

TEST(Status, SaysOfARunThatIsStoppedWhatLetsItGoOn) {
  StatusView view = view_of_a_live_run();
  view.state = RunState::Suspended;
  EXPECT_THAT(status_text(view),
              AllOf(StartsWith("mnist: suspended: process 42 on node7; running tasks continue. "
                               "'kill -CONT 42' resumes it\n"),
                    HasSubstr("lr=0.1"), Not(HasSubstr("needs 6 GB"))));
  EXPECT_EQ(nlohmann::json::parse(status_json(view)).at("state"), "suspended");
}

TEST(Status, SaysThatAnInterruptedRunIsStopping) {
  StatusView view = view_of_a_live_run();
  view.state = RunState::Stopping;
  EXPECT_THAT(status_text(view),
              AllOf(StartsWith("mnist: stopping, active for 3m5s, process 42 on node7\n"),
                    HasSubstr("memory: 120 MB used by tasks"), HasSubstr("lr=0.1"),
                    Not(HasSubstr("needs 6 GB"))));
  EXPECT_EQ(nlohmann::json::parse(status_json(view)).at("state"), "stopping");
}

TEST(Status, ShowsALiveRun) {
  EXPECT_EQ(
      status_text(view_of_a_live_run()),
      "mnist: active for 3m5s, process 42 on node7\n"
      "run-dir: runs/mnist\n"
      "memory: 120 MB used by tasks, 3.1 GB free now\n"
      "\n"
      "GROUP       STATE   TASKS  FINISHED  RUNNING  WAITING  FAILED\n"
      "prepare  FINISHED       1         1        0        0       0\n"
      "train     RUNNING  12,000         5        1   11,993       1\n"
      "\n"
      "TASK           STATUS  ATTEMPT  TIME  MEMORY  RESERVED\n"
      "train/lr=0.1  RUNNING        1  2m5s  120 MB      1 GB\n"
      "\n"
      "waiting:\n"
      "  train, 11,993 tasks: needs 6 GB of memory, 3.1 GB available, 8 GB reserved or used by 2 "
      "tasks\n"
      "\n"
      "failed:\n"
      "  train/lr=1: OUT_OF_MEMORY after 2.0 s: took 1.2 GB of 1 GB\n"
      "tasks out of memory: 'trainyard retry runs/mnist :oom --memory 1.2GB' reserves more\n");
}

TEST(Status, ShowsAGroupAsWaitingUntilOneOfItsTasksHasStarted) {
  StatusView view = view_of_a_live_run();
  view.groups = {{.name = "train",
                  .phase = model::GroupPhase::Running,
                  .tasks = 3,
                  .skipped = 1,
                  .waiting = 2}};
  const auto phase_in_json = [&view] {
    return nlohmann::json::parse(status_json(view))
        .at("groups")
        .at(0)
        .at("phase")
        .get<std::string>();
  };
  EXPECT_THAT(status_text(view), HasSubstr("\ntrain  WAITING      3 "));
  EXPECT_EQ(phase_in_json(), "WAITING");
  view.groups[0].retrying = 1;
  view.groups[0].waiting = 1;
  EXPECT_THAT(status_text(view), HasSubstr("\ntrain  RUNNING      3 "));
  view.groups[0].retrying = 0;
  view.groups[0].phase = model::GroupPhase::Blocked;
  view.groups[0].waiting = 0;
  view.groups[0].skipped = 3;
  EXPECT_THAT(status_text(view), HasSubstr("\ntrain  SKIPPED      3 ")) << "all were killed";
  EXPECT_EQ(phase_in_json(), "SKIPPED");
}

TEST(Status, ShowsNoMemoryThatIsNotMeasuredYet) {
  StatusView view = view_of_a_live_run();
  view.sample->memory_of_tasks = Bytes{};
  view.running.front().memory_now = Bytes{};
  EXPECT_THAT(status_text(view),
              AllOf(HasSubstr("\nmemory: 3.1 GB free now\n"),
                    HasSubstr("train/lr=0.1  RUNNING        1  2m5s       -      1 GB\n")));
}

TEST(Status, NamesTheLogOfAFailureWhileItIsThere) {
  const sys::TemporaryDirectory run;
  StatusView view = view_of_a_live_run();
  view.run_directory = run.path();
  run.make("train");
  run.make("train/lr=1");
  run.write("train/lr=1/stderr.3.log", "MemoryError\n");
  const std::string line = fmt::format("\n    {}/train/lr=1/stderr.3.log\n", run.path());
  EXPECT_THAT(status_text(view), HasSubstr(line));
  std::filesystem::remove(run / "train/lr=1/stderr.3.log");
  EXPECT_THAT(status_text(view), Not(HasSubstr("stderr.3.log")));
}

TEST(Status, ShowsWhatSharingComesToAndTheForecastBesideWhatItTook) {
  StatusView view = view_of_a_live_run();
  view.sharing = {{.group_name = "train",
                   .measured = {.to_a_gpu = 3, .factor = 1.72, .tasks = 9, .to_a_gpu_max = 3}},
                  {.group_name = "eval", .measured = {.to_a_gpu_max = 1}}};
  view.execution.forecast = Duration{212'000};
  view.execution.forecast_at_the_worst = Duration{571'000};
  EXPECT_THAT(status_text(view),
              HasSubstr("\nsharing GPUs, as measured:\n"
                        "  train: 3 tasks per GPU do 1.7 times the work of 1 (measured on 9 "
                        "tasks); at most 3 per GPU, as more gain nothing\n"
                        "  eval: at most 1 per GPU, as more gain nothing\n"));
  EXPECT_THAT(
      status_text(view),
      HasSubstr(
          "forecast: 3m32s in total, or 9m31s if tasks that share a GPU slow each other down\n"));
  const auto json = nlohmann::json::parse(status_json(view));
  EXPECT_EQ(json.at("sharing"), nlohmann::json::parse(R"([
    {"group": "train", "to_a_gpu": 3, "factor": 1.72, "tasks": 9, "to_a_gpu_max": 3},
    {"group": "eval", "to_a_gpu": null, "factor": null, "tasks": 0, "to_a_gpu_max": 1}])"));
  EXPECT_EQ(json.at("execution").at("forecast_ms"), 212'000);
  EXPECT_EQ(json.at("execution").at("forecast_at_the_worst_ms"), 571'000);
  view.sharing.resize(12, view.sharing.back());
  EXPECT_THAT(status_text(view), HasSubstr("  and 2 more\n"));
}

TEST(Status, ShowsWhatIsReservedAsTheRunHasLearned) {
  StatusView view = view_of_a_live_run();
  view.learned = {{.group_name = "train", .memory = gb(2), .gpu_memory = gb(5), .tasks = 3},
                  {.group_name = "train", .gpu_memory = gb(7), .tasks = 0}};
  EXPECT_THAT(
      status_text(view),
      HasSubstr("\nreserved as learned in this run:\n"
                "  train: 2 GB of memory and 5 GB of GPU memory, from 3 tasks that succeeded\n"
                "  train: 7 GB of GPU memory, from other tasks of its group\n"));
  EXPECT_EQ(nlohmann::json::parse(status_json(view)).at("learned"), nlohmann::json::parse(R"([
    {"group": "train", "memory_bytes": 2000000000, "gpu_memory_bytes": 5000000000, "tasks": 3},
    {"group": "train", "memory_bytes": null, "gpu_memory_bytes": 7000000000, "tasks": 0}])"));
  view.learned.resize(12, view.learned.back());
  EXPECT_THAT(status_text(view), HasSubstr("  and 2 more\n"));
}

TEST(Status, ShowsThatNoTaskOfAGroupWasToRun) {
  StatusView view{.job = "mnist", .run_directory = "runs/mnist", .state = RunState::Ended};
  view.execution = {.number = 1, .how = "ended"};
  view.groups = {
      {.name = "eval",
       .phase = model::GroupPhase::Finished,
       .tasks = 2,
       .not_needed = 1,
       .not_selected = 1},
      {.name = "late", .phase = model::GroupPhase::Finished, .tasks = 1, .not_selected = 1},
      {.name = "train",
       .phase = model::GroupPhase::Finished,
       .tasks = 2,
       .finished = 1,
       .not_selected = 1}};
  const std::string text = status_text(view);
  EXPECT_THAT(text, HasSubstr("\neval     NOT_NEEDED "));
  EXPECT_THAT(text, HasSubstr("\nlate   NOT_SELECTED "));
  EXPECT_THAT(text, HasSubstr("\ntrain      FINISHED "));
}

TEST(Status, ShowsHowARunEnded) {
  StatusView view{.job = "mnist",
                  .run_directory = "runs/mnist",
                  .state = RunState::Ended,
                  .now = Instant{Duration{7'509'000}}};
  view.execution = {.number = 2, .started = Instant{Duration{7'500'000}}, .how = "ended"};
  view.groups = {{.name = "eval",
                  .phase = model::GroupPhase::Skipped,
                  .message = "it needs 'train', of which 1 task failed",
                  .tasks = 2,
                  .skipped = 2}};
  EXPECT_EQ(status_text(view),
            "mnist: ended after 2h5m\n"
            "run-dir: runs/mnist\n"
            "\n"
            "GROUP    STATE  TASKS  FINISHED  RUNNING  WAITING  FAILED  SKIPPED\n"
            "eval   SKIPPED      2         0        0        0       0        2\n"
            "eval: it needs 'train', of which 1 task failed\n");
  view.groups.front().message.clear();
  view.groups.front().why_skipped = "another task of its group failed (fail-fast)";
  EXPECT_THAT(status_text(view),
              HasSubstr("\neval: 2 skipped: another task of its group failed (fail-fast)\n"));
  view.groups.front().why_skipped = "needs a task of group 'train' that failed";
  view.groups.front().needs_finished_since = true;
  EXPECT_THAT(
      status_text(view),
      HasSubstr("\neval: 2 skipped: needs a task of group 'train' that failed; what was needed "
                "has finished since: 'trainyard run --resume runs/mnist' runs the skipped "
                "tasks\n"));
  EXPECT_EQ(nlohmann::json::parse(status_json(view)).at("groups").at(0).at("why_skipped"),
            "needs a task of group 'train' that failed; what was needed has finished since: "
            "'trainyard run --resume runs/mnist' runs the skipped tasks");
}

TEST(Status, CountsWhatIsOutOfDateAndSaysHowItRunsAgain) {
  StatusView view = view_of_a_live_run();
  EXPECT_THAT(status_text(view), Not(HasSubstr("OUT OF DATE")));
  EXPECT_EQ(nlohmann::json::parse(status_json(view)).at("groups").at(0).at("out_of_date"), 0);
  view.groups.at(0).out_of_date = 1;
  EXPECT_THAT(status_text(view), HasSubstr("FINISHED  OUT OF DATE  RUNNING"));
  EXPECT_THAT(
      status_text(view),
      HasSubstr("\nprepare: 1 task finished before what it needs ran again: 'trainyard retry "
                "runs/mnist --cascade' runs it again\n"));
  view.run_directory = "runs/my sweep";
  EXPECT_THAT(status_text(view),
              HasSubstr(" again: \"trainyard retry 'runs/my sweep' --cascade\" runs it again\n"));
  EXPECT_EQ(nlohmann::json::parse(status_json(view)).at("groups").at(0).at("out_of_date"), 1);
}

TEST(Status, NamesTheRunsThatItNeedsAndThatRanAgain) {
  StatusView view = view_of_a_live_run();
  EXPECT_THAT(status_text(view), Not(HasSubstr("out of date")));
  EXPECT_EQ(nlohmann::json::parse(status_json(view)).at("needs_run_again"),
            nlohmann::json::array());
  view.needs_run_again = {2};
  view.runs_again = "'trainyard retry 6 --cascade' runs it again";
  EXPECT_THAT(status_text(view),
              HasSubstr("\nout of date: this run started before run 2, which it needs, ran again: "
                        "'trainyard retry 6 --cascade' runs it again\n"));
  view.needs_run_again = {2, 5};
  EXPECT_THAT(status_text(view), HasSubstr("\nout of date: this run started before runs 2, 5, "
                                           "which it needs, ran again: "
                                           "'trainyard retry 6 --cascade' runs it again\n"));
  EXPECT_EQ(nlohmann::json::parse(status_json(view)).at("needs_run_again"),
            nlohmann::json::array({2, 5}));
}

TEST(Status, SaysHowToGoOnWithARunThatDied) {
  StatusView view = view_of_a_live_run();
  view.state = RunState::Died;
  for (journal::GroupRow& group : view.groups) mark_lost(group);
  const std::string text = status_text(view);
  EXPECT_THAT(text,
              HasSubstr("mnist: died at least 3m5s after its start; resume it with 'trainyard run "
                        "--resume runs/mnist'\n"));
  EXPECT_THAT(text, Not(HasSubstr("waiting:")));
  EXPECT_THAT(text, HasSubstr("GROUP       STATE   TASKS  FINISHED  LOST  WAITING  FAILED\n"
                              "prepare  FINISHED       1         1     0        0       0\n"
                              "train        DIED  12,000         5     1   11,993       1\n"));
  EXPECT_THAT(text, Not(HasSubstr("RUNNING")));
}

TEST(Status, SaysHowLongTheTasksOfARunThatDiedMayStillRunAndHowToEndThem) {
  StatusView view = view_of_a_live_run();
  view.state = RunState::Died;
  view.tasks_run_for = Duration{58'000};
  EXPECT_THAT(status_text(view),
              HasSubstr("mnist: died at least 3m5s after its start; its tasks are killed within "
                        "58.0 s (agent.lease, and the time to end); resume it with 'trainyard run "
                        "--resume runs/mnist'; Ctrl-C then stops its tasks\n"));
  view.queue_resumes = "your queue resumes it";
  EXPECT_THAT(status_text(view), HasSubstr("time to end); your queue resumes it\n"));
  view.running.clear();
  EXPECT_THAT(status_text(view), Not(HasSubstr("are killed"))) << "no task ran";
}

TEST(Status, NamesTheProcessesThatARunLeftWhenItDied) {
  StatusView view = view_of_a_live_run();
  view.state = RunState::Died;
  EXPECT_THAT(status_text(view), Not(HasSubstr("its tasks left")));
  EXPECT_EQ(nlohmann::json::parse(status_json(view)).at("processes_left"), nlohmann::json::array());
  view.processes_left = {4711};
  EXPECT_THAT(
      status_text(view),
      HasSubstr("\nits tasks left 1 running process (4711), which 'run --resume' kills first\n"));
  view.processes_left = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
  EXPECT_THAT(status_text(view),
              HasSubstr("\nits tasks left 10 running processes (1, 2, 3, 4, 5, 6, 7, 8, 9, 10), "
                        "which 'run --resume' kills first\n"));
  view.processes_left.insert(view.processes_left.end(), {11, 12});
  EXPECT_THAT(
      status_text(view),
      HasSubstr("\nits tasks left 12 running processes (1, 2, 3, 4, 5, 6, 7, 8, 9, 10 and 2 "
                "more), which 'run --resume' kills first\n"));
  EXPECT_EQ(nlohmann::json::parse(status_json(view)).at("processes_left"),
            nlohmann::json::array({1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}));
}

TEST(Status, TellsOnceWhatKindsOfTasksWaitForTogether) {
  StatusView view = view_of_a_live_run();
  view.waiting[0].tasks = 2;
  view.waiting.push_back(view.waiting[0]);
  view.waiting.push_back(view.waiting[0]);
  view.waiting[1].group_name = "another";
  const std::string text = status_text(view);
  EXPECT_THAT(text, HasSubstr("\n  " + view.waiting[0].group_name + ", 4 tasks: "));
  EXPECT_THAT(text, HasSubstr("\n  another, 2 tasks: "));
}

TEST(Status, SaysThatTimesCountFromTheLastResume) {
  StatusView view = view_of_a_live_run();
  view.execution.number = 3;
  EXPECT_THAT(status_text(view),
              HasSubstr("mnist: active for 3m5s (since it was last resumed), process 42 on"));
  view.state = RunState::Idle;
  EXPECT_THAT(status_text(view), Not(HasSubstr("resumed"))) << "no time is shown";
}

TEST(Status, SaysHowToGoOnWithARunThatWasInterrupted) {
  StatusView view{.job = "mnist",
                  .run_directory = "runs/mnist",
                  .state = RunState::Ended,
                  .now = Instant{Duration{5000}}};
  view.execution = {.number = 1, .job_file = "/mnist.yaml", .how = "interrupted"};
  EXPECT_THAT(
      status_text(view),
      HasSubstr(
          "mnist: interrupted after 5.0 s; resume it with 'trainyard run --resume runs/mnist'\n"));
  view.execution.how = "interrupted by TERM";
  EXPECT_THAT(status_text(view), HasSubstr("mnist: interrupted by TERM after 5.0 s; resume it with "
                                           "'trainyard run --resume runs/mnist'\n"));
  view.run_directory = "runs/my sweep";
  EXPECT_THAT(status_text(view),
              HasSubstr("; resume it with \"trainyard run --resume 'runs/my sweep'\"\n"));
}

TEST(Status, SaysHowToResumeARunOfWhichARetryLeftTasksStopped) {
  StatusView view{.job = "mnist",
                  .run_directory = "runs/mnist",
                  .state = RunState::Ended,
                  .now = Instant{Duration{5000}}};
  view.execution = {.number = 2, .job_file = "/mnist.yaml", .how = "ended"};
  view.groups = {{.index = {0}, .name = "train", .tasks = 2, .finished = 2}};
  EXPECT_THAT(status_text(view), HasSubstr("mnist: ended after 5.0 s\n"));
  view.groups.front().finished = 1;
  view.groups.front().stopped = 1;
  EXPECT_THAT(status_text(view),
              HasSubstr("mnist: ended after 5.0 s; resume it with 'trainyard run "
                        "--resume runs/mnist'\n"));
}

TEST(Status, NamesTheCommandThatRunsFailedTasksAgainOnceTheRunHasEnded) {
  StatusView view = view_of_a_live_run();
  view.failed = {failed_row("lr=1", model::Failure::Exit, "")};
  const auto cure = HasSubstr("after a fix: 'trainyard run --resume runs/mnist' runs the failed");
  EXPECT_THAT(status_text(view), Not(cure)) << "others are waiting";
  view.state = RunState::Ended;
  view.running.clear();
  view.waiting.clear();
  view.execution.how = "ended";
  view.groups[1] = {.name = "train", .tasks = 8, .finished = 5, .failed = 1, .skipped = 2};
  EXPECT_THAT(status_text(view), EndsWith("after a fix: 'trainyard run --resume runs/mnist' runs "
                                          "the failed and skipped tasks again\n"));
  view.execution.how = "interrupted";
  EXPECT_THAT(status_text(view), Not(cure)) << "the first line has the command";
}

TEST(Status, SaysThatTheQueueResumesItsRun) {
  StatusView view{.job = "mnist",
                  .run_directory = "runs/mnist",
                  .queue_resumes = "'trainyard up' resumes it",
                  .state = RunState::Ended,
                  .now = Instant{Duration{5000}}};
  view.execution = {.number = 1, .job_file = "/mnist.yaml", .how = "interrupted by TERM"};
  EXPECT_THAT(status_text(view),
              HasSubstr("mnist: interrupted by TERM after 5.0 s; 'trainyard up' resumes it\n"));
  view.execution.how = "the keeper or its guard died";
  EXPECT_THAT(status_text(view), HasSubstr("guard died after 5.0 s; 'trainyard up' resumes it\n"));
  view.execution.how = "ended";
  EXPECT_THAT(status_text(view), HasSubstr("mnist: ended after 5.0 s\n"))
      << "the queue is about to see that";
}

TEST(Status, SaysThatAProgramGoesOnWithItsRun) {
  StatusView view{.job = "folds", .run_directory = "runs/folds", .state = RunState::Died};
  view.execution = {.number = 1, .yard_pid = 42, .host = "node7"};
  EXPECT_THAT(
      status_text(view),
      HasSubstr("folds: died at least 0.0 s after its start; run the same program to resume it\n"));
  view.state = RunState::Idle;
  EXPECT_THAT(status_text(view),
              HasSubstr("folds: idle: all tasks have ended; process 42 on node7 can add more\n"));
}

TEST(Status, SaysWhyATaskIsRetriedAndWhen) {
  StatusView view = view_of_a_live_run();
  view.groups[1].retrying = 12;
  view.running.clear();
  for (int i = 0; i < 12; ++i) {
    journal::TaskRow row = running_row(fmt::format("lr={}", i));
    row.standing = {.status = Status::Interrupt, .failure = model::Failure::Exit, .exit_code = 3};
    row.message = "retry 1 of 2 in 50m: exited with code 3";
    row.ended = Instant{Duration{125'000}};
    view.running.push_back(row);
  }
  EXPECT_THAT(status_text(view),
              HasSubstr("\nretrying:\n"
                        "  train/lr=0: retry 1 of 2 in 49m: exited with code 3\n"));
  EXPECT_THAT(status_text(view), HasSubstr("  train/lr=9: retry 1 of 2 in 49m: exited with code 3\n"
                                           "  and 2 more: 'trainyard status runs/mnist --all'\n"));
}

TEST(Status, ShowsNothingAsReservedForATaskThatDoesNotRun) {
  StatusView view = view_of_a_live_run();
  journal::TaskRow& row = view.running.front();
  row.standing = {.status = Status::Interrupt, .failure = model::Failure::Exit};
  row.ended = Instant{Duration{125'000}};
  row.memory_now = Bytes{};
  row.gpus = "0";
  row.gpu_memory_requested = gb(4);
  row.gpu_memory_max = gb(5);
  row.capped_by = "torch";
  EXPECT_THAT(status_text(view), HasSubstr("TASK            STATUS  ATTEMPT  TIME  MEMORY  "
                                           "RESERVED  GPU  GPU MEMORY  RESERVED  CAP\n"
                                           "train/lr=0.1  RETRYING        1  1m5s       -         "
                                           "-    -           -         -    -\n"));
  row.standing = {.status = Status::Training};
  EXPECT_THAT(status_text(view), HasSubstr("-      1 GB    0           -      4 GB  5 GB\n"));
  // As after 'trainyard retry', while others have the CPUs.
  row.standing = {.status = Status::Init};
  EXPECT_THAT(status_text(view),
              HasSubstr("WAITING        1  1m5s       -         -    -           "
                        "-         -    -\n"));
  row.standing.on_hold = true;
  EXPECT_THAT(status_text(view),
              HasSubstr("ON_HOLD        1  1m5s       -         -    -           "
                        "-         -    -\n"));
}

TEST(Status, ShowsABoundedNumberOfTasks) {
  StatusView view = view_of_a_live_run();
  view.groups[1].running = 5000;
  view.groups[1].failed = 300;
  view.running.assign(5000, running_row("r"));
  view.failed.assign(kFailedShown, failed_row("f", model::Failure::Lost, ""));
  const std::string text = status_text(view);
  EXPECT_THAT(text, HasSubstr("\nand 4,960 more: 'trainyard status runs/mnist --all'\n"));
  EXPECT_THAT(text, HasSubstr("\n  and 290 more: 'trainyard status runs/mnist --all'\n"));
  EXPECT_LT(text.size(), 8000U);
}

TEST(Status, NamesARunByItsNumber) {
  StatusView view{.job = "mnist", .run_directory = "runs/mnist", .number = 46};
  EXPECT_THAT(status_text(view), HasSubstr("\nrun 46: runs/mnist\n"));
  EXPECT_EQ(nlohmann::json::parse(status_json(view)).at("run_number"), 46);
  view.number.reset();
  EXPECT_THAT(status_text(view), HasSubstr("\nrun-dir: runs/mnist\n"));
}

TEST(Status, SaysWhichResultsAreMissingOrChanged) {
  StatusView view = view_of_a_live_run();
  EXPECT_THAT(status_text(view), Not(HasSubstr("missing or changed")));
  view.warned.assign(kWarnedShown, finished_row("w", Duration{1000}, ""));
  for (journal::TaskRow& row : view.warned) row.warning = "the result is\nnot JSON";
  view.warned_count = 1234;
  const std::string text = status_text(view);
  EXPECT_THAT(text, HasSubstr("\n\n1,234 results missing or changed:\n"
                              "  train/w: the result is not JSON\n"));
  EXPECT_THAT(text, HasSubstr("\n  and 1,224 more: 'trainyard status runs/mnist --all --json'\n"));
  view.warned.back().warning = "result.1.json: is empty: result discarded";
  EXPECT_THAT(
      status_text(view),
      HasSubstr("\n  train/w: runs/mnist/train/w/result.1.json: is empty: result discarded\n"));
  const nlohmann::json json = nlohmann::json::parse(status_json(view));
  EXPECT_EQ(json.at("warned_count"), 1234);
  EXPECT_EQ(json.at("warned").at(0).at("warning"), "the result is\nnot JSON");
}

TEST(Status, GivesALineToTypeWhereOneHelps) {
  StatusView view = view_of_a_live_run();
  view.run_directory = "runs/my sweep";
  const auto help = [&view](model::Help::Where where, const char* line) {
    view.waiting[0].help = {.where = where, .line = line};
    return status_text(view);
  };
  const auto json = [&view](const char* key) {
    return nlohmann::json::parse(status_json(view)).at("waiting").at(0).at(key);
  };
  EXPECT_THAT(
      help(model::Help::Where::Resume, "--set other-users=share"),
      HasSubstr(
          "by 2 tasks\n    to change this, stop the run and its running tasks (Ctrl-C or "
          "kill -INT) and type: trainyard run --resume 'runs/my sweep' --set other-users=share\n"));
  EXPECT_EQ(json("help"), "trainyard run --resume 'runs/my sweep' --set other-users=share");
  EXPECT_EQ(json("help_where"), "resume");
  EXPECT_THAT(
      help(model::Help::Where::JobFile, "max-parallel: 3"),
      HasSubstr("\n    to change this, set in the job file and resume the run: max-parallel: 3\n"));
  EXPECT_EQ(json("help_where"), "job-file");
  EXPECT_THAT(help(model::Help::Where::Shell, "trainyard devices"),
              HasSubstr("\n    for details, run: trainyard devices\n"));
  EXPECT_EQ(json("help_where"), "shell");
  EXPECT_THAT(help(model::Help::Where::Nowhere, ""), Not(HasSubstr("help")));
  EXPECT_TRUE(json("help").is_null());
  EXPECT_TRUE(json("help_where").is_null());
}

TEST(Status, SaysWhatTasksAreKeptToOfTheirGpus) {
  StatusView view = view_of_a_live_run();
  journal::TaskRow& row = view.running[0];
  row.gpus = "0";
  row.gpu_memory_now = gb(3);
  row.gpu_memory_requested = gb(5);
  EXPECT_THAT(status_text(view), Not(HasSubstr("CAP")));
  row.gpu_memory_max = gb(9);
  EXPECT_THAT(status_text(view), HasSubstr("GPU  GPU MEMORY  RESERVED   CAP\n"));
  EXPECT_THAT(status_text(view), HasSubstr("3 GB      5 GB  none\n"));
  row.capped_by = "torch 2.10.0";
  EXPECT_THAT(status_text(view), HasSubstr("3 GB      5 GB  9 GB\n"));
  const nlohmann::json json = nlohmann::json::parse(status_json(view)).at("running").at(0);
  EXPECT_EQ(json.at("gpu_memory_max_bytes"), 9'000'000'000);
  EXPECT_EQ(json.at("gpu_capped_by"), "torch 2.10.0");
}

TEST(Status, LeavesOutColumnsAndShortensNamesInANarrowTerminal) {
  StatusView view = view_of_a_live_run();
  view.running = {running_row("lr=0.001,hidden=128,seed=2")};
  journal::TaskRow& row = view.running[0];
  row.gpus = "2";
  row.gpu_memory_now = gb(3);
  row.gpu_memory_requested = gb(5);
  row.progress = 0.414;
  row.progress_values = R"({"loss":0.31})";
  EXPECT_EQ(status_text(view, 117), status_text(view)) << "all columns have room";
  EXPECT_THAT(
      status_text(view, 80),
      HasSubstr(
          "\n"
          "TASK                               STATUS  TIME  GPU  GPU MEMORY        PROGRESS\n"
          "train/lr=0.001,hidden=128,seed=2  RUNNING  2m5s    2        3 GB  41 % loss=0.31\n"
          "4 columns left out (ATTEMPT, MEMORY RESERVED, GPU MEMORY RESERVED, MEMORY): 'trainyard "
          "status runs/mnist | cat' shows all columns\n"));
  EXPECT_THAT(
      status_text(view, 60),
      HasSubstr("\n"
                "TASK                       STATUS  TIME  GPU        PROGRESS\n"
                "train/lr=0.001,hidden=1…  RUNNING  2m5s    2  41 % loss=0.31\n"
                "5 columns left out (ATTEMPT, MEMORY RESERVED, GPU MEMORY RESERVED, MEMORY, "
                "GPU MEMORY): "));
  EXPECT_THAT(status_text(view, 60),
              HasSubstr("\nprepa…  FINISHED       1         1        0        0       0\n"));
  view.groups[1].skipped = 1;
  view.groups[1].running = view.groups[1].waiting = view.groups[1].failed = 0;
  EXPECT_THAT(status_text(view, 60), HasSubstr("\nGROUP       STATE   TASKS  FINISHED  SKIPPED\n"))
      << "counts that are 0";
  view = view_of_a_live_run();
  view.groups[1].name = std::string(60, 'g');
  EXPECT_THAT(status_text(view, 80),
              HasSubstr("\nGROUP                          STATE   TASKS  FINISHED  RUNNING  "
                        "WAITING  FAILED\n"));
}

TEST(Status, LetsNoControlCharacterThrough) {
  StatusView view = view_of_a_live_run();
  view.failed[0].message = "\x1b]0;title\x07 done\r\n";
  view.waiting[0].reason = "a\nb";
  view.groups[0].name = "\x1b[2Jprepare";
  EXPECT_THAT(status_text(view), Not(HasSubstr("\x1b")));
}

TEST(Status, OffersNoGpuMemoryWhereNoMachineHasAGpu) {
  StatusView view = view_of_a_live_run();
  view.failed = {failed_row("lr=1", model::Failure::OutOfMemory,
                            fmt::format("{}: CUDA out of memory", model::kReservesNoGpu))};
  view.machines = {journal::MachineRow{.name = "lab1"}};
  EXPECT_THAT(status_text(view), HasSubstr("trainyard found no GPU, and 'trainyard doctor' shows"));
  view.machines[0].gpus = {{.label = "0", .name = "NVIDIA H100", .memory = gb(80)}};
  EXPECT_THAT(status_text(view), HasSubstr("add 'gpu-memory: auto' to the job file"));
}

TEST(Status, ShowsHowFarTasksSayThatTheyAre) {
  StatusView view = view_of_a_live_run();
  view.running.at(0).progress = 0.414;
  view.running.at(0).progress_values = R"({"loss":0.31,"lists":[1],"phase":"warm\nup"})";
  const std::string text = status_text(view);
  EXPECT_THAT(text, ::testing::HasSubstr("PROGRESS"));
  EXPECT_THAT(text, ::testing::HasSubstr("41 % loss=0.31 phase=warm up\n"));
}

journal::MachineRow machine_row(std::string_view name) {
  return {.name = std::string(name), .cpus = model::cpus(16), .memory = gb(64)};
}

/// The second machine has gone.
StatusView view_of_two_machines() {
  StatusView view = view_of_a_live_run();
  view.machines = {machine_row("lab1"), machine_row("lab2")};
  view.machines[0].gpus = {{.label = "0", .name = "NVIDIA H100", .memory = gb(80)},
                           {.label = "2", .name = "NVIDIA H100", .memory = gb(80)}};
  view.machines[1].cpus = {500};
  view.machines[1].gone = Instant{Duration{100'000}};
  view.machines[1].why = "no response for 60 s";
  view.running.push_back(running_row("lr=0.2"));
  view.running[0].machine = "lab1";
  view.running[0].gpus = "2";
  return view;
}

TEST(Status, NamesTheMachinesOfARunAndWhereItsTasksAre) {
  EXPECT_THAT(
      status_text(view_of_two_machines()),
      HasSubstr(
          "train     RUNNING  12,000         5        1   11,993       1\n"
          "\n"
          "machines:\n"
          "  lab1: 16 CPUs, 64 GB, GPUs 0, 2 (NVIDIA H100)\n"
          "  lab2: 0.5 CPUs, 64 GB, no GPU; gone: no response for 60 s\n"
          "\n"
          "TASK           STATUS  ATTEMPT  TIME  MEMORY  RESERVED  MACHINE  GPU  GPU MEMORY  "
          "RESERVED\n"
          "train/lr=0.1  RUNNING        1  2m5s  120 MB      1 GB     lab1    2           -       "
          "all\n"
          "train/lr=0.2  RUNNING        1  2m5s  120 MB      1 GB        -    -           -        "
          " "
          "-\n"));
}

TEST(Status, SaysOfAMachineThatItIsNotReachedAndHowLongItIsThere) {
  StatusView view = view_of_two_machines();
  view.machines[0].silent = Instant{view.now.since_start - Duration{12'000}};
  view.machines[0].until = view.now + Duration{2'650'000};
  EXPECT_THAT(
      status_text(view),
      HasSubstr(
          "  lab1: 16 CPUs, 64 GB, GPUs 0, 2 (NVIDIA H100); unreachable for 12.0 s, no tasks start "
          "there; available for another 44m10s\n"));
  view.machines.resize(1);
  EXPECT_THAT(status_text(view), HasSubstr("GPUs 0, 2 (NVIDIA H100); unreachable for 12.0 s"))
      << "the only one";
  view.state = RunState::Died;
  EXPECT_THAT(status_text(view), HasSubstr("  lab1: 16 CPUs, 64 GB, GPUs 0, 2 (NVIDIA H100)\n"));
}

TEST(Status, NamesSoManyMachinesAndCountsTheOthers) {
  StatusView view = view_of_two_machines();
  view.machines.resize(kMachinesShown + 3, machine_row("lab3"));
  EXPECT_THAT(status_text(view), HasSubstr("  and 3 more: 'trainyard status runs/mnist --json'\n"));
}

TEST(Status, SaysNothingOfMachinesWhereThereIsOne) {
  StatusView view = view_of_a_live_run();
  view.machines = {machine_row("lab1")};
  view.running[0].machine = "lab1";
  EXPECT_EQ(status_text(view), status_text(view_of_a_live_run()));
}

TEST(Status, GivesMachinesAsJson) {
  const StatusView view = view_of_two_machines();
  EXPECT_EQ(nlohmann::json::parse(status_json(view)).at("machines"), nlohmann::json::parse(R"([
    {"name": "lab1", "cpus": 16.0, "memory_bytes": 64000000000, "gpus": [
      {"label": "0", "name": "NVIDIA H100", "memory_bytes": 80000000000},
      {"label": "2", "name": "NVIDIA H100", "memory_bytes": 80000000000}],
     "joined_ms": 0, "gone_ms": null, "why": null, "silent_ms": null, "until_ms": null},
    {"name": "lab2", "cpus": 0.5, "memory_bytes": 64000000000, "gpus": [], "joined_ms": 0,
     "gone_ms": 100000, "why": "no response for 60 s", "silent_ms": null,
     "until_ms": null}])"));
}

TEST(Status, GivesJsonWithStableNames) {
  StatusView view = view_of_a_live_run();
  journal::TaskRow& running = view.running.at(0);
  running.times = {.load_numbers = 1, .train_numbers = 2, .load = Duration(1500)};
  running.progress = 0.25;
  running.progress_values = R"({"loss":0.5})";
  running.traceback = "in f";
  running.machine = "lab1";
  const nlohmann::json json = nlohmann::json::parse(status_json(view));
  EXPECT_EQ(json.at("schema"), 1);
  EXPECT_EQ(json.at("job"), "mnist");
  EXPECT_EQ(json.at("run_directory"), "runs/mnist");
  EXPECT_EQ(json.at("run_number"), nullptr);
  EXPECT_EQ(json.at("state"), "running");
  EXPECT_EQ(json.at("elapsed_ms"), 185'000);
  EXPECT_EQ(json.at("execution").at("yard_pid"), 42);
  EXPECT_EQ(json.at("machine").at("memory_available_bytes"), 3'100'000'000);
  EXPECT_EQ(json.at("machines"), nlohmann::json::array());
  EXPECT_EQ(json.at("groups").at(1).at("waiting"), 11'993);
  EXPECT_EQ(json.at("waiting").at(0).at("memory_requested_bytes"), 6'000'000'000);
  EXPECT_TRUE(json.at("waiting").at(0).at("machine").is_null());
  EXPECT_EQ(json.at("running").at(0), nlohmann::json::parse(R"({
    "group": "train", "id": "lr=0.1", "word": "RUNNING", "status": "TRAINING", "end": null, "verdict": null,
    "failure": null, "exit_code": null, "stage": "TRAIN", "attempt": 1, "pid": 77, "matrix": {},
    "load_numbers": 1, "train_numbers": 2, "load_ms": 1500, "train_ms": null, "progress": 0.25,
    "progress_values": {"loss": 0.5}, "traceback": "in f",
    "started_ms": 60000, "ended_ms": null, "duration_ms": 125000, "cpu_time_ms": 0,
    "memory_requested_bytes": 1000000000, "memory_now_bytes": 120000000,
    "memory_peak_bytes": 300000000, "memory_peak_at_least": false, "machine": "lab1", "gpus": [], "gpu_memory_requested_bytes": 0,
    "gpu_memory_now_bytes": 0, "gpu_memory_peak_bytes": 0, "gpu_memory_max_bytes": 0,
    "gpu_capped_by": null, "result": null, "edited": false, "out_of_date": false, "code": null, "newer_code": null,
    "warning": null, "message": null,
    "stdout": "train/lr=0.1/stdout.log", "stderr": "train/lr=0.1/stderr.log"})"));
  running.gpus = "0";
  const nlohmann::json on_gpu = nlohmann::json::parse(status_json(view)).at("running").at(0);
  EXPECT_TRUE(on_gpu.at("gpu_memory_now_bytes").is_null()) << "nothing was seen of it there";
  EXPECT_TRUE(on_gpu.at("gpu_memory_peak_bytes").is_null());
  EXPECT_EQ(json.at("lost"), nlohmann::json::array());
  EXPECT_EQ(json.at("failed").at(0).at("end"), "out-of-memory");
  EXPECT_EQ(json.at("failed").at(0).at("failure"), "OUT_OF_MEMORY");
  EXPECT_EQ(json.at("failed").at(0).at("stderr"), "train/lr=1/stderr.3.log");
}

TEST(Status, GivesNoRequestAndNoStageInJsonOfATaskWithoutAnAttempt) {
  StatusView view = view_of_a_live_run();
  view.failed.at(0).attempt = 0;
  const nlohmann::json task = nlohmann::json::parse(status_json(view)).at("failed").at(0);
  for (const char* const name : {"stage", "memory_requested_bytes", "gpu_memory_requested_bytes",
                                 "machine", "stdout", "stderr"}) {
    EXPECT_TRUE(task.at(name).is_null()) << name;
  }
}

TEST(Status, GivesJsonWhateverIsInTheText) {
  StatusView view = view_of_a_live_run();
  view.failed[0].message = "bad \xff \" \\ \n </script>";
  view.failed[0].result = "[1, 2";
  view.sample.reset();
  const nlohmann::json json = nlohmann::json::parse(status_json(view));
  EXPECT_EQ(json.at("failed").at(0).at("message"), "bad \xEF\xBF\xBD \" \\ \n </script>");
  EXPECT_TRUE(json.at("failed").at(0).at("result").is_null());
  EXPECT_TRUE(json.at("machine").is_null());
}

}  // namespace
}  // namespace trainyard::report
