// The text of each event and each decision in the table of events.
#include "journal/event_text.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/bytes.h"
#include "base/time.h"
#include "journal/test_run.h"
#include "model/plan.h"
#include "model/resources.h"
#include "model/status.h"
#include "model/waiting.h"

namespace trainyard::journal {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

/// Rows as "kind task.attempt data".
std::vector<std::string> rows_of(const model::What& what, const model::Decision& decision = {},
                                 const RowNumbers& numbers = {.tasks = {}, .groups = {0, 1}}) {
  const model::Event event{.at = at(5), .what = what};
  EventRows rows(event, decision, numbers);
  std::vector<std::string> texts;
  EventRow row;
  while (rows.next(row)) {
    const std::string task = row.task ? fmt::format("{}", *row.task) : "-";
    const std::string attempt = row.attempt ? fmt::format("{}", *row.attempt) : "-";
    texts.push_back(fmt::format("{} {}.{} {}", row.kind, task, attempt, row.data));
  }
  return texts;
}

TEST(EventText, TellsHowAProcessCameAndWent) {
  EXPECT_THAT(rows_of(model::AttemptStarted{.key = key(3, 2), .pid = 77}),
              ElementsAre(R"(started 3.2 {"pid":77})"));
  EXPECT_THAT(rows_of(model::AttemptEnded{.key = key(3), .end = model::ExitedWith{1}}),
              ElementsAre(R"(ended 3.1 {"exit":1,"memory_peak":0,"cpu_ms":0})"));
  EXPECT_THAT(rows_of(model::AttemptEnded{.key = key(3),
                                          .end = model::ExitedWith{7},
                                          .usage = {},
                                          .ranks = {.failed = 2, .finished = {1}}}),
              ElementsAre(R"(ended 3.1 {"exit":7,"memory_peak":0,"cpu_ms":0,"rank":2})"));
  EXPECT_THAT(
      rows_of(model::AttemptEnded{.key = key(3),
                                  .end = model::KilledBy{.signal = 9, .out_of_memory = true},
                                  .usage = {.memory_peak = mb(1), .cpu_time = Duration(20)},
                                  .result = "{}",
                                  .warning = "bad \"x\""}),
      ElementsAre(R"(ended 3.1 {"signal":9,"out_of_memory":true,"memory_peak":1000000,"cpu_ms":20,)"
                  R"("result_bytes":2,"warning":"bad \"x\""})"));
  EXPECT_THAT(rows_of(model::AttemptEnded{
                  .key = key(0),
                  .end = model::KilledBy{.signal = 9, .out_of_memory = true, .over_limit = true}}),
              ElementsAre(R"(ended 0.1 {"signal":9,"out_of_memory":true,"over_limit":true,)"
                          R"("memory_peak":0,"cpu_ms":0})"));
  EXPECT_THAT(
      rows_of(model::AttemptEnded{.key = key(0), .end = model::NotStarted{"no such file"}}),
      ElementsAre(R"(ended 0.1 {"not_started":"no such file","memory_peak":0,"cpu_ms":0})"));
  EXPECT_THAT(
      rows_of(model::AttemptEnded{.key = {.task = {0}, .attempt = 1},
                                  .end = model::NotStarted{.why = "disk", .of_machine = true}}),
      ElementsAre(
          R"(ended 0.1 {"not_started":"disk","of_machine":true,"memory_peak":0,"cpu_ms":0})"));
  EXPECT_THAT(rows_of(model::AttemptEnded{.key = key(0), .end = model::Vanished{"keeper"}}),
              ElementsAre(R"(ended 0.1 {"vanished":"keeper","memory_peak":0,"cpu_ms":0})"));
}

TEST(EventText, TellsWhenItCameAboutWhereSomebodySawIt) {
  EXPECT_THAT(rows_of(model::AttemptStarted{.key = key(0), .pid = 9, .began = at(700)}),
              ElementsAre(R"(started 0.1 {"pid":9,"began_ms":700})"));
  EXPECT_THAT(
      rows_of(model::AttemptEnded{.key = key(0), .end = model::ExitedWith{0}, .ended = at(900)}),
      ElementsAre(R"(ended 0.1 {"exit":0,"ended_ms":900,"memory_peak":0,"cpu_ms":0})"));
  EXPECT_THAT(rows_of(model::KeeperSilent{}), ElementsAre(R"(keeper -.- {"silent":true})"));
  EXPECT_THAT(rows_of(model::KeeperSilent{.silent = false, .another = 77}),
              ElementsAre(R"(keeper -.- {"silent":false,"pid":77})"));
}

TEST(EventText, TellsWhatATwoPhaseTaskSaysAndWhatItIsTold) {
  EXPECT_THAT(rows_of(model::StageReported{.key = key(3, 2), .said = model::Said::Loading}),
              ElementsAre("loading 3.2 {}"));
  EXPECT_THAT(rows_of(model::StageReported{
                  .key = key(3), .said = model::Said::Failed, .message = "ValueError: x"}),
              ElementsAre(R"(failed 3.1 {"message":"ValueError: x"})"));
  EXPECT_THAT(
      rows_of(model::StageReported{.key = key(3), .said = model::Said::Loaded},
              {.commands = {model::GrantDevice{
                   .key = key(3), .promise = {.memory = mb(1), .cpus = model::cpus(1)}}}}),
      ElementsAre(
          R"(loaded 3.1 {"commands":[{"train":3,"attempt":1,"memory":1000000,"cpus_milli":1000}]})"));
}

TEST(EventText, TellsWhatPeopleAskedFor) {
  EXPECT_THAT(rows_of(model::InterruptAsked{}), ElementsAre("interrupt -.- {}"));
  EXPECT_THAT(rows_of(model::KillAsked{.task = {4}, .request = 9}),
              ElementsAre(R"(kill 4.- {"request":9})"));
  EXPECT_THAT(rows_of(model::RetryAsked{.task = {4},
                                        .request = 9,
                                        .memory = Bytes{5},
                                        .gpu_memory = Bytes{6},
                                        .time_limit = Duration{7}}),
              ElementsAre("retry 4.- {\"request\":9,\"memory\":5,\"gpu_memory\":6,"
                          "\"time_limit_ms\":7}"));
}

TEST(EventText, KeepsSamplesAndTheTimeOnlyForWhatWasDecidedThen) {
  EXPECT_THAT(rows_of(model::Sampled{}), IsEmpty());
  EXPECT_THAT(rows_of(model::TimePassed{}), IsEmpty());
  EXPECT_THAT(
      rows_of(model::TimePassed{}, {.commands = {model::StopAttempt{.key = key(1), .kill = true}}}),
      ElementsAre(R"(time -.- {"commands":[{"stop":1,"attempt":1,"kill":true}]})"));
  const model::Reason memory{.cause = model::Cause::Memory, .needs = {.memory = gb(6)}};
  EXPECT_THAT(
      rows_of(model::Sampled{}, {.changes = {model::ReasonChanged{.shape = {2}, .reason = memory},
                                             model::HeadroomSeen{}}}),
      ElementsAre(R"(sampled -.- {"changes":[{"shape":2,"cause":"memory","memory":6000000000}]})"));
  const model::Reason gpus{.cause = model::Cause::Gpus,
                           .needs = {.gpus = 2, .gpu_memory = gb(1), .gpu = model::GpuIndex{0}}};
  EXPECT_THAT(
      rows_of(model::TimePassed{}, {.changes = {model::ReasonChanged{.shape = {2}, .reason = gpus},
                                                model::ReasonChanged{.shape = {2}, .reason = {}}}}),
      ElementsAre(
          R"(time -.- {"changes":[{"shape":2,"cause":"gpus","gpus":2,"gpu_memory":1000000000,"gpu":0},)"
          R"({"shape":2,"cause":""}]})"));
  const model::Reason first{.cause = model::Cause::TriedFirst,
                            .needs = {},
                            .first = model::TaskIndex{1},
                            .first_since = Instant{Duration{700}}};
  EXPECT_THAT(
      rows_of(model::TimePassed{},
              {.changes = {model::ReasonChanged{.shape = {2}, .reason = first}}}),
      ElementsAre(
          R"(time -.- {"changes":[{"shape":2,"cause":"tried-first","first":1,"since_ms":700}]})"));
  EXPECT_THAT(rows_of(model::Sampled{}, {.changes = {model::HeadroomSeen{}}}), IsEmpty());
}

TEST(EventText, TellsWhatAResumedRunWouldGoOnWithAndWhatIsLearned) {
  EXPECT_THAT(
      rows_of(model::TimePassed{},
              {.changes = {model::Reached{.task = {1}, .memory = gb(2)},
                           model::Reached{
                               .task = {2}, .memory = gb(1), .gpu_memory = gb(6), .largest = true},
                           model::Learned{
                               .shape = {0}, .memory = gb(1), .gpu_memory = gb(3), .tasks = 4}}}),
      ElementsAre(R"(time -.- {"changes":[{"reached":1,"memory":2000000000},)"
                  R"({"reached":2,"memory":1000000000,"gpu_memory":6000000000,"largest":true},)"
                  R"({"shape":0,"learned":4,"memory":1000000000,"gpu_memory":3000000000}]})"));
}

TEST(EventText, TellsWhatSharingComesTo) {
  EXPECT_THAT(
      rows_of(model::TimePassed{},
              {.changes = {model::SharingMeasured{
                   .shape = {1}, .to_a_gpu = 3, .factor = 1.7, .tasks = 9, .to_a_gpu_max = 4}}}),
      ElementsAre(
          R"(time -.- {"changes":[{"shape":1,"to_a_gpu":3,"factor":1.700,"tasks":9,"to_a_gpu_max":4}]})"));
}

TEST(EventText, TellsEveryChangeAndCommand) {
  const model::Decision decision{
      .changes = {model::TaskChanged{.key = key(1, 2), .status = Status::Training},
                  model::TaskChanged{.key = key(0),
                                     .status = Status::Exception,
                                     .verdict = model::Verdict::Failed,
                                     .failure = model::Failure::Exit,
                                     .stage = Stage::Load,
                                     .exit_code = 3,
                                     .message = "exit code 3"},
                  model::GroupChanged{
                      .group = {1}, .phase = model::GroupPhase::Skipped, .message = "needs a"},
                  model::GroupChanged{.group = {0}, .phase = model::GroupPhase::Running}},
      .commands = {
          model::StartAttempt{
              .key = key(2),
              .promise = {.memory = mb(1), .cpus = model::cpus(2), .gpus = 2, .gpu_memory = mb(3)},
              .site = {.machine = {}, .gpus = {{0}, {1}}}},
          model::Answer{.request = 8, .done = true}}};
  EXPECT_THAT(
      rows_of(model::InterruptAsked{}, decision,
              {.tasks = {10, 11, 12},
               .groups = {5, 6},
               .gpus = {std::vector<std::string>{"3", "4:1"}}}),
      ElementsAre(R"(interrupt -.- {"changes":[{"task":11,"attempt":2,"status":"TRAINING"},)"
                  R"({"task":10,"attempt":1,"status":"EXCEPTION","stage":"LOAD",)"
                  R"("verdict":"FAILED","failure":"EXIT","exit_code":3,"message":"exit code 3"},)"
                  R"({"group":6,"phase":"SKIPPED","message":"needs a"},)"
                  R"({"group":5,"phase":"RUNNING"}],)"
                  R"("commands":[{"start":12,"attempt":1,"memory":1000000,"cpus_milli":2000,)"
                  R"("gpus":["3","4:1"],"gpu_memory":3000000},{"answer":8,"done":true}]})"));
}

TEST(EventText, TellsWhichMachineItIsOfAndWhatThatHas) {
  const model::Capacity has{.memory = gb(64),
                            .cpus = model::cpus(16),
                            .gpus = {{.number = 0}, {.number = 4, .slice = 1}}};
  EXPECT_THAT(rows_of(model::MachineJoined{.machine = {1}, .name = "lab2", .capacity = has}),
              ElementsAre(R"(machine_joined -.- {"machine":1,"name":"lab2","memory":64000000000,)"
                          R"("cpus_milli":16000,"gpus":["0","4:1"]})"));
  EXPECT_THAT(rows_of(model::MachineJoined{
                  .machine = {1}, .name = "node1", .capacity = {}, .until = Instant{Duration(60)}}),
              ElementsAre(R"(machine_joined -.- {"machine":1,"name":"node1","memory":0,)"
                          R"("cpus_milli":0,"until_ms":60})"));
  EXPECT_THAT(rows_of(model::MachineGone{.machine = {1}, .why = "silence"}),
              ElementsAre(R"(machine_gone -.- {"machine":1,"message":"silence"})"));
  EXPECT_THAT(rows_of(model::KeeperSilent{.silent = true, .machine = {1}}),
              ElementsAre(R"(keeper -.- {"silent":true,"machine":1})"));
  const model::Reason reason{
      .cause = model::Cause::Memory, .needs = {.memory = gb(6)}, .machine = {1}};
  const model::StartAttempt start{.key = key(2),
                                  .promise = {.memory = mb(1), .gpus = 1},
                                  .site = {.machine = {1}, .gpus = {{0}}}};
  EXPECT_THAT(
      rows_of(
          model::Sampled{.machine = {1}},
          {.changes = {model::ReasonChanged{.shape = {2}, .reason = reason}}, .commands = {start}},
          {.gpus = {std::vector<std::string>{"0"}, std::vector<std::string>{"4:1"}}}),
      ElementsAre(R"(sampled -.- {"machine":1,)"
                  R"("changes":[{"shape":2,"cause":"memory","machine":1,"memory":6000000000}],)"
                  R"("commands":[{"start":2,"attempt":1,"memory":1000000,"cpus_milli":0,)"
                  R"("machine":1,"gpus":["4:1"],"gpu_memory":0}]})"));
}

TEST(EventText, SplitsALongDecisionIntoRowsOfBoundedLength) {
  constexpr std::uint32_t kTasks = 5'000;
  model::Decision decision;
  for (std::uint32_t i = 0; i < kTasks; ++i) {
    decision.changes.emplace_back(model::TaskChanged{
        .key = key(i, 0), .status = Status::Init, .verdict = model::Verdict::Stopped});
    decision.commands.emplace_back(model::StopAttempt{.key = key(i)});
  }
  const std::vector<std::string> rows = rows_of(model::InterruptAsked{}, decision);
  ASSERT_GT(rows.size(), 2U);
  std::size_t changes = 0;
  std::size_t commands = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    EXPECT_TRUE(rows[i].starts_with(i == 0 ? "interrupt -.- {" : "more -.- {")) << rows[i];
    EXPECT_LT(rows[i].size(), kEventTextMax + 200);
    for (std::size_t at = 0; (at = rows[i].find("{\"task\"", at)) != std::string::npos; ++at) {
      ++changes;
    }
    for (std::size_t at = 0; (at = rows[i].find("{\"stop\"", at)) != std::string::npos; ++at) {
      ++commands;
    }
  }
  EXPECT_EQ(changes, kTasks);
  EXPECT_EQ(commands, kTasks);
}

}  // namespace
}  // namespace trainyard::journal
