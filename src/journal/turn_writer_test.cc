// Random turns, with failures in between: what is counted equals a recount, and each task is where
// the last turn left it.
#include "journal/turn_writer.h"

#include <cstddef>
#include <memory>
#include <random>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "journal/journal.h"
#include "journal/reader.h"
#include "journal/test_run.h"

namespace trainyard::journal {
namespace {

/// The state of a task as a scheduler would know it.
struct Known {
  std::uint32_t attempt = 0;
  model::Standing standing;
  bool process = false;
};

/// Makes up turns that a scheduler could have had.
class RandomRun {
 public:
  RandomRun(unsigned seed, std::size_t tasks) : random_(seed), tasks_(tasks) {}

  model::Turn turn() {
    model::Turn turn;
    for (std::size_t n = pick(4) + 1; n > 0; --n) turn = turn + step();
    return turn;
  }

  [[nodiscard]] const std::vector<Known>& tasks() const { return tasks_; }

  std::size_t pick(std::size_t below) { return random_() % below; }

 private:
  model::Turn step() {
    now_ += static_cast<std::int64_t>(pick(50));
    const auto index = static_cast<std::uint32_t>(pick(tasks_.size()));
    Known& task = tasks_[index];
    const model::AttemptKey now = key(index, task.attempt);
    const bool ended_badly = task.standing.verdict != model::Verdict::None &&
                             task.standing.verdict != model::Verdict::Finished;
    if (ended_badly && pick(3) == 0) return begins_anew(task, index);
    if (task.standing.verdict != model::Verdict::None || pick(8) == 0) {
      return turn_of(
          {.at = at(now_),
           .what = model::Sampled{.tasks = {{now, mb(static_cast<std::int64_t>(pick(99)))}}}});
    }
    switch (task.standing.status) {
      case Status::Init:
        if (pick(6) == 0)
          return verdict(task, key(index, 0), Status::Init, model::Verdict::Skipped);
        [[fallthrough]];
      case Status::Interrupt:
        task.attempt += 1;
        task.standing = {.status = Status::Available};
        return granted(at(now_), {key(index, task.attempt)});
      case Status::Available:
        task.standing.status = Status::Training;
        return started(at(now_), now, 100 + index);
      default:
        return end(task, now);
    }
  }

  /// The outcome of its last attempt stays until the next one begins.
  model::Turn begins_anew(Known& task, std::uint32_t index) {
    task.standing.status = Status::Init;
    task.standing.verdict = model::Verdict::None;
    return turn_of({.at = at(now_), .what = model::RetryAsked{.task = {index}}},
                   {.changes = {model::TaskChanged{.key = key(index, 0)}}});
  }

  model::Turn end(Known& task, model::AttemptKey now) {
    switch (pick(4)) {
      case 0:
        task.standing = {.status = Status::Interrupt, .failure = model::Failure::OutOfMemory};
        return turn_of({.at = at(now_), .what = model::AttemptEnded{.key = now}},
                       {.changes = {model::TaskChanged{.key = now,
                                                       .status = Status::Interrupt,
                                                       .failure = model::Failure::OutOfMemory}}});
      case 1:
        task.standing = {.status = Status::Exception,
                         .verdict = model::Verdict::Failed,
                         .failure = model::Failure::Exit,
                         .exit_code = 3};
        return failed(at(now_), now, 3);
      case 2:
        return verdict(task, now, Status::Exception, model::Verdict::Stopped);
      default:
        task.standing = {.status = Status::Exited, .verdict = model::Verdict::Finished};
        return finished(at(now_), now, "{}");
    }
  }

  model::Turn verdict(Known& task, model::AttemptKey now, Status status, model::Verdict verdict) {
    task.standing = {.status = status, .verdict = verdict};
    return turn_of(
        {.at = at(now_), .what = model::InterruptAsked{}},
        {.changes = {model::TaskChanged{.key = now, .status = status, .verdict = verdict}}});
  }

  std::mt19937 random_;
  std::vector<Known> tasks_;
  std::int64_t now_ = 0;
};

void expect_counts(JournalReader& reader, const std::vector<Known>& tasks) {
  std::array<Counts, 2> recount{};
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    const Counted counted = counted_as(tasks[i].standing.status, tasks[i].standing.verdict);
    recount.at(i * 2 / tasks.size()).at(std::to_underlying(counted)) += 1;
  }
  const std::vector<GroupRow> groups = must(reader.groups());
  ASSERT_EQ(groups.size(), 2U);
  for (std::size_t i = 0; i < 2; ++i) {
    const Counts counted{groups[i].waiting,  groups[i].running, groups[i].retrying,
                         groups[i].finished, groups[i].failed,  groups[i].skipped,
                         groups[i].stopped};
    EXPECT_EQ(counted, recount.at(i));
    EXPECT_EQ(groups[i].tasks, static_cast<int>(tasks.size() / 2));
  }
}

void expect_tasks(JournalReader& reader, const std::vector<Known>& tasks) {
  const std::vector<TaskRow> rows = all_tasks(reader);
  ASSERT_EQ(rows.size(), tasks.size());
  for (std::uint32_t i = 0; i < rows.size(); ++i) {
    EXPECT_EQ(rows[i].standing.status, tasks[i].standing.status);
    EXPECT_EQ(rows[i].standing.verdict, tasks[i].standing.verdict);
    EXPECT_EQ(rows[i].standing.failure, tasks[i].standing.failure);
    EXPECT_EQ(rows[i].attempt, tasks[i].attempt);
    EXPECT_EQ(must(reader.attempts({i})).size(), tasks[i].attempt);
  }
}

TEST(TurnWriter, CountsWhatARecountCounts) {
  for (unsigned seed = 0; seed < 12; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    const JournalDirectory directory;
    TestGroup first = numbered(12);
    TestGroup second = first;
    second.name = "second";
    const TestJob job{first, second};
    auto journal = must(Journal::create(directory.journal(), "sweep", job.batch(), {}));
    Database other = must(Database::open(directory.journal(), Database::Access::Write));
    JournalReader reader = must(JournalReader::open(directory.journal()));
    RandomRun run(seed, job.plan.tasks.size());
    model::Turn offered;
    for (int i = 0; i < 60; ++i) {
      const std::vector<Known> before = run.tasks();
      const bool was_refused = !offered.events.empty();
      offered = offered + run.turn();
      // Sometimes the last step of a turn cannot be written; then it is offered again with more.
      const bool refuse = !was_refused && run.pick(4) == 0;
      if (refuse) {
        must(
            other.run("CREATE TRIGGER broken BEFORE UPDATE ON shapes "
                      "BEGIN SELECT raise(ABORT, 'made to fail'); END;"
                      "CREATE TRIGGER broken2 BEFORE INSERT ON samples "
                      "BEGIN SELECT raise(ABORT, 'made to fail'); END"));
      }
      const bool written = journal->commit(offered).has_value();
      if (refuse) must(other.run("DROP TRIGGER broken; DROP TRIGGER broken2"));
      must(reader.refresh());
      if (written) {
        offered = {};
        expect_counts(reader, run.tasks());
      } else {
        expect_counts(reader, before);
      }
      if (i % 20 == 19) expect_tasks(reader, written ? run.tasks() : before);
      must(reader.rest());
      if (HasFailure()) return;
    }
  }
}

}  // namespace
}  // namespace trainyard::journal
