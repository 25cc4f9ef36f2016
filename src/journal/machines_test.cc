// Runs with several machines: where each attempt was, what each machine has, and what is seen
// there.
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/bytes.h"
#include "base/time.h"
#include "journal/journal.h"
#include "journal/reader.h"
#include "journal/sqlite.h"
#include "journal/test_run.h"
#include "model/command.h"
#include "model/event.h"
#include "model/ids.h"
#include "model/resources.h"
#include "model/status.h"
#include "model/turn.h"
#include "model/waiting.h"

namespace trainyard::journal {
namespace {

using ::testing::ElementsAre;

constexpr model::MachineIndex kLab1{0};
constexpr model::MachineIndex kLab2{1};

std::vector<model::Gpu> gpus(const std::vector<int>& numbers, const std::string& name) {
  std::vector<model::Gpu> all;
  for (const int number : numbers) all.push_back({.number = number, .name = name});
  return all;
}

model::Turn joined(Instant when, model::MachineIndex machine, std::vector<model::Gpu> has) {
  return turn_of(
      {.at = when,
       .what = model::MachineJoined{
           .machine = machine,
           .name = machine == kLab1 ? "lab1" : "lab2",
           .capacity = {.memory = gb(64), .cpus = model::cpus(16), .gpus = std::move(has)}}});
}

model::Turn gone(Instant when, model::MachineIndex machine) {
  return turn_of({.at = when, .what = model::MachineGone{.machine = machine, .why = "silence"}});
}

/// The attempt is started on these GPUs of the machine.
model::Turn started_on(Instant when, model::AttemptKey key, const model::Site& site) {
  return turn_of(
      {.at = when, .what = model::Sampled{.memory_available = gb(8), .machine = site.machine}},
      {.changes = {model::TaskChanged{.key = key, .status = Status::Available}},
       .commands = {
           model::StartAttempt{.key = key, .promise = {.memory = mb(600)}, .site = site}}});
}

/// A reading of these on the GPUs of a machine.
model::Turn used(Instant when, model::MachineIndex machine, std::vector<model::GpuUse> uses) {
  return turn_of(
      {.at = when, .what = model::GpusSampled{.uses = std::move(uses), .machine = machine}});
}

/// A run of as many tasks, with two machines: of both the driver's first number is 0.
struct TwoMachines {
  explicit TwoMachines(int tasks) : job{numbered(tasks)} {
    journal = must(Journal::create(directory.journal(), "sweep", job.batch(), {.host = "lab1"}));
    must(journal->commit(joined(at(1), kLab1, gpus({0, 2}, "NVIDIA H100")) +
                         joined(at(2), kLab2, gpus({0, 5}, "NVIDIA H200"))));
  }
  [[nodiscard]] JournalReader reader() const {
    return must(JournalReader::open(directory.journal()));
  }

