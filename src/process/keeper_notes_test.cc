// The keeper notes the end of attempts when there is no yard to write it down.
#include <algorithm>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/bytes.h"
#include "base/check.h"
#include "base/time.h"
#include "model/event.h"
#include "model/launch.h"
#include "process/end_notes.h"
#include "process/keeper.h"
#include "process/keeper_message.h"
#include "process/keeper_process.h"
#include "process/test_attempts.h"
#include "process/test_yard.h"
#include "sys/files.h"
#include "sys/process_scan.h"
#include "sys/test_directory.h"
#include "sys/test_wait.h"

namespace trainyard::process {
namespace {

const EndNotes kExecution{
    .path = {}, .execution = 2, .started_unix_ms = 1'700'000'000'000, .clock_offset = Duration(-7)};

/// Saves when it gets TERM, and leaves a result.
constexpr const char* kSaves =
    "trap 'echo \"{\\\"saved\\\": 1}\" > $TRAINYARD_TASK_DIR/result.json; exit 0' TERM; echo $$ > "
    "$TRAINYARD_TASK_DIR/runs; while :; do sleep 0.01; done";

constexpr const char* kStays =
    "trap '' TERM; echo $$ > $TRAINYARD_TASK_DIR/runs; while :; do sleep 0.01; done";

/// A yard in a process of its own, which is killed; and what its keeper has noted.
class Noted : public ::testing::Test {
 protected:
  /// `live` starts tasks and waits until they are as they should be; then the yard is killed.
  void kill_when(const std::function<void(TestYard&)>& live) {
    const pid_t yard_process = ::fork();
    if (yard_process == 0) {
      ::setenv("TMPDIR", place_.path().c_str(), 1);  // So that what it leaves goes with ours.
      TestYard yard({.stop_grace = Duration(500)});
      EndNotes notes = kExecution;
      notes.path = path_;
      yard.keeper.note_ends(notes);
      live(yard);
      check(
          sys::replace_file(place_ / "keeper", fmt::format("{}\n", yard.keeper.pid())).has_value(),
          "a place to write to");
      for (;;) yard.loop.run_once(std::nullopt);
    }
    const std::int64_t keeper = pid_in(place_ / "keeper");
    ::kill(yard_process, SIGKILL);
    ASSERT_EQ(::waitpid(yard_process, nullptr, 0), yard_process);
    ASSERT_TRUE(sys::eventually([&] { return !is_alive(keeper); }));
  }

  [[nodiscard]] std::vector<EndNote> all_notes() const {
    return read_end_notes(sys::read_file(path_, mib(64)).value_or(""));
  }
  /// The last of each attempt. One that had processes left when it ended has two.
  [[nodiscard]] std::map<std::uint32_t, EndNote> notes() const {
    std::map<std::uint32_t, EndNote> notes;
    for (EndNote& note : all_notes()) {
      notes.insert_or_assign(note.attempt.journal_number, std::move(note));
    }
    return notes;
  }

  static model::Launch numbered(model::Launch launch, std::uint32_t number) {
    launch.journal_number = number;
    return launch;
  }
  /// Starts one under its number, and waits until it says that it runs.
  static void start(TestYard& yard, const std::string& text, std::uint32_t number) {
    yard.keeper.start(TestYard::key(number), numbered(yard.shell(text, number), number));
    yard.wait_for_start(number);
  }

