// The words by which tasks are chosen.
#include "report/task_state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace trainyard::report {
namespace {

using model::Failure;
using model::Standing;
using model::Verdict;
using ::testing::HasSubstr;

bool is(const Standing& standing, std::string_view word) {
  return is_in(standing, read_task_state(word).value());
}

constexpr Standing kOutOfMemory{
    .status = Status::Exception, .verdict = Verdict::Failed, .failure = Failure::OutOfMemory};

TEST(TaskState, IsReadInSmallAndLargeLetters) {
  EXPECT_EQ(read_task_state("oom").value(), TaskState::OutOfMemory);
  EXPECT_EQ(read_task_state("OUT_OF_MEMORY").value(), TaskState::OutOfMemory);
  EXPECT_EQ(task_state_word(TaskState::OutOfMemory), "oom");
  EXPECT_EQ(read_task_state("held").value(), TaskState::OnHold);
  EXPECT_EQ(task_state_word(TaskState::OnHold), "on-hold");
  EXPECT_EQ(task_state_word(TaskState::Unfinished), "unfinished");
  EXPECT_EQ(read_task_state("Cannot_Start").value(), TaskState::CannotStart);
}

TEST(TaskState, NamesTheNearestWordOrAll) {
  EXPECT_EQ(read_task_state("faild").error().message,
            "unknown state ':faild' (did you mean ':failed'?)");
  EXPECT_EQ(read_task_state("fail").error().message,
            "unknown state ':fail' (did you mean ':failed'?)");
  EXPECT_THAT(read_task_state("").error().message,
              HasSubstr("use :waiting, :on-hold, :held, :running, :retrying"));
}

TEST(TaskState, OfAFailureIsItsCauseAndFailed) {
  for (const std::string_view word : {"failed", "oom", "ended", "unfinished"}) {
    EXPECT_TRUE(is(kOutOfMemory, word)) << word;
  }
  for (const std::string_view word :
       {"timeout", "killed", "crashed", "exit", "cannot-start", "lost", "error", "skipped",
        "stopped", "finished", "running", "waiting"}) {
    EXPECT_FALSE(is(kOutOfMemory, word)) << word;
  }
  const Standing crashed{
      .status = Status::Exception, .verdict = Verdict::Failed, .failure = Failure::Crashed};
  EXPECT_TRUE(is(crashed, "crashed"));
  EXPECT_FALSE(is(crashed, "killed"));
}

TEST(TaskState, IsSelectedByTheIdOfEachEnd) {
  for (const model::TaskEnd& end : model::all_ends()) {
    for (const model::TaskEnd& other : model::all_ends()) {
      const Standing standing{.verdict = other.verdict, .failure = other.failure};
      EXPECT_EQ(is(standing, end.id), end.id == other.id) << end.id << ", " << other.id;
    }
  }
}

TEST(TaskState, OfATryThatRanOutOfMemoryIsNotThatOfAFailure) {
  const Standing retrying{.status = Status::Interrupt, .failure = Failure::OutOfMemory};
  EXPECT_TRUE(is(retrying, "retrying"));
  EXPECT_FALSE(is(retrying, "oom"));
  EXPECT_FALSE(is(retrying, "failed"));
  EXPECT_FALSE(is(retrying, "ended"));
}

TEST(TaskState, OfWhatRanWhenItsRunDiedIsLost) {
  const Standing lost{.status = Status::Training, .failure = Failure::Lost};
  EXPECT_TRUE(is(lost, "lost"));
  EXPECT_TRUE(is(lost, "failed"));
  EXPECT_FALSE(is(lost, "running"));
}

TEST(TaskState, OfATaskWithoutAVerdictIsWhatItDoes) {
  EXPECT_TRUE(is({.status = Status::Init}, "waiting"));
  EXPECT_TRUE(is({.status = Status::Training}, "running"));
  EXPECT_TRUE(is({.status = Status::Training}, "unfinished"));
  EXPECT_TRUE(is({.status = Status::Exited, .verdict = Verdict::Finished}, "finished"));
  EXPECT_FALSE(is({.status = Status::Exited, .verdict = Verdict::Finished}, "unfinished"));
  EXPECT_TRUE(is({.status = Status::Init, .verdict = Verdict::Skipped}, "skipped"));
  EXPECT_TRUE(is({.status = Status::Init, .verdict = Verdict::Stopped}, "stopped"));
  EXPECT_TRUE(is({.status = Status::Init, .verdict = Verdict::NotSelected}, "not-selected"));
  EXPECT_FALSE(is({.status = Status::Init, .verdict = Verdict::NotSelected}, "skipped"));
}

}  // namespace
}  // namespace trainyard::report