  JournalDirectory directory;
  TestJob job;
  std::unique_ptr<Journal> journal;
};

/// "lab1 0,2", of each task.
std::vector<std::string> sites(JournalReader reader) {
  std::vector<std::string> sites;
  for (const TaskRow& row : all_tasks(reader)) sites.push_back(row.machine + " " + row.gpus);
  return sites;
}

TEST(Machines, AreNamedWhereAttemptsRunAndWithTheGpusThere) {
  const TwoMachines run(3);
  must(run.journal->commit(started_on(at(3), key(0), {.machine = kLab1, .gpus = {{0}, {1}}}) +
                           started_on(at(3), key(1), {.machine = kLab2, .gpus = {{0}, {1}}})));
  EXPECT_THAT(sites(run.reader()), ElementsAre("lab1 0,2", "lab2 0,5", " "));
  JournalReader reader = run.reader();
  EXPECT_THAT(must(reader.attempts({1})).at(0).machine, "lab2");
}

TEST(Machines, StayWithAttemptsThatHaveEndedAndThatAnotherOneComesAfter) {
  const TwoMachines run(1);
  must(run.journal->commit(
      started_on(at(3), key(0), {.machine = kLab2, .gpus = {{1}}}) +
      turn_of({.at = at(4), .what = model::AttemptEnded{.key = key(0)}},
              {.changes = {model::TaskChanged{.key = key(0), .status = Status::Interrupt}}}) +
      started_on(at(5), key(0, 2), {.machine = kLab1, .gpus = {{1}}}) +
      finished(at(6), key(0, 2), "{}")));
  EXPECT_THAT(sites(run.reader()), ElementsAre("lab1 2"));
  JournalReader reader = run.reader();
  const std::vector<AttemptRow> attempts = must(reader.attempts({0}));
  ASSERT_EQ(attempts.size(), 2U);
  EXPECT_EQ(attempts[0].machine + " " + attempts[0].gpus, "lab2 5");
  EXPECT_EQ(attempts[1].machine + " " + attempts[1].gpus, "lab1 2");
}

TEST(Machines, AreReadWithWhatTheyHave) {
  const TwoMachines run(1);
  must(run.journal->commit(gone(at(9), kLab2)));
  JournalReader reader = run.reader();
  const std::vector<MachineRow> machines = must(reader.machines());
  ASSERT_EQ(machines.size(), 2U);
  EXPECT_EQ(machines[0].name, "lab1");
  EXPECT_EQ(machines[0].cpus, model::cpus(16));
  EXPECT_EQ(machines[0].memory, gb(64));
  EXPECT_EQ(machines[0].joined, at(1));
  EXPECT_EQ(machines[0].gone, std::nullopt);
  ASSERT_EQ(machines[0].gpus.size(), 2U);
  EXPECT_EQ(machines[0].gpus[1].label, "2");
  EXPECT_EQ(machines[0].gpus[1].machine, "lab1");
  EXPECT_EQ(machines[1].name, "lab2");
  EXPECT_EQ(machines[1].gone, at(9));
  EXPECT_EQ(machines[1].why, "silence");
  ASSERT_EQ(machines[1].gpus.size(), 2U);
  EXPECT_EQ(machines[1].gpus[0].name, "NVIDIA H200");
}

TEST(Machines, ThatComeBackAreWhatTheyAreNow) {
  const TwoMachines run(2);
  must(run.journal->commit(started_on(at(3), key(0), {.machine = kLab2, .gpus = {{1}}}) +
                           failed(at(4), key(0), 1) + gone(at(5), kLab2) +
                           joined(at(6), kLab2, gpus({7}, "NVIDIA B200")) +
                           started_on(at(7), key(1), {.machine = kLab2, .gpus = {{0}}})));
  EXPECT_THAT(sites(run.reader()), ElementsAre("lab2 5", "lab2 7"));
  JournalReader reader = run.reader();
  const MachineRow lab2 = must(reader.machines()).at(1);
  EXPECT_EQ(lab2.joined, at(6));
  EXPECT_EQ(lab2.gone, std::nullopt);
  EXPECT_EQ(lab2.why, "");
  ASSERT_EQ(lab2.gpus.size(), 1U);
  EXPECT_EQ(lab2.gpus[0].label, "7");
}

/// As after a full disk, when room has been made.
TEST(Machines, HaveTheirGpusAsBeforeWhereTheirTurnCouldNotBeWritten) {
  const TwoMachines run(2);
  const model::Turn turn = started_on(at(3), key(0), {.machine = kLab2, .gpus = {{1}}}) +
                           gone(at(5), kLab2) + joined(at(6), kLab2, gpus({7}, "NVIDIA B200"));
  {
    Database other = must(Database::open(run.directory.journal(), Database::Access::Write));
    must(other.run("ALTER TABLE machines RENAME TO away"));
    EXPECT_FALSE(run.journal->commit(turn).has_value());
    must(other.run("ALTER TABLE away RENAME TO machines"));
  }
  must(run.journal->commit(turn));
  EXPECT_THAT(sites(run.reader()), ElementsAre("lab2 5", " "));
}

TEST(Machines, HaveLateGpusEachOfItsOwn) {
  const TwoMachines run(1);
  must(run.journal->commit(
      turn_of({.at = at(3),
               .what = model::GpusSampled{
                   .found = {{.gpu = {0}, .what = {.number = 0, .name = "NVIDIA L4"}}},
                   .machine = kLab2}})));
  JournalReader reader = run.reader();
  const std::vector<MachineRow> machines = must(reader.machines());
  EXPECT_EQ(machines.at(0).gpus.at(0).name, "NVIDIA H100");
  EXPECT_EQ(machines.at(1).gpus.at(0).name, "NVIDIA L4");
}

TEST(Machines, SaySinceWhenNothingIsHeardAndWhenTheyAreTakenAway) {
  const TwoMachines run(1);
  const auto second = [&] {
    JournalReader reader = run.reader();
    return must(reader.machines()).at(1);
  };
  EXPECT_EQ(second().silent, std::nullopt);
  EXPECT_EQ(second().until, std::nullopt);
  must(run.journal->commit(
      turn_of({.at = at(3), .what = model::KeeperSilent{.silent = true, .machine = kLab2}})));
  EXPECT_EQ(second().silent, at(3));
  must(run.journal->commit(
      turn_of({.at = at(4), .what = model::KeeperSilent{.silent = false, .machine = kLab2}})));
  EXPECT_EQ(second().silent, std::nullopt);
  must(run.journal->commit(
      turn_of({.at = at(5), .what = model::KeeperSilent{.silent = true, .machine = kLab2}}) +
      gone(at(6), kLab2) +
      turn_of({.at = at(7),
               .what = model::MachineJoined{
                   .machine = kLab2, .name = "lab2", .capacity = {}, .until = at(90)}})));
  EXPECT_EQ(second().silent, std::nullopt) << "it is another one";
  EXPECT_EQ(second().until, at(90));
}

TEST(Machines, SayNothingOfWhatRunsOnOthers) {
  const TwoMachines run(2);
  must(run.journal->commit(started_on(at(3), key(0), {.machine = kLab1, .gpus = {{0}}}) +
                           started_on(at(3), key(1), {.machine = kLab2, .gpus = {{0}}}) +
                           used(at(4), kLab1, {{.key = key(0), .gpu = {0}, .memory = gb(3)}}) +
                           used(at(4), kLab2, {{.key = key(1), .gpu = {0}, .memory = gb(4)}})));
  must(run.journal->commit(used(at(5), kLab2, {})));
  JournalReader reader = run.reader();
  const std::vector<TaskRow> tasks = all_tasks(reader);
  EXPECT_EQ(tasks[0].gpu_memory_now, gb(3));
  EXPECT_EQ(tasks[1].gpu_memory_now, Bytes{}) << "nothing was seen of it on its own";
}

TEST(Machines, AreOfTheirExecution) {
  const JournalDirectory directory;
  const TestJob job{numbered(2)};
  {
    auto journal = must(Journal::create(directory.journal(), "sweep", job.batch(), {}));
    must(journal->commit(joined(at(1), kLab1, {}) + joined(at(2), kLab2, {}) +
                         started_on(at(3), key(0), {.machine = kLab2, .gpus = {}}) +
                         finished(at(4), key(0), "{}") +
                         started_on(at(4), key(1), {.machine = kLab2, .gpus = {}})));
  }
  const auto resumed = must(Journal::resume(directory.journal(), {job.batch()}, {}));
  const Instant now = resumed.at;
  const Instant soon = now + Duration{1};
  must(resumed.journal->commit(
      turn_of({.at = now, .what = model::MachineJoined{.machine = {}, .name = "node9"}}) +
      started_on(soon, key(1, 2), {.machine = {}, .gpus = {}})));
  JournalReader reader = must(JournalReader::open(directory.journal()));
  EXPECT_THAT(sites(std::move(reader)), ElementsAre("lab2 ", "node9 "));
  JournalReader again = must(JournalReader::open(directory.journal()));
  EXPECT_EQ(must(again.machines()).size(), 1U);
  Database database = must(Database::open(directory.journal(), Database::Access::Write));
  EXPECT_EQ(must(database.text("SELECT group_concat(machine) FROM task_list")), "lab2,node9");
}

TEST(Machines, AreSampledTogether) {
  const TwoMachines run(1);
  const auto look = [](Instant when, model::MachineIndex machine, model::Sampled what) {
    what.machine = machine;
    return turn_of({.at = when, .what = std::move(what)});
  };
  must(run.journal->commit(
      look(at(3), kLab1, {.memory_available = gb(8), .cpu_used_by_others = 0.5}) +
      look(at(4), kLab2, {.memory_available = gb(5), .tasks = {{key(0), mb(3)}}})));
  JournalReader reader = run.reader();
  EXPECT_EQ(last_sample(reader).memory_available, gb(13));
  EXPECT_EQ(last_sample(reader).memory_of_tasks, mb(3));
  EXPECT_EQ(last_sample(reader).cpu_used_by_others, 0.25);
  must(run.journal->commit(gone(at(5), kLab1) + look(at(6), kLab2, {.memory_available = gb(6)})));
  must(reader.refresh());
  EXPECT_EQ(last_sample(reader).memory_available, gb(6));
}

/// Both lack memory, each on another machine.
TEST(Machines, LackRoomEachByItsOwnNumbers) {
  const JournalDirectory directory;
  const TestJob job{{.name = "train", .ids = {"a"}}, {.name = "test", .ids = {"b"}}};
  auto journal = must(Journal::create(directory.journal(), "sweep", job.batch(), {}));
  const auto lacks = [](std::uint32_t shape, model::MachineIndex machine) {
    return model::ReasonChanged{
        .shape = {shape},
        .reason = {.cause = model::Cause::Memory, .needs = {.memory = gb(5)}, .machine = machine}};
  };
  must(journal->commit(
      joined(at(1), kLab1, {}) +
      turn_of({.at = at(2), .what = model::Sampled{}},
              {.changes = {lacks(0, kLab1),
                           model::HeadroomSeen{.headroom = {.memory_free = gb(1)}}}})));
  JournalReader reader = must(JournalReader::open(directory.journal()));
  EXPECT_EQ(must(reader.waiting()).at(0).reason, "needs 5 GB of memory, 1 GB available");
  must(journal->commit(
      joined(at(3), kLab2, {}) +
      turn_of({.at = at(4), .what = model::Sampled{.machine = kLab2}},
              {.changes = {lacks(1, kLab2), model::HeadroomSeen{.headroom = {.memory_free = gb(4)},
                                                                .machine = kLab2}}})));
  must(reader.refresh());
  const std::vector<WaitingReason> waiting = must(reader.waiting());
  ASSERT_EQ(waiting.size(), 2U);
  EXPECT_EQ(waiting[0].reason, "on lab1: needs 5 GB of memory, 1 GB available");
  EXPECT_EQ(waiting[0].machine, "lab1");
  EXPECT_EQ(waiting[1].reason, "on lab2: needs 5 GB of memory, 4 GB available");
  EXPECT_EQ(waiting[1].machine, "lab2");
}

}  // namespace
}  // namespace trainyard::journal