  sys::TemporaryDirectory place_;
  std::string path_ = place_ / "trainyard.ends";
};

TEST_F(Noted, HasWhatEndsWhenTheYardIsGone) {
  kill_when([](TestYard& yard) {
    start(yard, kSaves, 1);
    yard.wait_for_pid("task1/runs");
    start(yard, "exec sleep 1000", 2);
    // Only KILL ends it.
    start(yard, kStays, 3);
    yard.wait_for_pid("task3/runs");
  });
  const auto noted = notes();
  ASSERT_EQ(noted.size(), 3U);
  const EndNote& saved = noted.at(1);
  EXPECT_EQ(saved.of, kExecution);
  EXPECT_EQ(saved.ended.end, model::End(model::ExitedWith{0}));
  EXPECT_EQ(saved.ended.left.result, "{\"saved\": 1}\n");
  EXPECT_EQ(saved.ended.key.attempt, 1U);
  EXPECT_TRUE(saved.ended.at);
  EXPECT_EQ(noted.at(2).ended.end, model::End(model::KilledBy{.signal = SIGTERM}));
  EXPECT_EQ(noted.at(3).ended.end, model::End(model::KilledBy{.signal = SIGKILL}));
  for (const auto& [number, note] : noted) EXPECT_TRUE(note.ended.told_to_end) << number;
}

TEST_F(KeeperAttemptsTest, CountsAKilledStartAsToldToEnd) {
  // A process may exit before anything else is asked of it.
  const Number process = start(1, {"sleep", "1000"});
  attempts_.end_those_on_their_way();
  ASSERT_TRUE(wait_for_exit(process));
  const auto over = over_after_exit(process);
  ASSERT_EQ(over.size(), 1U);
  EXPECT_EQ(over.front().ended.end, model::End(model::KilledBy{.signal = SIGKILL}));
  EXPECT_TRUE(over.front().ended.told_to_end);
}

TEST_F(KeeperAttemptsTest, DoesNotCountWhatHadExitedAsToldToEnd) {
  const Number process = start(1, {"true"});
  ASSERT_TRUE(wait_for_exit(process));
  attempts_.look_at_start(process, Clock::now());
  const SignalMessage term{.key = TestYard::key(1), .signal = SIGTERM};
  attempts_.signal(std::span(&term, 1));
  const auto over = over_after_exit(process);
  ASSERT_EQ(over.size(), 1U);
  EXPECT_EQ(over.front().ended.end, model::End(model::ExitedWith{0}));
  EXPECT_FALSE(over.front().ended.told_to_end);
}

TEST_F(KeeperAttemptsTest, GivesAnEndOnceWhileProcessesOfTheAttemptAreLeft) {
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  const Number process = start(1, {"sh", "-c", "sleep 1000 & exit 3"});
  ASSERT_TRUE(wait_for_exit(process));
  const auto now = Clock::now();
  reap(process);
  // Nobody has waited yet for what was killed with the group.
  const KeeperAttempts::ClearedUp first = attempts_.clear_up(false, now);
  EXPECT_TRUE(first.over.empty());
  ASSERT_EQ(first.lingering.size(), 1U);
  EXPECT_EQ(first.lingering.front().ended.end, model::End(model::ExitedWith{3}));
  KeeperAttempts::ClearedUp last;
  EXPECT_TRUE(sys::eventually([&] {
    attempts_.look_around();
    last = attempts_.clear_up(true, now);
    EXPECT_TRUE(last.lingering.empty());
    return !last.over.empty();
  }));
  ASSERT_EQ(last.over.size(), 1U);
  EXPECT_EQ(last.over.front().ended.end, model::End(model::ExitedWith{3}));
}

TEST_F(Noted, HasAnEndBeforeAllProcessesOfTheAttemptAreGoneAndOnceMore) {
  kill_when([](TestYard& yard) {
    yard.run(numbered(
        yard.shell("setsid -f sh -c 'echo $$ > $TRAINYARD_TASK_DIR/daemon; exec sleep 1000'; until "
                   "[ -e $TRAINYARD_TASK_DIR/daemon ]; do sleep 0.01; done; exit 3"),
        1));
  });
  const std::vector<EndNote> noted = all_notes();
  ASSERT_EQ(noted.size(), 2U);
  for (const EndNote& note : noted) {
    EXPECT_EQ(note.attempt.journal_number, 1U);
    EXPECT_EQ(note.ended.end, model::End(model::ExitedWith{3}));
    EXPECT_FALSE(note.ended.told_to_end);
  }
}

TEST_F(Noted, HasWhatHadEndedBeforeYardAndKeeperWereKilled) {
  kill_when([this](TestYard& yard) {
    for (const std::uint32_t number : {1U, 2U}) {
      yard.keeper.start(TestYard::key(number),
                        numbered(yard.shell(number == 1 ? "exit 3" : "exit 0", number), number));
      yard.wait_for_end(number);
    }
    // The end of a task that left nothing is reported while its note is written.
    check(sys::eventually([this] { return notes().size() == 2; }), "all ends are noted");
    ::kill(static_cast<pid_t>(yard.keeper.guard_pid()), SIGKILL);
    ::kill(static_cast<pid_t>(yard.keeper.pid()), SIGKILL);
  });
  const auto noted = notes();
  ASSERT_EQ(noted.size(), 2U);
  EXPECT_EQ(noted.at(1).ended.end, model::End(model::ExitedWith{3}));
  EXPECT_EQ(noted.at(2).ended.end, model::End(model::ExitedWith{0}));
  EXPECT_FALSE(noted.at(2).ended.told_to_end);
}

TEST_F(Noted, HasExitsWith0ThatAKeeperHadNotSeenWhenItWasKilledWithTheYard) {
  const std::string go = place_ / "go";
  kill_when([&go](TestYard& yard) {
    const std::string waits = fmt::format("until [ -e {} ]; do sleep 0.01; done; ", go);
    std::vector<std::int64_t> tasks;
    for (const std::uint32_t number : {1U, 2U, 3U}) {
      const char* const end =
          number == 1 ? "exit 3" : "echo '{}' > $TRAINYARD_TASK_DIR/result.json";
      start(yard, waits + end, number);
      tasks.push_back(*yard.started(number));
    }
    const auto keeper = static_cast<pid_t>(yard.keeper.pid());
    ::kill(keeper, SIGSTOP);
    check(sys::replace_file(go, "").has_value(), "a place to write to");
    const sys::ProcessScan scan;
    const auto has_exited = [&scan](std::int64_t task) { return scan.read(task)->state == 'Z'; };
    check(sys::eventually([&] { return std::ranges::all_of(tasks, has_exited); }), "all exit");
    ::kill(keeper, SIGKILL);
  });
  ASSERT_TRUE(sys::eventually([this] { return notes().size() == 2; }));
  const auto noted = notes();
  for (const std::uint32_t number : {2U, 3U}) {
    ASSERT_TRUE(noted.contains(number)) << number;
    const EndNote& note = noted.at(number);
    EXPECT_EQ(note.of, kExecution);
    EXPECT_EQ(note.ended.end, model::End(model::ExitedWith{0}));
    EXPECT_EQ(note.ended.left.result, "{}\n");
    EXPECT_EQ(note.ended.key.attempt, 1U);
    EXPECT_TRUE(note.ended.at);
    EXPECT_FALSE(note.ended.told_to_end);
  }
}

TEST_F(Noted, HasAnEndWhoseNoteWasUnwrittenWhenYardAndKeeperWereKilled) {
  kill_when([this](TestYard& yard) {
    start(yard, "exit 0", 1);
    yard.wait_for_end(1);
    check(sys::eventually([this] { return notes().size() == 1; }), "the reader runs");
    // From now on it writes nothing.
    sys::ProcessScan scan;
    for (const sys::ProcessStat& process : scan.read_all()) {
      if (process.parent == yard.keeper.pid()) ::kill(static_cast<pid_t>(process.pid), SIGSTOP);
    }
    // Messages are taken in order: this one before the start.
    yard.keeper.is_written(TestYard::key(1));
    start(yard, "exit 3", 2);
    yard.wait_for_end(2);
    ::kill(static_cast<pid_t>(yard.keeper.pid()), SIGKILL);
  });
  ASSERT_TRUE(sys::eventually([this] { return notes().contains(2); }));
  EXPECT_EQ(notes().at(2).ended.end, model::End(model::ExitedWith{3}));
}

TEST_F(Noted, HasWhatCouldNotBeNotedBeforeTheYardWasGone) {
  path_ = place_ / "later/trainyard.ends";
  kill_when([this](TestYard& yard) {
    yard.keeper.start(TestYard::key(1), numbered(yard.shell("exit 3", 1), 1));
    yard.wait_for_end(1);
    std::filesystem::create_directory(place_ / "later");
  });
  EXPECT_EQ(notes().size(), 1U);
}

TEST_F(Noted, IsForgottenOnceEnoughIsWrittenDown) {
  kill_when([this](TestYard& yard) {
    for (std::uint32_t number = 1; number <= KeeperProcess::kNotesKept; ++number) {
      check(number == 1 || std::filesystem::exists(path_), "some ends are kept");
      yard.keeper.start(TestYard::key(number), numbered(yard.shell("exit 3", number), number));
      yard.wait_for_end(number);
      if (number > 1) yard.keeper.is_written(TestYard::key(number));
    }
    check(std::filesystem::exists(path_), "the first one is not written down");
    yard.keeper.is_written(TestYard::key(1));
    check(yard.wait([this] { return !std::filesystem::exists(path_); }), "the file is emptied");
  });
  EXPECT_TRUE(notes().empty());
}

TEST_F(Noted, HasWhatHadEndedAndWasNotWrittenDown) {
  kill_when([](TestYard& yard) {
    for (const std::uint32_t number : {1U, 2U}) {
      yard.keeper.start(TestYard::key(number), numbered(yard.shell("exit 3", number), number));
      yard.wait_for_end(number);
    }
    yard.keeper.is_written(TestYard::key(1));
    // Later messages are taken in after it.
    yard.keeper.start(TestYard::key(3), yard.shell("exit 0", 3));
    yard.wait_for_end(3);
  });
  const auto noted = notes();
  ASSERT_TRUE(noted.contains(2));
  EXPECT_FALSE(noted.contains(3)) << "it has no number";
  EXPECT_EQ(noted.at(2).ended.end, model::End(model::ExitedWith{3}));
  EXPECT_FALSE(noted.at(2).ended.told_to_end);
}

TEST_F(Noted, HasNothingOfWhatNobodyWillAskFor) {
  kill_when([](TestYard& yard) {
    yard.keeper.start(TestYard::key(0), yard.launch({"sleep", "1000"}));
    yard.wait_for_start();
  });
  struct stat about{};
  EXPECT_NE(::stat(path_.c_str(), &about), 0) << "the file is not even made";
}

TEST_F(Noted, HasAnEndAlsoWhereATaskHasPutAPipe) {
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  kill_when([this](TestYard& yard) {
    start(yard, "echo $$ > " + (place_ / "task") + "; exec sleep 1000", 1);
    pid_in(place_ / "task");
  });
  EXPECT_FALSE(is_alive(pid_in(place_ / "task")));
  EXPECT_EQ(notes().size(), 1U);
}

TEST_F(Noted, IsInTheDirectoryOfTheRunWhereverATaskMovesIt) {
  place_.make("run");
  place_.make("other");
  place_.write("other/trainyard.ends", "of another run");
  path_ = place_ / "run/trainyard.ends";
  kill_when([this](TestYard& yard) {
    start(yard, "exec sleep 1000", 1);
    std::filesystem::rename(place_ / "run", place_ / "run.x");
    std::filesystem::create_symlink(place_ / "other", place_ / "run");
  });
  EXPECT_EQ(sys::content_of(place_ / "other/trainyard.ends"), "of another run");
  path_ = place_ / "run.x/trainyard.ends";
  EXPECT_EQ(notes().size(), 1U);
}

TEST_F(Noted, IsReadableUpToWhereTheKeeperWasKilledToo) {
  // The keeper dies while it waits for one of the two.
  const pid_t yard_process = ::fork();
  if (yard_process == 0) {
    ::setenv("TMPDIR", place_.path().c_str(), 1);
    TestYard yard({.stop_grace = Duration(60'000)});
    EndNotes notes = kExecution;
    notes.path = path_;
    yard.keeper.note_ends(notes);
    start(yard, kSaves, 1);
    yard.wait_for_pid("task1/runs");
    start(yard, kStays, 2);
    yard.wait_for_pid("task2/runs");
    check(sys::replace_file(place_ / "keeper", fmt::format("{}\n", yard.keeper.pid())).has_value(),
          "a place to write to");
    for (;;) yard.loop.run_once(std::nullopt);
  }
  const std::int64_t keeper = pid_in(place_ / "keeper");
  ::kill(yard_process, SIGKILL);
  ::waitpid(yard_process, nullptr, 0);
  EXPECT_TRUE(sys::eventually([&] { return !notes().empty(); }));
  ::kill(static_cast<pid_t>(keeper), SIGKILL);
  EXPECT_TRUE(sys::eventually([&] { return !is_alive(keeper); }));
  const auto noted = notes();
  ASSERT_EQ(noted.size(), 1U);
  EXPECT_EQ(noted.begin()->first, 1U);
}

TEST_F(Noted, IsKnownToTheKeeperThatTakesThePlaceOfAnother) {
  kill_when([](TestYard& yard) {
    yard.news.clear();
    ::kill(static_cast<pid_t>(yard.keeper.pid()), SIGKILL);
    yard.wait([&] {
      return !yard.news.empty() && std::holds_alternative<KeeperReplaced>(yard.news.back());
    });
    start(yard, "exec sleep 1000", 5);
  });
  EXPECT_EQ(notes().size(), 1U);
  EXPECT_TRUE(notes().contains(5));
}

}  // namespace
}  // namespace trainyard::process
