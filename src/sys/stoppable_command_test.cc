// With real commands.
#include "sys/stoppable_command.h"

#include <filesystem>
#include <thread>

#include <sys/stat.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "sys/files.h"
#include "sys/test_directory.h"
#include "sys/test_wait.h"

namespace trainyard::sys {
namespace {

TEST(StoppableCommand, SaysHowTheCommandEnded) {
  EXPECT_EQ(run_stoppable({.arguments = {"true"}}, {})->exit_code, 0);
  EXPECT_EQ(run_stoppable({.arguments = {"sh", "-c", "exit 3"}}, {})->exit_code, 3);
  const auto killed = run_stoppable({.arguments = {"sh", "-c", "kill -9 $$"}}, {});
  EXPECT_EQ(killed->signal, SIGKILL);
  EXPECT_EQ(killed->exit_code, 0);
}

TEST(StoppableCommand, SaysWhichProgramCannotBeRun) {
  const auto end = run_stoppable({.arguments = {"no-such-program"}}, {});
  ASSERT_FALSE(end);
  EXPECT_EQ(end.error().message, "cannot run 'no-such-program': no such file or directory");
}

TEST(StoppableCommand, HasItsOwnVariablesInThePlaceOfOurs) {
  EXPECT_EQ(
      run_stoppable(
          {.arguments = {"sh", "-c", R"(test "$HOME" = there)"}, .environment = {"HOME=there"}}, {})
          ->exit_code,
      0);
}

TEST(StoppableCommand, EndsWhenItIsStoppedAndIsKilledWhenItDoesNot) {
  for (const bool deaf : {false, true}) {
    const TemporaryDirectory place;
    std::stop_source stop;
    const std::jthread stopper([&] {
      EXPECT_TRUE(eventually([&] { return content_of(place / "there") == "\n"; }));
      stop.request_stop();
    });
    const auto end =
        run_stoppable({.arguments = {"sh", "-c",
                                     std::string(deaf ? "trap '' TERM; " : "") + "echo > " +
                                         (place / "there") + "; while :; do sleep 1; done"},
                       .grace = deaf ? Duration(50) : Duration(60'000)},
                      stop.get_token());
    EXPECT_EQ(end->signal, deaf ? SIGKILL : SIGTERM);
  }
}

TEST(StoppableCommand, IsStoppedAtItsDeadlineWithAllOfItsGroup) {
  for (const bool deaf : {false, true}) {
    const TemporaryDirectory place;
    Result<CommandEnd> end = CommandEnd{};
    // A busy machine may take longer than the deadline to start the command.
    for (Duration deadline{200}; !content_of(place / "child").ends_with('\n'); deadline *= 2) {
      ASSERT_LT(deadline, kLongEnough) << "it never began";
      end = run_stoppable(
          {.arguments = {"sh", "-c",
                         std::string(deaf ? "trap '' TERM; " : "") +
                             "echo begun; sleep 1000 & echo $! > child; wait; sleep 1000"},
           .directory = place.path(),
           .output = place / "output",
           .deadline = deadline,
           .grace = deaf ? Duration(50) : Duration(60'000)},
          {});
      ASSERT_TRUE(end);
      EXPECT_TRUE(end->late);
      EXPECT_EQ(end->asked_by, 0);
    }
    EXPECT_EQ(end->signal, deaf ? SIGKILL : SIGTERM);
    EXPECT_EQ(content_of(place / "output"), "begun\n");
    const int child = std::stoi(content_of(place / "child"));
    EXPECT_TRUE(eventually([&] {
      const std::string stat = content_of("/proc/" + std::to_string(child) + "/stat");
      return stat == "(cannot be read)" || stat.contains(") Z ");
    })) << child;
  }
}

TEST(StoppableCommand, KeepsWhatItPrintsInAFileOfItsOwn) {
  const TemporaryDirectory place;
  place.write("output", "of the last time\n");
  const auto end = run_stoppable({.arguments = {"sh", "-c", "cat; pwd; echo err >&2; exit 4"},
                                  .directory = place.path(),
                                  .output = place / "output",
                                  .deadline = Duration(60'000)},
                                 {});
  ASSERT_TRUE(end);
  EXPECT_EQ(end->exit_code, 4);
  EXPECT_FALSE(end->late);
  EXPECT_EQ(content_of(place / "output"), place.path() + "\nerr\n");
}

TEST(StoppableCommand, IsNotRunWhereAPipeOrAnotherFileIsInThePlaceOfItsOutput) {
  const TemporaryDirectory place;
  place.write("mine", "mine");
  ASSERT_EQ(::mkfifo((place / "fifo").c_str(), 0600), 0);
  std::filesystem::create_symlink(place / "mine", place / "link");
  for (const std::string name : {"fifo", "link"}) {
    EXPECT_TRUE(holds_in_time([&] {
      return !run_stoppable({.arguments = {"true"}, .output = place / name}, {});
    })) << name;
  }
  EXPECT_EQ(content_of(place / "mine"), "mine");
}

TEST(StoppableCommand, IsStoppedByASignalThatWouldEndUs) {
  const TemporaryDirectory place;
  const auto end = run_stoppable(
      {.arguments = {"sh", "-c", "kill -TERM " + std::to_string(::getpid()) + "; sleep 1000"},
       .grace = Duration(60'000),
       .stops_on_signals = true},
      {});
  ASSERT_TRUE(end);
  EXPECT_EQ(end->asked_by, SIGTERM);
  EXPECT_EQ(end->signal, SIGTERM);
  EXPECT_FALSE(end->late);
}

}  // namespace
}  // namespace trainyard::sys
