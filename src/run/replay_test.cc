#include "run/replay.h"

#include <memory>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/bytes.h"
#include "journal/journal.h"
#include "journal/sqlite.h"
#include "journal/test_run.h"
#include "model/command.h"
#include "model/event.h"
#include "model/ids.h"
#include "model/plan.h"
#include "model/resources.h"
#include "model/turn.h"
#include "run/drive.h"
#include "schedule/scheduler.h"

namespace trainyard::run {
namespace {

using journal::at;
using journal::must;
using ::testing::HasSubstr;
using ::testing::StartsWith;

/// A run of two tasks of which one fits at a time, as its yard writes it down.
class Replays : public ::testing::Test {
 protected:
  Replays() {
    must(journal_->record(kPolicy));
    hear(model::MachineJoined{
        .machine = {}, .name = "m", .capacity = {.memory = gb(1), .cpus = model::cpus(4)}});
    hear(model::Sampled{.memory_available = gb(1)});
    hear(model::BatchAdded{.plan = std::make_shared<model::Plan>(job_.plan)});
  }

  /// In a turn of its own.
  model::Decision hear(model::What what) {
    const model::Event event{.at = at(++now_), .what = std::move(what)};
    model::Decision decision = scheduler_.on(event);
    must(journal_->commit(journal::turn_of(event, decision)));
    return decision;
  }

  Result<Replayed> replay_it() {
    auto recording = journal::RecordingReader::open(directory_.journal(), std::nullopt);
    return recording ? replay(*recording) : std::unexpected(recording.error());
  }

  void change(const std::string& sql) {
    journal_.reset();
    journal::Database database =
        must(journal::Database::open(directory_.journal(), journal::Database::Access::Write));
    must(database.run(sql));
  }

  static constexpr model::AttemptKey kFirst{.task = {0}, .attempt = 1};
  const model::Policy kPolicy{.memory_remain = Bytes{0}};
  journal::JournalDirectory directory_;
  journal::TestJob job_{{.ids = {"a", "b"}, .memory = mb(600)}};
  std::unique_ptr<journal::Journal> journal_ =
      must(journal::Journal::create(directory_.journal(), "sweep", job_.batch(), {}));
  schedule::Scheduler scheduler_{kPolicy};
  int now_ = 0;
};

TEST_F(Replays, DecideWhatWasDecidedThen) {
  hear(model::AttemptStarted{.key = kFirst, .pid = 7});
  hear(model::AttemptEnded{.key = kFirst, .end = model::ExitedWith{0}});
  const Replayed played = must(replay_it());
  EXPECT_FALSE(played.difference);
  EXPECT_EQ(played.events, 5);
  EXPECT_EQ(played.starts, 2);
  EXPECT_EQ(played.until, at(5));
}

TEST_F(Replays, LeaveOutWhatWasRefused) {
  const model::Event ended{.at = at(4),
                           .what = model::AttemptEnded{.key = kFirst, .end = model::ExitedWith{0}}};
  const model::ClaimRefused refused{
      .attempts = {{.task = {1}, .attempt = 1}}, .neighbours = {}, .no_more = true};
  const model::Event refusal{.at = at(4), .what = refused};
  model::Decision start = scheduler_.on(ended);
  ASSERT_FALSE(start.commands.empty());
  model::Decision none = scheduler_.on(refusal);
  forget_starts(start, refused.attempts);
  must(journal_->commit({.events = {ended, refusal}, .decisions = {start, none}}));
  const Replayed played = must(replay_it());
  EXPECT_FALSE(played.difference);
  EXPECT_EQ(played.events, 5);
  EXPECT_EQ(played.starts, 1) << "the other one never was";
}

TEST_F(Replays, ShowTheFirstDecisionThatIsAnother) {
  hear(model::AttemptStarted{.key = kFirst, .pid = 7});
  change("UPDATE recorded SET decision = '{}' WHERE seq >= 3");
  const Replayed played = must(replay_it());
  ASSERT_TRUE(played.difference);
  EXPECT_EQ(played.difference->event, 3);
  EXPECT_EQ(played.difference->at, at(3));
  EXPECT_THAT(played.difference->heard, StartsWith(R"({"at":3,"batch_added":)"));
  EXPECT_EQ(played.difference->decided_then, "{}");
  EXPECT_THAT(played.difference->decided_now,
              HasSubstr(R"({"start_attempt":{"promise":{"memory":600000000,"cpus":1000}}})"));
  EXPECT_EQ(played.events, 3);
}

TEST_F(Replays, AreOfThePolicyThatTheRunHad) {
  change(R"(UPDATE executions SET policy = '{"memory_remain":500000000}')");
  const Replayed played = must(replay_it());
  ASSERT_TRUE(played.difference);
  EXPECT_THAT(played.difference->decided_now, HasSubstr(R"("cause":"memory")"));
}

TEST_F(Replays, RefuseWhatIsNoRecordOfARun) {
  const auto fault_after = [this](const std::string& sql) {
    change(sql);
    const Result<Replayed> played = replay_it();
    return played ? "none" : played.error().message;
  };
  EXPECT_EQ(fault_after(R"(UPDATE recorded SET event = '{"sampled":{"machine":3}}' WHERE seq = 2)"),
            "event 2 of the record: there is no machine 3, only 1");
  EXPECT_THAT(fault_after("UPDATE recorded SET event = 'nonsense' WHERE seq = 2"),
              StartsWith("event 2 of the record: event: 1:"));
  EXPECT_EQ(fault_after("UPDATE executions SET policy = '[]'"),
            "policy: must be an object, not array");
}

}  // namespace
}  // namespace trainyard::run
