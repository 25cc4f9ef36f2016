#include <array>
#include <csignal>
#include <limits>
#include <string_view>
#include <vector>

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "queue/queue_server.h"
#include "sys/files.h"
#include "sys/pidfd.h"
#include "sys/test_directory.h"

namespace trainyard::queue {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

/// The end of a pipe that a run has, and the one that the queue watches.
struct Pipe {
  Pipe() {
    std::array<int, 2> ends{};
    EXPECT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
    watched = sys::Descriptor(ends[0]);
    of_run = sys::Descriptor(ends[1]);
  }
  void say(std::string_view words) const { EXPECT_TRUE(sys::write_all(of_run, words, "pipe")); }
  sys::Descriptor watched;
  sys::Descriptor of_run;
};

/// Active runs whose processes are pipes of the test. The process id is that of no process.
class ActiveRunsTest : public testing::Test {
 protected:
  void add(std::uint32_t number, std::int64_t pid = std::numeric_limits<std::int32_t>::max()) {
    runs_.add(number, "/runs/vit", {.number = number, .priority = 3},
              {.pid = pid, .ended = std::move(end_.watched), .words = std::move(words_.watched)});
  }
  void run_loop() { loop_.run_once(Duration{0}); }

  Pipe end_;
  Pipe words_;
  sys::EventLoop loop_;
  std::vector<std::uint32_t> spoke_;
  std::vector<ActiveRuns::EndedRun> ended_;
  ActiveRuns runs_{loop_,
                   {.see_words = [this](std::uint32_t number) { spoke_.push_back(number); },
                    .see_end = [this](const ActiveRuns::EndedRun& run) { ended_.push_back(run); }}};
};

TEST_F(ActiveRunsTest, WaitForRoomUntilTheySayThatTheyHaveFoundIt) {
  EXPECT_TRUE(runs_.is_empty());
  add(7);
  EXPECT_TRUE(runs_.contains(7));
  EXPECT_FALSE(runs_.contains(8));
  EXPECT_FALSE(runs_.is_empty());
  QueueLoad load = runs_.load();
  EXPECT_EQ(load.at_work, 1);
  ASSERT_EQ(load.without_room.size(), 1);
  EXPECT_EQ(load.without_room.front().submission.priority, 3);
  EXPECT_EQ(load.without_room.front().need, RoomNeed{}) << "not known yet";
  run_loop();
  EXPECT_THAT(spoke_, IsEmpty());
  words_.say("cpus 4000000000 8000\n");
  run_loop();
  EXPECT_THAT(spoke_, ElementsAre(7));
  load = runs_.load();
  ASSERT_EQ(load.without_room.size(), 1);
  EXPECT_EQ(load.without_room.front().need.cause, model::Cause::Cpus);
  words_.say("found\n");
  run_loop();
  EXPECT_THAT(spoke_, ElementsAre(7, 7));
  EXPECT_THAT(runs_.load().without_room, IsEmpty());
  EXPECT_EQ(runs_.load().at_work, 1);
  EXPECT_THAT(ended_, IsEmpty());
}

TEST_F(ActiveRunsTest, StayActiveWhenTheySayNothingMore) {
  add(7);
  words_.of_run.close();
  run_loop();
  run_loop();
  EXPECT_TRUE(runs_.contains(7));
  EXPECT_THAT(spoke_, IsEmpty());
  EXPECT_THAT(ended_, IsEmpty());
}

TEST_F(ActiveRunsTest, EndOnceWithTheirProcess) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(3);
  siginfo_t end{};
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(child), &end, WEXITED | WNOWAIT), 0);
  add(7, child);
  end_.of_run.close();
  run_loop();
  run_loop();
  ASSERT_EQ(ended_.size(), 1);
  EXPECT_EQ(ended_.front().number, 7);
  EXPECT_EQ(ended_.front().run_directory, "/runs/vit");
  ASSERT_TRUE(ended_.front().process);
  EXPECT_EQ(ended_.front().process->exit_code, 3);
  EXPECT_TRUE(runs_.is_empty());
}

TEST_F(ActiveRunsTest, AreAdoptedIfAnotherProcessRunsThem) {
  const sys::TemporaryDirectory run{sys::TemporaryDirectory::in_memory()};
  EXPECT_FALSE(runs_.adopt(7, run / ""));
  EXPECT_TRUE(runs_.is_empty());
  const auto lock = sys::RunLock::take(run / "");
  ASSERT_TRUE(lock);
  EXPECT_TRUE(runs_.adopt(7, run / ""));
  EXPECT_TRUE(runs_.contains(7));
  EXPECT_EQ(runs_.load().at_work, 1);
  EXPECT_THAT(runs_.load().without_room, IsEmpty());
  EXPECT_FALSE(runs_.poll_unwatched()) << "its process is watched";
}

TEST_F(ActiveRunsTest, ArePolledWhereTheirProcessCannotBeNamed) {
  const sys::TemporaryDirectory run{sys::TemporaryDirectory::in_memory()};
  {
    const auto lock = sys::RunLock::take(run / "");
    ASSERT_TRUE(lock);
    run.write("lock", "");
    ASSERT_EQ(sys::RunLock::holder(run / ""), 0);
    ASSERT_TRUE(runs_.adopt(7, run / ""));
    EXPECT_TRUE(runs_.poll_unwatched());
    run_loop();
    EXPECT_THAT(ended_, IsEmpty());
  }
  EXPECT_TRUE(runs_.poll_unwatched());
  run_loop();
  ASSERT_EQ(ended_.size(), 1);
  EXPECT_EQ(ended_.front().number, 7);
  EXPECT_EQ(ended_.front().run_directory, run / "");
  EXPECT_FALSE(ended_.front().process) << "it was no child";
  EXPECT_FALSE(runs_.poll_unwatched());
}

TEST_F(ActiveRunsTest, AreInterruptedBySigint) {
  // A shell may start the test as a program that ignores it.
  const auto before = std::signal(SIGINT, SIG_DFL);
  const pid_t child = ::fork();
  if (child == 0) {
    for (;;) ::pause();
  }
  std::signal(SIGINT, before);
  end_.watched = sys::open_pidfd(child);
  add(7, child);
  runs_.interrupt();
  siginfo_t end{};
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(child), &end, WEXITED | WNOWAIT), 0);
  run_loop();
  ASSERT_EQ(ended_.size(), 1);
  ASSERT_TRUE(ended_.front().process);
  EXPECT_EQ(ended_.front().process->signal, SIGINT);
}

}  // namespace
}  // namespace trainyard::queue
