// The state of a journal whose yard was killed in the middle of a write, or had no disk space left.
#include <array>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/result.h"
#include "journal/journal.h"
#include "journal/options.h"
#include "journal/reader.h"
#include "journal/sqlite.h"
#include "journal/test_run.h"
#include "model/status.h"
#include "model/turn.h"

namespace trainyard::journal {
namespace {

using ::testing::HasSubstr;

constexpr int kFileTooLong = SIGXFSZ;
void kill_at_once(int process) { kill(process, SIGKILL); }

/// No file of this process may grow beyond `bytes`; a write that would kills it, or fails where
/// the signal is ignored.
void limit_files(rlim_t bytes) {
  const rlimit no_core{};
  setrlimit(RLIMIT_CORE, &no_core);
  rlimit limit{};
  getrlimit(RLIMIT_FSIZE, &limit);
  limit.rlim_cur = bytes;
  setrlimit(RLIMIT_FSIZE, &limit);
}

/// Task by task: the one before ends, and this one starts.
model::Turn nth_turn(std::uint32_t n) {
  const std::int64_t now = 10 * std::int64_t{n};
  const model::Turn begin = granted(at(now), {key(n)}) + started(at(now + 1), key(n), 1000 + n);
  return n == 0 ? begin : finished(at(now), key(n - 1), "{}") + begin;
}

TEST(JournalKilled, HasTheWholePlanOrNotBegun) {
  const TestJob job{numbered(300)};
  int begun = 0;
  int not_begun = 0;
  // In small steps where the file is set up, in larger ones through the plan.
  for (rlim_t limit = 0; limit < (rlim_t{128} << 10U); limit += limit < 24'576 ? 512 : 2048) {
    SCOPED_TRACE(limit);
    const JournalDirectory directory;
    const int end = in_child([&] {
      limit_files(limit);
      return Journal::create(directory.journal(), "sweep", job.batch(), {}) ? 0 : 1;
    });
    ASSERT_TRUE(end == 0 || end == -kFileTooLong) << end;
    if (!must(Journal::has_begun(directory.journal()))) {
      ++not_begun;
      EXPECT_EQ(end, -kFileTooLong);
      const auto resumed = Journal::resume(directory.journal(), {job.batch()}, {});
      ASSERT_FALSE(resumed.has_value());
      EXPECT_THAT(resumed.error().message, HasSubstr("no run found in"));
      must(Journal::create(directory.journal(), "sweep", job.batch(), {}));
    } else {
      ++begun;
    }
    JournalReader reader = must(JournalReader::open(directory.journal()));
    EXPECT_EQ(must(reader.groups()).at(0).waiting, 300);
    EXPECT_EQ(all_tasks(reader).size(), 300U);
  }
  EXPECT_GT(begun, 5);
  EXPECT_GT(not_begun, 10);
}

TEST(JournalKilled, KeepsWholeTurnsWithARollbackJournalToo) {
  const TestJob job{numbered(300)};
  for (rlim_t limit = 0; limit < (rlim_t{64} << 10U); limit += 4096) {
    SCOPED_TRACE(limit);
    const JournalDirectory directory;
    const int end = in_child([&] {
      limit_files(limit);
      return Journal::create(directory.journal(), "sweep", job.batch(), {},
                             {.log = LogKind::Rollback})
                 ? 0
                 : 1;
    });
    ASSERT_TRUE(end == 0 || end == -kFileTooLong) << end;
    if (!must(Journal::has_begun(directory.journal()))) {
      must(Journal::create(directory.journal(), "sweep", job.batch(), {}));
    }
    JournalReader reader = must(JournalReader::open(directory.journal()));
    EXPECT_EQ(must(reader.groups()).at(0).waiting, 300);
  }
}

/// The journal of a killed yard holds whole turns, and `turns` of them at least.
void expect_whole_turns(const std::string& path, const TestJob& job, std::uint32_t turns) {
  {
    JournalReader reader = must(JournalReader::open(path));
    const GroupRow group = must(reader.groups()).at(0);
    const std::vector<TaskRow> running = all_tasks(reader, {.running = true});
    std::uint32_t finished = 0;
    for (const TaskRow& row : all_tasks(reader)) {
      finished += row.standing.verdict == model::Verdict::Finished ? 1 : 0;
    }
    EXPECT_EQ(group.finished, static_cast<int>(finished));
    EXPECT_EQ(group.running, static_cast<int>(running.size()));
    EXPECT_EQ(running.size(), turns == 0 && running.empty() ? 0U : 1U);
    EXPECT_GE(finished + running.size(), turns);
    if (!running.empty()) {
      EXPECT_EQ(running[0].index.value, finished);
      EXPECT_EQ(running[0].pid, 1000 + finished);
    }
    Database database = must(Database::open(path, Database::Access::Read));
    EXPECT_EQ(must(database.number("SELECT count(*) FROM events WHERE kind = 'ended'")), finished);
    EXPECT_EQ(must(database.number("SELECT count(*) FROM events WHERE kind = 'started'")),
              finished + running.size());
  }
  const auto resumed = must(Journal::resume(path, {job.batch()}, {}));
  for (std::uint32_t i = 0; i + 1 < turns; ++i) {
    EXPECT_TRUE(resumed.plans.at(0)->tasks[i].finished_before());
  }
}

TEST(JournalKilled, HasWholeTurnsWhereverAWriteIsCutOff) {
  const TestJob job{numbered(40)};
  for (rlim_t extra = 0; extra < (rlim_t{96} << 10U); extra += 1536) {
    SCOPED_TRACE(extra);
    const JournalDirectory directory;
    in_child([&] {
      auto journal = must(Journal::create(directory.journal(), "sweep", job.batch(), {}));
      limit_files(std::filesystem::file_size(directory.journal() + "-wal") + extra);
      for (std::uint32_t n = 0; n < 40; ++n) must(journal->commit(nth_turn(n)));
      return 0;
    });
    expect_whole_turns(directory.journal(), job, 0);
    if (HasFailure()) return;
  }
}

TEST(JournalKilled, KeepsEveryTurnThatWasCommitted) {
  constexpr std::uint32_t kTasks = 4'000;
  const TestJob job{numbered(kTasks)};
  for (const std::uint32_t turns : {1U, 7U, 300U, 2'500U}) {
    SCOPED_TRACE(turns);
    const JournalDirectory directory;
    std::array<int, 2> pipe_ends{};
    ASSERT_EQ(pipe(pipe_ends.data()), 0);
    const auto child = fork();
    if (child == 0) {
      auto journal = must(Journal::create(directory.journal(), "sweep", job.batch(), {}));
      for (std::uint32_t n = 0; n < kTasks; ++n) {
        must(journal->commit(nth_turn(n)));
        if (write(pipe_ends[1], "t", 1) != 1) _exit(1);
      }
      pause();
    }
    close(pipe_ends[1]);
    char byte = 0;
    for (std::uint32_t n = 0; n < turns; ++n) ASSERT_EQ(read(pipe_ends[0], &byte, 1), 1);
    kill_at_once(child);
    waitpid(child, nullptr, 0);
    close(pipe_ends[0]);
    expect_whole_turns(directory.journal(), job, turns);
  }
}

TEST(JournalWithoutDisk, SaysSoAndGoesOnWhenThereIsRoomAgain) {
  const TestJob job{numbered(40)};
  const JournalDirectory directory;
  const int end = in_child([&] {
    if (std::signal(kFileTooLong, SIG_IGN) == SIG_ERR) return 9;
    auto journal = must(Journal::create(directory.journal(), "sweep", job.batch(), {}));
    limit_files(std::filesystem::file_size(directory.journal() + "-wal") + 20'000);
    model::Turn offered;
    int refused = 0;
    for (std::uint32_t n = 0; n < 40; ++n) {
      offered = offered + nth_turn(n);
      const Result<void> done = journal->commit(offered);
      if (done) {
        offered = {};
        continue;
      }
      if (done.error().message.find("cannot be written because of its disk, a quota or a limit") ==
          std::string::npos) {
        std::fputs(done.error().message.c_str(), stderr);
        return 8;
      }
      refused += 1;
      if (refused == 5) limit_files(RLIM_INFINITY);
    }
    return refused == 5 && offered.events.empty() ? 0 : 7;
  });
  EXPECT_EQ(end, 0);
  expect_whole_turns(directory.journal(), job, 40);
}

TEST(JournalWithoutDisk, SaysThatTheDiskIsFull) {
  const TestJob job{numbered(400)};
  const JournalDirectory directory;
  const std::string wanted = "its disk is full (database or disk is full)";
  const auto refused =
      Journal::create(directory.journal(), "sweep", job.batch(), {}, {.pages_max = 10});
  ASSERT_FALSE(refused.has_value());
  EXPECT_THAT(refused.error().message, HasSubstr(wanted));
  EXPECT_FALSE(must(Journal::has_begun(directory.journal())));

  auto journal =
      must(Journal::create(directory.journal(), "sweep", job.batch(), {}, {.pages_max = 100}));
  std::uint32_t turns = 0;
  Result<void> done;
  while (turns < 400) {
    done = journal->commit(nth_turn(turns));
    if (!done) break;
    ++turns;
  }
  ASSERT_FALSE(done.has_value());
  EXPECT_THAT(done.error().message, HasSubstr(wanted));
  journal.reset();
  expect_whole_turns(directory.journal(), job, turns);
}

}  // namespace
}  // namespace trainyard::journal
