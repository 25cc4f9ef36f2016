// With real commands.
#include "sys/stoppable_command.h"

#include <csignal>
#include <stop_token>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include "base/time.h"
#include "sys/files.h"
#include "sys/test_directory.h"
#include "sys/test_wait.h"

namespace trainyard::sys {
namespace {

TEST(StoppableCommand, SaysHowTheCommandEnded) {
  EXPECT_EQ(run_stoppable({.arguments = {"true"}, .environment = {}}, {})->exit_code, 0);
  EXPECT_EQ(run_stoppable({.arguments = {"sh", "-c", "exit 3"}, .environment = {}}, {})->exit_code,
            3);
  const auto killed =
      run_stoppable({.arguments = {"sh", "-c", "kill -9 $$"}, .environment = {}}, {});
  EXPECT_EQ(killed->signal, SIGKILL);
  EXPECT_EQ(killed->exit_code, 0);
}

TEST(StoppableCommand, SaysWhichProgramCannotBeRun) {
  const auto end = run_stoppable({.arguments = {"no-such-program"}, .environment = {}}, {});
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
                       .environment = {},
                       .grace = deaf ? Duration(50) : Duration(60'000)},
                      stop.get_token());
    EXPECT_EQ(end->signal, deaf ? SIGKILL : SIGTERM);
  }
}

}  // namespace
}  // namespace trainyard::sys
