// A signal goes to the program, and not to its helpers.
#include "process/signal_receivers.h"

#include <csignal>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace trainyard::process {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<std::int64_t> receivers(int signal, const std::vector<SignalCandidate>& candidates) {
  return signal_receivers(signal, candidates);
}

SignalCandidate program(std::int64_t pid, std::int64_t parent) {
  return {.pid = pid, .parent = parent, .handles = true};
}
SignalCandidate helper(std::int64_t pid, std::int64_t parent) {
  return {.pid = pid, .parent = parent};
}
SignalCandidate shell(std::int64_t pid, std::int64_t parent, bool handles) {
  return {.pid = pid, .parent = parent, .handles = handles, .is_shell = true};
}

TEST(SignalReceivers, AreTheProgramAndNotItsHelpers) {
  EXPECT_THAT(receivers(SIGTERM, {program(10, 1), helper(11, 10), helper(12, 11)}),
              ElementsAre(10));
}

TEST(SignalReceivers, AreNoHelpersThatInheritedTheHandler) {
  EXPECT_THAT(receivers(SIGUSR1, {program(10, 1), program(11, 10), program(12, 10)}),
              ElementsAre(10));
  EXPECT_THAT(receivers(SIGUSR1, {program(10, 1), helper(11, 10), program(12, 11)}),
              ElementsAre(10))
      << "nor one behind a helper that did not";
}

TEST(SignalReceivers, AreTheProgramInAScriptAndNotItsShell) {
  EXPECT_THAT(receivers(SIGTERM, {shell(10, 1, false), program(11, 10), program(12, 11)}),
              ElementsAre(11));
  EXPECT_THAT(receivers(SIGTERM, {shell(10, 1, true), program(11, 10), program(12, 11)}),
              ElementsAre(11))
      << "a trap on EXIT makes bash handle TERM, and exit before the program has saved";
}

TEST(SignalReceivers, AreTheLauncherWhereItHandlesTheSignalAndElseEachOfItsRanks) {
  EXPECT_THAT(receivers(SIGTERM, {program(10, 1), program(11, 10), program(12, 10)}),
              ElementsAre(10));
  EXPECT_THAT(
      receivers(SIGUSR1, {helper(10, 1), program(11, 10), program(12, 10), program(13, 12)}),
      ElementsAre(11, 12));
}

TEST(SignalReceivers, AreTheInnermostShellThatHasATrap) {
  EXPECT_THAT(receivers(SIGTERM, {shell(10, 1, true), helper(11, 10)}), ElementsAre(10));
  EXPECT_THAT(receivers(SIGTERM, {shell(10, 1, true), shell(11, 10, true), helper(12, 11)}),
              ElementsAre(11));
  EXPECT_THAT(receivers(SIGTERM, {program(10, 1), shell(11, 10, true)}), ElementsAre(10));
}

TEST(SignalReceivers, AreTheShellAndNotWhatItHasJustForked) {
  SignalCandidate forked = shell(11, 10, true);
  forked.may_execute_soon = true;
  EXPECT_THAT(receivers(SIGTERM, {shell(10, 1, true), forked}), ElementsAre(10));
  EXPECT_THAT(receivers(SIGTERM, {shell(10, 1, true), forked, program(12, 10)}), ElementsAre(12))
      << "another program of the shell gets it";
  forked.parent = 13;
  EXPECT_THAT(receivers(SIGTERM, {shell(10, 1, true), shell(13, 10, false), forked}),
              ElementsAre(10))
      << "a subshell has no handlers of its shell, and its child blocks signals for a moment";
}

TEST(SignalReceivers, OfAnInterruptAreNoShells) {
  EXPECT_THAT(receivers(SIGINT, {shell(10, 1, true), helper(11, 10)}), IsEmpty());
  EXPECT_THAT(receivers(SIGINT, {shell(10, 1, true), program(11, 10)}), ElementsAre(11));
}

TEST(SignalReceivers, AreNoneWhereNobodyHandlesIt) {
  EXPECT_THAT(receivers(SIGTERM, {helper(10, 1), helper(11, 10)}), IsEmpty());
  EXPECT_THAT(receivers(SIGTERM, {}), IsEmpty());
}

TEST(SignalReceivers, AreFoundInACircleOfParents) {
  EXPECT_THAT(receivers(SIGTERM, {helper(10, 11), helper(11, 10), program(12, 11)}),
              ElementsAre(12));
}

TEST(SignalReceivers, HandleASignalOrBlockIt) {
  const std::string status =
      "Name:\tpython3\nShdPnd:\t0000000000000000\nSigBlk:\t0000000000001200\n"
      "SigIgn:\t0000000001001000\nSigCgt:\t0000000180004002\nCapInh:\t0000000000000000\n";
  EXPECT_TRUE(handles_signal(SIGTERM, status));
  EXPECT_TRUE(handles_signal(SIGINT, status));
  EXPECT_TRUE(handles_signal(SIGUSR1, status)) << "it is blocked, for signalfd() or sigwait()";
  EXPECT_FALSE(handles_signal(SIGUSR2, status));
  EXPECT_FALSE(handles_signal(SIGPIPE, status)) << "it is ignored";
  EXPECT_FALSE(handles_signal(SIGTERM, ""));
  EXPECT_FALSE(handles_signal(SIGTERM, "Name:\tx\nSigCgt:"));
}

TEST(SignalReceivers, KnowShellsByTheirProgram) {
  EXPECT_TRUE(is_shell("/usr/bin/bash"));
  EXPECT_TRUE(is_shell("/bin/dash"));
  EXPECT_FALSE(is_shell("/usr/bin/python3.11"));
  EXPECT_FALSE(is_shell("/usr/bin/ssh"));
  EXPECT_FALSE(is_shell(""));
}

TEST(EndedBySignal, IsAProcessThatNeitherHandlesNorBlocksNorIgnoresIt) {
  const auto is_ended = [](int signal, const char* blocked, const char* ignored,
                           const char* caught) {
    const std::string status = std::string("Name:\tpython\nSigBlk:\t") + blocked + "\nSigIgn:\t" +
                               ignored + "\nSigCgt:\t" + caught + "\n";
    return is_ended_by_signal(signal, status);
  };
  constexpr const char* kNone = "0000000000000000";
  constexpr const char* kTerm = "0000000000004000";
  EXPECT_TRUE(is_ended(SIGTERM, kNone, kNone, kNone));
  EXPECT_TRUE(is_ended(SIGKILL, kTerm, kNone, kTerm));
  EXPECT_FALSE(is_ended(SIGTERM, kNone, kNone, kTerm));
  EXPECT_FALSE(is_ended(SIGTERM, kTerm, kNone, kNone)) << "it may wait for the signal";
  EXPECT_FALSE(is_ended(SIGTERM, kNone, kTerm, kNone));
  EXPECT_FALSE(is_ended(SIGTERM, kTerm, kTerm, kNone));
  EXPECT_FALSE(is_ended_by_signal(SIGTERM, "")) << "nothing is known of the process";
}

}  // namespace
}  // namespace trainyard::process
