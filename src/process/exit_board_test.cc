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

const ProcessExit kWell = model::ExitedWith{0};
const ProcessExit kKilled = model::KilledBy{.signal = SIGKILL};

/// Forks a child that ends as `end` says, and waits until it has.
template <class End>
pid_t ended_child(const End& end) {
  const pid_t child = ::fork();
  if (child == 0) end();
  siginfo_t how{};
  ::waitid(P_PID, static_cast<id_t>(child), &how, WEXITED | WNOWAIT);
  return child;
}

std::vector<UnreportedExit> take_ended(ExitBoard& board, const std::vector<pid_t>& unreaped = {}) {
  std::vector<UnreportedExit> exits;
  for (const FoundExit& it : board.find_ended(unreaped)) exits.push_back(it.exit);
  board.clear();
  return exits;
}

std::optional<ProcessExit> exit_of(pid_t child) {
  return end_of_child(child).value_or(ChildEnd{}).exit;
}

TEST(ExitBoard, SaysHowAChildHasEndedThatStaysToBeReaped) {
  const pid_t well = ended_child([] { ::_exit(EXIT_SUCCESS); });
  const pid_t failed = ended_child([] { ::_exit(EXIT_FAILURE); });
  const pid_t killed = ended_child([] { ::raise(SIGKILL); });
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(exit_of(well), kWell);
    EXPECT_EQ(exit_of(failed), ProcessExit(model::ExitedWith{EXIT_FAILURE}));
    EXPECT_EQ(exit_of(killed), kKilled);
  }
  EXPECT_THAT(exited_well(std::vector<pid_t>{well, failed, killed}), ElementsAre(well));
  for (const pid_t child : {well, failed, killed}) EXPECT_EQ(::waitpid(child, nullptr, 0), child);
  EXPECT_TRUE(end_of_child(well));
  EXPECT_EQ(exit_of(well), std::nullopt) << "it is nobody's child any more";
  const pid_t lives = ::fork();
  if (lives == 0) ::pause();
  EXPECT_FALSE(end_of_child(lives));
  ::kill(lives, SIGKILL);
  ::waitpid(lives, nullptr, 0);
}

TEST(ExitBoard, HasTheExitsOfTheAttemptsThatHaveNotLeft) {
  ExitBoard board;
  for (const std::uint32_t number : {1U, 2U, 3U, 4U}) {
    board.enter(TestYard::key(number), static_cast<pid_t>(100 + number));
  }
  board.mark_ended(TestYard::key(1), model::ExitedWith{3});
  board.mark_ended(TestYard::key(2), model::ExitedWith{0});
  board.leave(TestYard::key(2));
  board.mark_ended(TestYard::key(5), model::ExitedWith{0});
  const std::vector<pid_t> unreaped{101, 103, 105};
  EXPECT_THAT(take_ended(board, unreaped),
              ElementsAre(UnreportedExit{.key = TestYard::key(1), .exit = model::ExitedWith{3}},
                          UnreportedExit{.key = TestYard::key(3), .exit = kWell}));
  EXPECT_THAT(take_ended(board, unreaped), IsEmpty());
}

TEST(ExitBoard, HasAnExitUntilItIsClearedHoweverOftenItIsFound) {
  ExitBoard board;
  for (const std::uint32_t number : {1U, 2U, 3U}) {
    board.enter(TestYard::key(number), static_cast<pid_t>(100 + number));
  }
  board.mark_ended(TestYard::key(1), model::ExitedWith{3});
  EXPECT_THAT(board.find_ended(std::vector<pid_t>{102}), SizeIs(2));
  // The second one is reaped by now, and the number of the third is that of another process.
  EXPECT_THAT(take_ended(board, {103}),
              ElementsAre(UnreportedExit{.key = TestYard::key(1), .exit = model::ExitedWith{3}},
                          UnreportedExit{.key = TestYard::key(2), .exit = kWell}));
}

