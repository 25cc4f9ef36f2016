#include "queue/queue_server.h"

#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "run/run_directory.h"
#include "sys/clock.h"
#include "sys/fifo.h"
#include "sys/test_directory.h"

namespace trainyard::queue {
namespace {

using run::ExitCode;
using run::RunOutcome;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using Place = QueueFiles::Place;

/// A queue of runs that have no processes: the test says what their journals say.
class QueueServerTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(files_.make("")); }

  /// Makes a submission with a directory of its own.
  Submission submission(std::uint32_t number) {
    place_.make(std::to_string(number));
    const std::string directory = place_ / std::to_string(number);
    EXPECT_TRUE(sys::replace_file(run::submission_path(directory), to_text(SubmissionMark{})));
    return {.number = number, .run_directory = directory, .directory = "/"};
  }

  /// Adds a submission whose run has this outcome.
  void add_begun(const Submission& submission, const RunOutcome& outcome) {
    add_waiting(submission);
    ASSERT_TRUE(files_.begin(submission.number));
    outcomes_[submission.run_directory] = outcome;
  }

  void add_waiting(const Submission& submission) { ASSERT_TRUE(files_.add(submission)); }

  /// Serves the queue until it has nothing more to do at this moment.
  void serve() {
    auto lock = sys::RunLock::take(files_.directory());
    auto words = sys::open_fifo(files_.words_path());
    ASSERT_TRUE(lock && words);
    QueueServer server(files_, std::move(*lock), std::move(*words),
                       {.outcome_of = [this](const std::string& run) -> Result<RunOutcome> {
                          return outcomes_[run];
                        },
                        .count_finished = [this](const std::string&) { return finished_; },
                        .is_out_of_date = [this](const std::string&) { return is_out_of_date_; },
                        .fate_of =
                            [this](const QueueFiles& files, std::uint32_t number) {
                              if (at_look_) at_look_();
                              const auto ended = files.ended(number);
                              if (!ended)
                                return files.place_of(number) ? Fate::NotEnded : Fate::Unknown;
                              return ended->exit_code == 0 ? Fate::EndedWell : Fate::EndedBadly;
                            },
                        .note = [this](const std::string& text) { notes_.push_back(text); }});
    if (!at_look_) {
      EXPECT_TRUE(sys::tell_fifo(files_.words_path(), kDownWord));
    }
    server.serve();
  }

  sys::TemporaryDirectory place_{sys::TemporaryDirectory::in_memory()};
  QueueFiles files_{place_ / "state/queue"};
  std::map<std::string, RunOutcome> outcomes_;
  int finished_ = 0;
  Result<bool> is_out_of_date_ = false;
  /// Called in each look, if a submission waits for a run. Has to write the word that ends serve().
  std::function<void()> at_look_;
  std::vector<std::string> notes_;
};

RunOutcome ended_with(ExitCode code, std::string why = {}) {
  return {.stage = RunOutcome::Stage::Over, .code = code, .why = std::move(why)};
}

TEST_F(QueueServerTest, EndsASubmissionWhoseRunEndedWhileNoServerWasUp) {
  add_begun(submission(1), ended_with(ExitCode::TaskFailed));
  serve();
  EXPECT_THAT(files_.numbers(Place::Begun), IsEmpty());
  const auto ended = files_.ended(1);
  ASSERT_TRUE(ended);
  EXPECT_EQ(ended->exit_code, 1);
  EXPECT_EQ(ended->no_start, std::nullopt);
  EXPECT_GT(ended->ended_unix_ms, 0);
}

