// The words of the yard and its guard arrive as they were sent, each by itself.
#include "process/guard_words.h"

#include <cerrno>
#include <climits>
#include <csignal>
#include <utility>

#include <sys/socket.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "model/event.h"
#include "model/ids.h"
#include "sys/passing.h"

namespace trainyard::process {
namespace {

TEST(GuardWords, ComeOutAsTheyWentInOneAfterTheOther) {
  auto [yard, guard] = sys::packet_pair().value();
  const ToGuard silent{.kind = ToGuard::Kind::Silent, .path = {}};
  const ToGuard remove{.kind = ToGuard::Kind::RemoveAtEnd, .path = std::string(107, 'x')};
  const ToGuard enter{.kind = ToGuard::Kind::Enter, .path = std::string(PATH_MAX, 'x')};
  EXPECT_FALSE(hear_yard(guard).word);
  send_word(yard, silent);
  send_word(yard, remove);
  send_word(yard, enter);
  EXPECT_EQ(hear_yard(guard).word, silent);
  EXPECT_EQ(hear_yard(guard).word, remove);
  EXPECT_EQ(hear_yard(guard).word, enter);
  const Heard<ToGuard> nothing = hear_yard(guard);
  EXPECT_FALSE(nothing.word || nothing.closed);
  yard.close();
  EXPECT_TRUE(hear_yard(guard).closed);
}

TEST(GuardWords, BringTheYardsEndOfAKeepersSocket) {
  const std::vector<UnreportedExit> exits{
      {.key = {.task = {7}, .attempt = 2}, .exit = model::ExitedWith{3}, .was_signalled = true},
      {.key = {.task = {8}}, .exit = model::KilledBy{.signal = SIGKILL, .out_of_memory = true}},
      {.key = {.task = {9}}, .exit = model::KilledBy{.signal = SIGKILL, .over_limit = true}}};
  auto [yard, guard] = sys::packet_pair().value();
  auto [its, keepers] = sys::socket_pair().value();
  send_word(guard, FromGuard{.keeper = 4711,
                             .socket = std::move(its),
                             .died = SIGKILL,
                             .exits = exits,
                             .was_silent = true});
  Heard<FromGuard> heard = hear_guard(yard);
  ASSERT_TRUE(heard.word && heard.word->keeper);
  EXPECT_EQ(*heard.word->keeper, 4711);
  EXPECT_EQ(heard.word->died, SIGKILL);
  EXPECT_EQ(heard.word->exits, exits);
  EXPECT_TRUE(heard.word->was_silent);
  EXPECT_EQ(heard.word->in_a_row, 0);
  char byte = 0;
  ASSERT_EQ(::write(keepers.get(), "x", 1), 1);
  EXPECT_EQ(::recv(heard.word->socket.get(), &byte, 1, MSG_DONTWAIT), 1);
  EXPECT_EQ(byte, 'x');

  send_word(guard, FromGuard{.in_a_row = 6, .error = EAGAIN});
  heard = hear_guard(yard);
  ASSERT_TRUE(heard.word);
  EXPECT_FALSE(heard.word->keeper || heard.word->died || heard.word->socket.is_open());
  EXPECT_EQ(heard.word->in_a_row, 6);
  EXPECT_EQ(heard.word->error, EAGAIN);
}

TEST(GuardWords, NameAsManyAttemptsAsTheBoardHasPlaces) {
  auto [yard, guard] = sys::packet_pair().value();
  const std::vector<UnreportedExit> exits(
      ExitBoard::kPlaces,
      {.key = {.task = {4'000'000}}, .exit = model::KilledBy{.signal = SIGTERM}});
  send_word(guard, FromGuard{.died = SIGKILL, .exits = exits});
  const Heard<FromGuard> heard = hear_guard(yard);
  ASSERT_TRUE(heard.word);
  EXPECT_EQ(heard.word->exits, exits);
}

TEST(GuardWords, ThatAreTooLongCloseTheLine) {
  auto [yard, guard] = sys::packet_pair().value();
  const std::string nonsense(2 * PATH_MAX, '\xff');
  ASSERT_GT(::send(yard.get(), nonsense.data(), nonsense.size(), 0), 0);
  EXPECT_TRUE(hear_yard(guard).closed);
}

TEST(GuardWords, AreLostWhereNobodyHearsThem) {
  auto [yard, guard] = sys::packet_pair().value();
  // A stopped guard: when its buffer is full, the yard does not wait.
  for (int i = 0; i < 10'000; ++i)
    send_word(yard, ToGuard{.kind = ToGuard::Kind::Silent, .path = {}});
  EXPECT_TRUE(hear_yard(guard).word);
  guard.close();
  send_word(yard, ToGuard{.kind = ToGuard::Kind::Answers, .path = {}});
}

}  // namespace
}  // namespace trainyard::process
