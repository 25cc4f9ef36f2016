#include "process/exit_board.h"

#include <csignal>
#include <cstdint>
#include <cstdlib>

#include <sys/wait.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "process/test_attempts.h"
#include "process/test_yard.h"

namespace trainyard::process {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

/// Forks a child that ends as `end` says, and waits until it has.
template <class End>
pid_t ended_child(const End& end) {
  const pid_t child = ::fork();
  if (child == 0) end();
  siginfo_t how{};
  ::waitid(P_PID, static_cast<id_t>(child), &how, WEXITED | WNOWAIT);
  return child;
}

TEST(ExitBoard, SaysHowAChildHasEndedThatStaysToBeReaped) {
  const pid_t well = ended_child([] { ::_exit(EXIT_SUCCESS); });
  const pid_t failed = ended_child([] { ::_exit(EXIT_FAILURE); });
  const pid_t killed = ended_child([] { ::raise(SIGKILL); });
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(has_exited_with_0(well), true);
    EXPECT_EQ(has_exited_with_0(failed), false);
    EXPECT_EQ(has_exited_with_0(killed), false);
  }
  for (const pid_t child : {well, failed, killed}) EXPECT_EQ(::waitpid(child, nullptr, 0), child);
  EXPECT_EQ(has_exited_with_0(well), false) << "it is nobody's child any more";
  const pid_t lives = ::fork();
  if (lives == 0) ::pause();
  EXPECT_EQ(has_exited_with_0(lives), std::nullopt);
  ::kill(lives, SIGKILL);
  ::waitpid(lives, nullptr, 0);
}

TEST(ExitBoard, NamesTheAttemptsThatFinishedAndHaveNotLeft) {
  ExitBoard board;
  for (const std::uint32_t number : {1U, 2U, 3U, 4U}) {
    board.enter(TestYard::key(number), static_cast<pid_t>(100 + number));
  }
  board.mark_finished(TestYard::key(1));
  board.mark_finished(TestYard::key(2));
  board.leave(TestYard::key(2));
  board.mark_finished(TestYard::key(5));
  const std::vector<pid_t> unreaped{103, 105};
  EXPECT_THAT(board.take_finished(unreaped), ElementsAre(TestYard::key(1), TestYard::key(3)));
  EXPECT_THAT(board.take_finished(unreaped), IsEmpty());
}

TEST(ExitBoard, HasWhatAProcessThatWasKilledHasWritten) {
  ExitBoard board;
  const pid_t keeper = ended_child([&board] {
    board.enter(TestYard::key(1), 101);
    board.enter(TestYard::key(2), 102);
    board.mark_finished(TestYard::key(2));
    ::raise(SIGKILL);
  });
  ::waitpid(keeper, nullptr, 0);
  EXPECT_THAT(board.take_finished({}), ElementsAre(TestYard::key(2)));
}

TEST(ExitBoard, HasPlacesAgainWhenAttemptsHaveLeft) {
  ExitBoard board;
  const auto enter = [&board](std::uint32_t number) {
    board.enter(TestYard::key(number), 100);
    board.mark_finished(TestYard::key(number));
  };
  for (std::uint32_t number = 0; number < ExitBoard::kPlaces; ++number) enter(number);
  const auto over = static_cast<std::uint32_t>(ExitBoard::kPlaces);
  enter(over);  // It has no place.
  board.leave(TestYard::key(7));
  enter(over + 1);
  std::vector<model::AttemptKey> finished = board.take_finished({});
  EXPECT_THAT(finished, SizeIs(ExitBoard::kPlaces));
  EXPECT_EQ(finished.at(7), TestYard::key(over + 1));
}

TEST_F(KeeperAttemptsTest, HasAnExitWith0OnTheBoardUntilItIsReported) {
  for (const std::uint32_t task : {1U, 2U}) {
    const Number process = start(task, {task == 1 ? "true" : "false"});
    ASSERT_TRUE(wait_for_exit(process));
    attempts_.look_at_start(process, Clock::now());
    reap(process);
    ASSERT_EQ(attempts_.process_of(process), nullptr) << "it is reaped";
  }
  EXPECT_THAT(board_.take_finished({}), ElementsAre(TestYard::key(1)));
}

}  // namespace
}  // namespace trainyard::process
