// The ten statuses, their arrows and the words that people read.
#include "model/status.h"

#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace trainyard::model {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<std::string_view> followers(Status from) {
  std::vector<std::string_view> names;
  for (int i = 0; i < 10; ++i) {
    if (may_follow(from, static_cast<Status>(i))) names.push_back(to_text(static_cast<Status>(i)));
  }
  return names;
}

TEST(Status, FollowsTheArrowsOfThePictureAndNoOthers) {
  EXPECT_THAT(followers(Status::Unknown), ElementsAre("EXCEPTION", "INTERRUPT"));
  EXPECT_THAT(followers(Status::Init), ElementsAre("AVAILABLE", "EXCEPTION"));
  EXPECT_THAT(followers(Status::Available),
              ElementsAre("UNKNOWN", "LOADING", "TRAINING", "EXCEPTION", "INTERRUPT"));
  EXPECT_THAT(followers(Status::Loading),
              ElementsAre("UNKNOWN", "WAITING", "EXCEPTION", "INTERRUPT"));
  EXPECT_THAT(followers(Status::Waiting),
              ElementsAre("UNKNOWN", "TRAINING", "EXCEPTION", "INTERRUPT"));
  EXPECT_THAT(followers(Status::Training),
              ElementsAre("UNKNOWN", "FINISHED", "EXCEPTION", "INTERRUPT"));
  EXPECT_THAT(followers(Status::Finished), ElementsAre("EXITED", "EXCEPTION"));
  EXPECT_THAT(followers(Status::Exited), IsEmpty());
  EXPECT_THAT(followers(Status::Exception), IsEmpty());
  EXPECT_THAT(followers(Status::Interrupt), ElementsAre("AVAILABLE", "WAITING", "EXCEPTION"));
}

TEST(Status, IsToldInWordsThatAPersonKnows) {
  EXPECT_EQ(word_for({.status = Status::Init}), "WAITING");
  EXPECT_EQ(word_for({.status = Status::Available}), "RUNNING");
  EXPECT_EQ(word_for({.status = Status::Training}), "RUNNING");
  EXPECT_EQ(word_for({.status = Status::Interrupt}), "RETRYING");
  EXPECT_EQ(word_for({.status = Status::Exited, .verdict = Verdict::Finished}), "FINISHED");
  EXPECT_EQ(word_for({.verdict = Verdict::Skipped}), "SKIPPED");
  EXPECT_EQ(word_for({.verdict = Verdict::Stopped}), "STOPPED");
  const auto failed = [](Failure failure, int code = 0) {
    return word_for({.status = Status::Exception,
                     .verdict = Verdict::Failed,
                     .failure = failure,
                     .exit_code = code});
  };
  EXPECT_EQ(failed(Failure::OutOfMemory), "OUT_OF_MEMORY");
  EXPECT_EQ(failed(Failure::Timeout), "TIMEOUT");
  EXPECT_EQ(failed(Failure::Killed), "KILLED");
  EXPECT_EQ(failed(Failure::Crashed, kSignalCode + 11), "SIGSEGV");
  EXPECT_EQ(failed(Failure::Exit, 3), "EXIT 3");
  EXPECT_EQ(failed(Failure::Exit, kSignalCode + 11), "EXIT 139");
  EXPECT_EQ(failed(Failure::CannotStart), "CANNOT_START");
  EXPECT_EQ(failed(Failure::Lost), "LOST");
  EXPECT_EQ(failed(Failure::Error), "ERROR");
}

TEST(TaskEnd, IsFoundByVerdictAndFailure) {
  for (const TaskEnd& end : all_ends()) {
    EXPECT_EQ(end_of({.verdict = end.verdict, .failure = end.failure}), &end) << end.id;
  }
  EXPECT_EQ(end_of({.status = Status::Interrupt, .failure = Failure::OutOfMemory}), nullptr)
      << "its next attempt may finish";
}

TEST(TaskEnd, ExistsForEachVerdictAndFailureThatAJournalContains) {
  for (int number = 1; number <= static_cast<int>(Verdict::NotNeeded); ++number) {
    const auto verdict = static_cast<Verdict>(number);
    if (verdict == Verdict::Failed) continue;
    EXPECT_NE(end_of({.verdict = verdict}), nullptr) << number;
  }
  for (int number = 1; number <= static_cast<int>(Failure::Crashed); ++number) {
    const auto failure = static_cast<Failure>(number);
    EXPECT_NE(end_of({.verdict = Verdict::Failed, .failure = failure}), nullptr) << number;
  }
}

TEST(TaskEnd, HasItsWordInLowerCaseWithHyphensAsItsId) {
  for (const TaskEnd& end : all_ends()) {
    std::string id(end.word);
    for (char& letter : id) {
      letter = letter == '_' ? '-' : static_cast<char>(letter - 'A' + 'a');
    }
    EXPECT_EQ(end.id, id);
  }
}

TEST(Status, KnowsTheSignalsOfACrashByTheirNames) {
  std::vector<std::string> crashes;
  for (int signal = -1; signal <= 64; ++signal) {
    if (!crash_meaning(signal).empty()) crashes.push_back(signal_name(signal));
  }
  EXPECT_THAT(crashes, ElementsAre("SIGILL", "SIGABRT", "SIGBUS", "SIGFPE", "SIGSEGV"));
  EXPECT_EQ(signal_name(9), "SIGKILL");
  EXPECT_EQ(signal_name(64), "signal 64");
}

}  // namespace
}  // namespace trainyard::model