TEST(ExitBoard, HasTheNoteOrderOfAnExitAndWhetherItWasToldToEnd) {
  ExitBoard board;
  const std::string longest(ExitBoard::kNoteOrderMax, 'x');
  board.enter(TestYard::key(1), 101, longest);
  board.enter(TestYard::key(2), 102, longest + 'x');
  board.enter(TestYard::key(3), 103);
  board.enter(TestYard::key(4), 104, longest);
  board.mark_signalled(TestYard::key(2));
  board.mark_signalled(TestYard::key(4));
  board.mark_signalled(TestYard::key(6));
  // Its place is taken anew.
  board.leave(TestYard::key(4));
  board.enter(TestYard::key(5), 105, "order");
  const std::vector<FoundExit> found = board.find_ended(std::vector<pid_t>{101, 102, 103, 105});
  ASSERT_THAT(found, SizeIs(4));
  EXPECT_EQ(found[0].note_order, longest);
  EXPECT_EQ(found[1].note_order, "") << "it is too long";
  EXPECT_EQ(found[2].note_order, "");
  EXPECT_EQ(found[3].note_order, "order");
  EXPECT_FALSE(found[0].exit.was_signalled);
  EXPECT_TRUE(found[1].exit.was_signalled);
  EXPECT_FALSE(found[2].exit.was_signalled);
  EXPECT_FALSE(found[3].exit.was_signalled);
}

TEST(ExitBoard, HasNoAttemptWithoutTheExitOfAProcess) {
  ExitBoard board;
  for (const std::uint32_t number : {1U, 2U}) board.enter(TestYard::key(number), 100);
  board.mark_ended(TestYard::key(1), model::NotStarted{.why = "no such file"});
  board.mark_ended(TestYard::key(2), model::Vanished{"somebody else has waited for it"});
  EXPECT_THAT(take_ended(board, {100}), IsEmpty());
}

TEST(ExitBoard, HasWhatAProcessThatWasKilledHasWritten) {
  ExitBoard board;
  const pid_t keeper = ended_child([&board] {
    board.enter(TestYard::key(1), 101);
    board.enter(TestYard::key(2), 102);
    board.mark_ended(TestYard::key(2), model::KilledBy{.signal = SIGKILL});
    ::raise(SIGKILL);
  });
  ::waitpid(keeper, nullptr, 0);
  EXPECT_THAT(take_ended(board),
              ElementsAre(UnreportedExit{.key = TestYard::key(2), .exit = kKilled}));
}

TEST(ExitBoard, HasPlacesAgainWhenAttemptsHaveLeft) {
  ExitBoard board;
  const auto enter = [&board](std::uint32_t number) {
    board.enter(TestYard::key(number), 100);
    board.mark_ended(TestYard::key(number), model::ExitedWith{0});
  };
  for (std::uint32_t number = 0; number < ExitBoard::kPlaces; ++number) enter(number);
  const auto over = static_cast<std::uint32_t>(ExitBoard::kPlaces);
  enter(over);  // It has no place.
  board.leave(TestYard::key(7));
  enter(over + 1);
  const std::vector<UnreportedExit> ended = take_ended(board);
  EXPECT_THAT(ended, SizeIs(ExitBoard::kPlaces));
  EXPECT_EQ(ended.at(7).key, TestYard::key(over + 1));
}

TEST_F(KeeperAttemptsTest, HasAnExitOnTheBoardUntilItIsReported) {
  for (const std::uint32_t task : {1U, 2U}) {
    const Number process = start(task, {task == 1 ? "true" : "false"});
    ASSERT_TRUE(wait_for_exit(process));
    attempts_.look_at_start(process, Clock::now());
    reap(process);
    ASSERT_EQ(attempts_.process_of(process), nullptr) << "it is reaped";
  }
  EXPECT_THAT(take_ended(board_),
              ElementsAre(UnreportedExit{.key = TestYard::key(1), .exit = kWell},
                          UnreportedExit{.key = TestYard::key(2), .exit = model::ExitedWith{1}}));
}

}  // namespace
}  // namespace trainyard::process