TEST_F(QueueServerTest, KeepsASubmissionWhoseRunIsIncompleteAndPausesIt) {
  add_begun(submission(1), ended_with(ExitCode::NotDone, "no machine is left"));
  finished_ = 3;
  const std::int64_t before = sys::unix_milliseconds();
  serve();
  const auto kept = files_.read(Place::Begun, 1);
  ASSERT_TRUE(kept && kept->incomplete);
  EXPECT_EQ(kept->incomplete->ends, 1);
  EXPECT_EQ(kept->incomplete->finished, 3);
  EXPECT_TRUE(kept->incomplete->began);
  EXPECT_EQ(kept->incomplete->why, "no machine is left");
  EXPECT_GE(kept->incomplete->resumes_unix_ms, before + 60'000);
  EXPECT_THAT(notes_, ElementsAre("run 1 is incomplete and is resumed later: no machine is left"));
}

TEST_F(QueueServerTest, SaysOfAnIncompleteRunThatRecordedNoReasonWhatItPrintedLast) {
  const std::string log = run::run_log_path(submission(1).run_directory);
  ASSERT_TRUE(sys::replace_file(log, "trainyard: run 5\ntrainyard: cannot write the journal\n"));
  add_begun(submission(1), ended_with(ExitCode::NotDone));
  serve();
  EXPECT_THAT(notes_, ElementsAre("run 1 is incomplete and is resumed later: "
                                  "cannot write the journal"));
}

TEST_F(QueueServerTest, TakesNoLineOfATaskForTheReasonOfAnIncompleteRun) {
  const std::string log = run::run_log_path(submission(1).run_directory);
  ASSERT_TRUE(sys::replace_file(log, "trainyard: run 5\n  a/lr=1  running\n"));
  add_begun(submission(1), ended_with(ExitCode::NotDone));
  serve();
  EXPECT_THAT(notes_, ElementsAre("run 1 is incomplete and is resumed later: "
                                  "it could not write the reason"));
}

TEST_F(QueueServerTest, LeavesAPausedRunAsItIs) {
  Submission paused = submission(1);
  paused.incomplete = IncompleteRun{
      .ends = 2, .resumes_unix_ms = sys::unix_milliseconds() + 3'600'000, .why = "no machine"};
  add_begun(paused, ended_with(ExitCode::NotDone, "no machine"));
  serve();
  EXPECT_EQ(files_.read(Place::Begun, 1), paused);
  EXPECT_THAT(notes_, IsEmpty());
}

TEST_F(QueueServerTest, StartsNothingWhileARunThatCouldNotStartIsPaused) {
  Submission paused = submission(1);
  paused.incomplete = IncompleteRun{.ends = 1,
                                    .resumes_unix_ms = sys::unix_milliseconds() + 3'600'000,
                                    .began = false,
                                    .why = "too many processes"};
  add_begun(paused, {});
  add_waiting(submission(2));
  serve();
  EXPECT_THAT(files_.numbers(Place::Waiting), ElementsAre(2));
}

TEST_F(QueueServerTest, PausesARunOfWhichItCannotReadWhetherItIsOutOfDate) {
  Submission returned = submission(1);
  returned.runs_again = true;
  add_begun(returned, ended_with(ExitCode::Success));
  Error shortage{"too many open files"};
  shortage.of_machine = true;
  is_out_of_date_ = std::unexpected(shortage);
  serve();
  const auto kept = files_.read(Place::Begun, 1);
  ASSERT_TRUE(kept && kept->incomplete);
  EXPECT_FALSE(kept->incomplete->began);
  EXPECT_EQ(kept->incomplete->why, "too many open files");
}

TEST_F(QueueServerTest, StartsNoReturnedRunOfWhichItCannotReadWhetherItIsOutOfDate) {
  Submission returned = submission(1);
  returned.runs_again = true;
  add_waiting(returned);
  Error shortage("too many open files");
  shortage.of_machine = true;
  is_out_of_date_ = std::unexpected(shortage);
  serve();
  EXPECT_EQ(files_.ended(1), std::nullopt);
  const auto kept = files_.read(Place::Begun, 1);
  ASSERT_TRUE(kept && kept->incomplete);
  EXPECT_EQ(kept->incomplete->why, "too many open files");
}

TEST_F(QueueServerTest, SkipsTheSubmissionsBehindARunThatFailed) {
  add_begun(submission(1), ended_with(ExitCode::TaskFailed));
  Submission second = submission(2);
  second.needs = {1};
  add_waiting(second);
  Submission third = submission(3);
  third.needs = {2};
  add_waiting(third);
  serve();
  EXPECT_THAT(files_.numbers(Place::Waiting), IsEmpty());
  for (const std::uint32_t number : {2U, 3U}) {
    const auto ended = files_.ended(number);
    ASSERT_TRUE(ended);
    EXPECT_EQ(ended->exit_code, 1);
    EXPECT_EQ(ended->no_start, NoStart::Skipped);
    EXPECT_EQ(ended->why, "needs run " + std::to_string(number - 1) + ", which did not succeed");
  }
}

TEST_F(QueueServerTest, EndsASubmissionThatWasForAFailureWhenThereWasNone) {
  add_begun(submission(1), ended_with(ExitCode::Success));
  Submission alarm = submission(2);
  alarm.needs = {1};
  alarm.run_if = model::RunIf::Failure;
  add_waiting(alarm);
  serve();
  const auto ended = files_.ended(2);
  ASSERT_TRUE(ended);
  EXPECT_EQ(ended->exit_code, 0);
  EXPECT_EQ(ended->no_start, NoStart::NotNeeded);
}

TEST_F(QueueServerTest, EndsASubmissionWhoseDirectoryIsGone) {
  add_waiting({.number = 1, .run_directory = place_ / "gone", .directory = "/"});
  serve();
  const auto ended = files_.ended(1);
  ASSERT_TRUE(ended);
  EXPECT_EQ(ended->exit_code, 2);
  EXPECT_EQ(ended->no_start, NoStart::DirectoryGone);
}

TEST_F(QueueServerTest, FindsASubmissionWhoseSubmitWasKilledBeforeItWroteItsWord) {
  Submission paused = submission(1);
  paused.incomplete =
      IncompleteRun{.ends = 1, .resumes_unix_ms = sys::unix_milliseconds() + 3'600'000};
  add_begun(paused, ended_with(ExitCode::NotDone));
  Submission behind = submission(2);
  behind.needs = {1};
  add_waiting(behind);
  at_look_ = [this] {
    // The first look has read the waiting submissions already.
    if (!files_.place_of(3)) {
      add_waiting({.number = 3, .run_directory = place_ / "gone", .directory = "/"});
    }
    if (files_.ended(3)) {
      EXPECT_TRUE(sys::tell_fifo(files_.words_path(), kDownWord));
    }
  };
  serve();
  EXPECT_THAT(files_.numbers(Place::Ended), ElementsAre(3));
  EXPECT_THAT(files_.numbers(Place::Waiting), ElementsAre(2));
}

TEST_F(QueueServerTest, RefusesASubmissionWhoseFileIsDamaged) {
  ASSERT_TRUE(sys::replace_file(files_.directory() + "/begun/1", "trainyard"));
  serve();
  EXPECT_THAT(files_.numbers(Place::Begun), IsEmpty());
  const auto ended = files_.ended(1);
  ASSERT_TRUE(ended);
  EXPECT_EQ(ended->exit_code, 2);
  EXPECT_EQ(ended->no_start, NoStart::Refused);
  EXPECT_THAT(ended->why, HasSubstr("truncated"));
}

TEST_F(QueueServerTest, BeginsNothingWhileItDrains) {
  ASSERT_TRUE(files_.set_draining(true));
  add_waiting(submission(1));
  serve();
  EXPECT_THAT(files_.numbers(Place::Waiting), ElementsAre(1));
}

}  // namespace
}  // namespace trainyard::queue
