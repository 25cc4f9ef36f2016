#include "wire/decisions.h"

#include <gtest/gtest.h>

#include "base/bytes.h"
#include "base/time.h"
#include "model/ids.h"
#include "model/plan.h"
#include "model/status.h"
#include "model/waiting.h"

namespace trainyard::wire {
namespace {

TEST(Decisions, AreNothingWhereNothingWasDecided) { EXPECT_EQ(to_text(model::Decision{}), "{}"); }

TEST(Decisions, SayAllThatChangedAndAllThatIsToBeDone) {
  const model::AttemptKey key{.task = {3}, .attempt = 2};
  model::Decision decision;
  decision.changes = {
      model::TaskChanged{.key = key,
                         .status = Status::Exception,
                         .verdict = model::Verdict::Failed,
                         .failure = model::Failure::Exit,
                         .stage = Stage::Load,
                         .exit_code = 7,
                         .message = "exit code 7"},
      model::GroupChanged{.group = {1}, .phase = model::GroupPhase::Skipped, .message = "why"},
      model::ReasonChanged{
          .shape = {2},
          .reason = {.cause = model::Cause::Memory, .needs = {.memory = {5}}, .machine = {1}}},
      model::Reached{.task = {3}, .memory = {9}, .gpu_memory = {}, .largest = true, .tries = {}},
      model::SharingMeasured{.shape = {2}, .to_a_gpu = 2, .factor = 1.5},
      model::Learned{.shape = {2}, .memory = {4}, .gpu_memory = {}, .tasks = 6},
      model::SaidOfTask{.task = {3}, .on_hold = true, .priority = -1},
      model::HeadroomSeen{
          .headroom = {.at = Instant{Duration{3}}, .memory_free = {-4}, .gpus = {{.label = "0"}}},
          .machine = {1}}};
  decision.commands = {model::StopAttempt{.key = key, .kill = true}};
  EXPECT_EQ(
      to_text(decision),
      R"({"changes":[{"task":{"key":{"task":3,"attempt":2},"status":"EXCEPTION","verdict":)"
      R"("failed","failure":"EXIT","stage":"load","exit_code":7,"message":"exit code 7"}},)"
      R"({"group":{"group":1,"phase":"skipped","message":"why"}},)"
      R"({"reason":{"shape":2,"reason":{"cause":"memory","needs":{"memory":5},"machine":1}}},)"
      R"({"reached":{"task":3,"memory":9,"largest":true}},)"
      R"({"sharing":{"shape":2,"to_a_gpu":2,"factor":1.5}},)"
      R"({"learned":{"shape":2,"memory":4,"tasks":6}},)"
      R"({"said":{"task":3,"on_hold":true,"priority":-1}},)"
      R"({"headroom":{"headroom":{"at":3,"memory_free":-4,"gpus":[{"label":"0"}]},"machine":1}}],)"
      R"("commands":[{"stop_attempt":{"key":{"task":3,"attempt":2},"kill":true}}]})");
}

TEST(Decisions, ThatDifferInOneNumberHaveDifferentTexts) {
  model::Decision one;
  one.changes = {model::HeadroomSeen{.headroom = {.memory_free = gb(1)}}};
  model::Decision other = one;
  std::get<model::HeadroomSeen>(other.changes[0]).headroom.cpu_used_by_others = 0x1p-1074;
  EXPECT_NE(to_text(one), to_text(other));
}

}  // namespace
}  // namespace trainyard::wire
