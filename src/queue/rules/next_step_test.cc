#include "queue/rules/next_step.h"

#include <csignal>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "run/run_directory.h"

namespace trainyard::queue {
namespace {

using run::ExitCode;
using run::RunOutcome;
using Stage = RunOutcome::Stage;
using testing::ElementsAre;

int number_of(ExitCode code) { return static_cast<int>(code); }

RunOutcome over(ExitCode code, std::string why = {}) {
  return {.stage = Stage::Over, .code = code, .why = std::move(why)};
}

/// A run that ended because no machine was left.
RunOutcome incomplete() { return over(ExitCode::NotDone, "no machine is left"); }

RunOutcome died() { return {.stage = Stage::Died}; }

sys::ProgramEnd exited(ExitCode code) { return {.exit_code = number_of(code)}; }

sys::ProgramEnd killed() { return {.signal = SIGKILL}; }

/// A run that has an outcome, and whose process exits with the code of it.
ProcessEnd end_with(const RunOutcome& outcome) {
  return {.process = exited(outcome.code), .outcome = outcome};
}

/// A run that began nothing, and whose process exits with this code.
ProcessEnd refused_with(ExitCode code) { return {.process = exited(code)}; }

Submission vit() {
  return {.number = 7, .run_directory = "/home/me/runs/vit", .job_file = "/home/me/vit.yaml"};
}

EndedSubmission ends(ExitCode code) { return {.exit_code = number_of(code)}; }

TEST(FoundRun, IsResumedIfItsOutcomeCannotBeRead) {
  EXPECT_EQ(step_for_found_run(std::nullopt, false), NextStep(StartNow{.had_begun = true}));
}

TEST(FoundRun, IsResumedIfItDied) {
  EXPECT_EQ(step_for_found_run(died(), false), NextStep(StartNow{.had_begun = true}));
}

TEST(FoundRun, IsResumedIfItWasInterrupted) {
  const RunOutcome interrupted{.stage = Stage::Interrupted, .code = ExitCode::Interrupted};
  EXPECT_EQ(step_for_found_run(interrupted, false), NextStep(StartNow{.had_begun = true}));
}

TEST(FoundRun, IsStartedIfItHasNotBegun) {
  EXPECT_EQ(step_for_found_run(RunOutcome{}, false), NextStep(StartNow{.had_begun = true}));
}

TEST(FoundRun, EndsIfAllTasksFinished) {
  EXPECT_EQ(step_for_found_run(over(ExitCode::Success), false), NextStep(ends(ExitCode::Success)));
}

TEST(FoundRun, EndsIfATaskFailed) {
  EXPECT_EQ(step_for_found_run(over(ExitCode::TaskFailed), false),
            NextStep(ends(ExitCode::TaskFailed)));
}

TEST(FoundRun, IsSetAsideIfItEndedIncomplete) {
  EXPECT_EQ(step_for_found_run(incomplete(), false),
            NextStep(SetAside{.why = "no machine is left"}));
}

TEST(FoundRun, EndsIfItWaitsForItsUser) {
  const RunOutcome waits = over(ExitCode::NotDone, std::string(run::kNotAllDone) + "no result");
  EXPECT_EQ(step_for_found_run(waits, false), NextStep(ends(ExitCode::NotDone)));
}

TEST(FoundRun, IsStartedIfItIsToRunAgainAlthoughItIsOver) {
  EXPECT_EQ(step_for_found_run(over(ExitCode::Success), true),
            NextStep(StartNow{.had_begun = true}));
  EXPECT_EQ(step_for_found_run(incomplete(), true), NextStep(StartNow{.had_begun = true}));
}

TEST(EndedProcess, EndsTheSubmissionWithItsExitCode) {
  EXPECT_EQ(step_after_process(end_with(over(ExitCode::Success))),
            NextStep(ends(ExitCode::Success)));
  EXPECT_EQ(step_after_process(end_with(over(ExitCode::TaskFailed))),
            NextStep(ends(ExitCode::TaskFailed)));
}

TEST(EndedProcess, CountsByItsExitCodeAndNotByTheJournal) {
  EXPECT_EQ(step_after_process(
                {.process = exited(ExitCode::TaskFailed), .outcome = over(ExitCode::Success)}),
            NextStep(ends(ExitCode::TaskFailed)));
}

TEST(EndedProcess, ThatWasNoChildCountsByTheJournal) {
  EXPECT_EQ(step_after_process({.outcome = over(ExitCode::TaskFailed)}),
            NextStep(ends(ExitCode::TaskFailed)));
}

TEST(EndedProcess, IsResumedAtOnceAfterItWasKilled) {
  EXPECT_EQ(step_after_process({.process = killed(), .outcome = died()}),
            NextStep(StartNow{.had_begun = true}));
}

TEST(EndedProcess, ThatWasNoChildWasKilledIfItsRunDied) {
  EXPECT_EQ(step_after_process({.outcome = died(), .deaths = 1}),
            NextStep(StartNow{.had_begun = true}));
}

TEST(EndedProcess, IsResumedAtOnceAfterThreeDeathsAndSetAsideAfterTheFourth) {
  EXPECT_EQ(step_after_process({.process = killed(), .outcome = died(), .deaths = 2}),
            NextStep(StartNow{.had_begun = true}));
  EXPECT_EQ(step_after_process({.process = killed(), .outcome = died(), .deaths = 3}),
            NextStep(SetAside{.why = "it was killed 4 times"}));
}

TEST(EndedProcess, IsResumedIfItWasKilledBeforeItBeganARun) {
  EXPECT_EQ(step_after_process({.process = killed()}), NextStep(StartNow{.had_begun = true}));
}

TEST(EndedProcess, IsResumedIfItWasKilledAfterItsLastTask) {
  EXPECT_EQ(step_after_process({.process = killed(), .outcome = over(ExitCode::Success)}),
            NextStep(StartNow{.had_begun = true}));
}

TEST(EndedProcess, ThatWasKilledIsLeftToTheNextServerIfThisOneStops) {
  EXPECT_EQ(step_after_process({.process = killed(), .outcome = died(), .server_stops = true}),
            NextStep(LeaveToNextServer{}));
  EXPECT_EQ(step_after_process(
                {.process = killed(), .outcome = died(), .deaths = 3, .server_stops = true}),
            NextStep(LeaveToNextServer{}));
}

TEST(EndedProcess, ThatTheServerInterruptedIsLeftToTheNextServer) {
  for (const ExitCode code : {ExitCode::Interrupted, ExitCode::Terminated}) {
    const RunOutcome outcome{.stage = Stage::Interrupted, .code = code};
    EXPECT_EQ(
        step_after_process({.process = exited(code), .outcome = outcome, .server_stops = true}),
        NextStep(LeaveToNextServer{}));
  }
}

TEST(EndedProcess, ThatItsUserInterruptedEndsTheSubmission) {
  for (const ExitCode code : {ExitCode::Interrupted, ExitCode::Terminated}) {
    EXPECT_EQ(step_after_process(end_with({.stage = Stage::Interrupted, .code = code})),
              NextStep(ends(code)));
  }
}

TEST(EndedProcess, EndsTheSubmissionIfItIsOverBeforeTheServerInterruptsIt) {
  ProcessEnd end = end_with(over(ExitCode::Success));
  end.server_stops = true;
  EXPECT_EQ(step_after_process(end), NextStep(ends(ExitCode::Success)));
}

TEST(EndedProcess, IsSetAsideIfItsRunIsIncomplete) {
  EXPECT_EQ(step_after_process(end_with(incomplete())),
            NextStep(SetAside{.why = "no machine is left"}));
}

TEST(EndedProcess, IsSetAsideIfItsRunIsIncompleteAndTheServerStops) {
  ProcessEnd end = end_with(incomplete());
  end.server_stops = true;
  EXPECT_EQ(step_after_process(end), NextStep(SetAside{.why = "no machine is left"}));
}

TEST(EndedProcess, EndsTheSubmissionIfATaskHasMovedTheDirectoryOfTheRun) {
  EXPECT_EQ(
      step_after_process({.process = exited(ExitCode::NotDone), .directory_lost = "it is lost"}),
      NextStep(EndedSubmission{.exit_code = 75, .why = "it is lost: submit it again"}));
}

TEST(EndedProcess, EndsTheSubmissionIfItsRunWaitsForItsUser) {
  EXPECT_EQ(step_after_process(
                end_with(over(ExitCode::NotDone, std::string(run::kNotAllDone) + "no result"))),
            NextStep(ends(ExitCode::NotDone)));
}

TEST(EndedProcess, IsSetAsideForTheReasonThatItPrintedIfItCouldRecordNone) {
  EXPECT_EQ(step_after_process({.process = exited(ExitCode::NotDone), .outcome = died()}),
            NextStep(SetAside{}));
}

TEST(EndedProcess, ThatBeganNothingIsRefused) {
  EXPECT_EQ(step_after_process(refused_with(ExitCode::Usage)),
            NextStep(EndedSubmission{.exit_code = 2, .no_start = NoStart::Refused}));
}

TEST(EndedProcess, ThatBeganNothingIsSetAsideIfNoTaskIsToBlame) {
  EXPECT_EQ(step_after_process(refused_with(ExitCode::NotDone)),
            NextStep(SetAside{.began = false}));
}

TEST(EndedProcess, ThatBeganNothingIsSetAsideIfTheDiskIsFull) {
  ProcessEnd end = refused_with(ExitCode::Usage);
  end.disk_is_full = true;
  EXPECT_EQ(step_after_process(end), NextStep(SetAside{.began = false}));
}

TEST(EndedProcess, ThatBeganIsNotSetAsideForAFullDisk) {
  ProcessEnd end = end_with(over(ExitCode::TaskFailed));
  end.disk_is_full = true;
  EXPECT_EQ(step_after_process(end), NextStep(ends(ExitCode::TaskFailed)));
}

TEST(EndedProcess, IsRefusedIfItCouldNotRunAllAgain) {
  EXPECT_EQ(step_after_process({.process = exited(ExitCode::Usage),
                                .outcome = over(ExitCode::Success),
                                .runs_again = true}),
            NextStep(EndedSubmission{.exit_code = 2, .no_start = NoStart::Refused}));
}

TEST(EndedProcess, IsSetAsideIfAllCouldNotRunAgainForWantOfSomething) {
  EXPECT_EQ(step_after_process({.process = exited(ExitCode::NotDone),
                                .outcome = over(ExitCode::Success),
                                .runs_again = true}),
            NextStep(SetAside{.began = false}));
}

TEST(EndedProcess, IsNotRefusedIfATaskFailedWhenAllRanAgain) {
  ProcessEnd end = end_with(over(ExitCode::TaskFailed));
  end.runs_again = true;
  EXPECT_EQ(step_after_process(end), NextStep(ends(ExitCode::TaskFailed)));
}

TEST(Errors, OfTheMachineSetASubmissionAsideUntilItCanStart) {
  Error error{"too many processes"};
  error.of_machine = true;
  EXPECT_EQ(step_after_error(error),
            NextStep(SetAside{.began = false, .why = "too many processes"}));
}

TEST(Errors, OfTheSubmissionRefuseIt) {
  EXPECT_EQ(step_after_error(Error{"a line has no name"}),
            NextStep(EndedSubmission{
                .exit_code = 2, .no_start = NoStart::Refused, .why = "a line has no name"}));
}

TEST(Errors, GiveUpARunThatCannotBeResumed) {
  EXPECT_EQ(
      step_after_error(Error{"'trainyard.run.log' cannot be written"}, RunCommand::Resume),
      NextStep(EndedSubmission{.exit_code = 2, .why = "'trainyard.run.log' cannot be written"}));
}

TEST(SkippedSubmissions, EndAsAFailure) {
  EXPECT_EQ(end_of_skipped({.number = 7, .why = "needs run 3", .needed = 3}),
            (EndedSubmission{.exit_code = 1, .no_start = NoStart::Skipped, .why = "needs run 3"}));
}

TEST(SkippedSubmissions, EndAsASuccessIfTheyWereNotNeeded) {
  EXPECT_EQ(end_of_skipped({.number = 7, .why = "the others succeeded", .not_needed = true}),
            (EndedSubmission{.no_start = NoStart::NotNeeded, .why = "the others succeeded"}));
}

TEST(Notifications, AreSentForSubmissionsThatDidNotStart) {
  for (const NoStart no_start : {NoStart::Refused, NoStart::DirectoryGone, NoStart::Skipped}) {
    EXPECT_TRUE(is_notified({.no_start = no_start}));
  }
}

TEST(Notifications, AreNotSentForSubmissionsThatWereNotNeeded) {
  EXPECT_FALSE(is_notified({.no_start = NoStart::NotNeeded}));
}

TEST(Notifications, AreNotSentForRunsThatBegan) { EXPECT_FALSE(is_notified({.exit_code = 1})); }

TEST(RunsToStart, RunTheirJobFirst) {
  EXPECT_EQ(std::get<RunCommand>(command_for({})), RunCommand::Run);
}

TEST(RunsToStart, RunTheirJobIfTheyAreFoundAndHaveNotBegun) {
  EXPECT_EQ(std::get<RunCommand>(command_for({.had_begun = true})), RunCommand::Run);
}

TEST(RunsToStart, AreNotResumedIfTheSubmissionIsNew) {
  EXPECT_EQ(std::get<RunCommand>(command_for({.outcome = died()})), RunCommand::Run);
}

TEST(RunsToStart, AreResumedAfterADeath) {
  EXPECT_EQ(std::get<RunCommand>(command_for({.had_begun = true, .outcome = died()})),
            RunCommand::Resume);
}

TEST(RunsToStart, AreResumedAfterAnIncompleteEnd) {
  EXPECT_EQ(std::get<RunCommand>(command_for({.had_begun = true, .outcome = incomplete()})),
            RunCommand::Resume);
}

TEST(RunsToStart, EndIfTheirDirectoryIsGone) {
  EXPECT_EQ(std::get<EndedSubmission>(command_for({.directory_lost = "it is lost",
                                                   .outcome = over(ExitCode::Success),
                                                   .was_put_back = true,
                                                   .needs_ran_again = true})),
            (EndedSubmission{.exit_code = 2,
                             .no_start = NoStart::DirectoryGone,
                             .why = "it is lost: submit it again"}));
}

TEST(RunsToStart, RunAllAgainIfTheyWerePutBackAndAreOutOfDate) {
  EXPECT_EQ(
      std::get<RunCommand>(command_for(
          {.outcome = over(ExitCode::Success), .was_put_back = true, .needs_ran_again = true})),
      RunCommand::RetryAll);
}

TEST(RunsToStart, DoNotRunAllAgainIfTheyWereNotPutBack) {
  EXPECT_EQ(std::get<RunCommand>(
                command_for({.had_begun = true, .outcome = incomplete(), .needs_ran_again = true})),
            RunCommand::Resume);
}

TEST(RunsToStart, AreResumedAfterADeathWhileAllRanAgain) {
  EXPECT_EQ(
      std::get<RunCommand>(command_for(
          {.had_begun = true, .outcome = died(), .was_put_back = true, .needs_ran_again = true})),
      RunCommand::Resume);
}

TEST(RunsToStart, EndWithTheirOutcomeIfTheUserHasRetriedThemMeanwhile) {
  EXPECT_EQ(std::get<EndedSubmission>(
                command_for({.outcome = over(ExitCode::TaskFailed), .was_put_back = true})),
            ends(ExitCode::TaskFailed));
}

TEST(RunsToStart, AreResumedIfTheUsersRetryDied) {
  EXPECT_EQ(std::get<RunCommand>(command_for({.outcome = died(), .was_put_back = true})),
            RunCommand::Resume);
}

TEST(RunsToStart, AreResumedIfTheyWerePutBackAndWereIncompleteLater) {
  EXPECT_EQ(std::get<RunCommand>(
                command_for({.had_begun = true, .outcome = incomplete(), .was_put_back = true})),
            RunCommand::Resume);
}

TEST(RunsToStart, RunTheirJobIfTheyWerePutBackBeforeTheyBegan) {
  EXPECT_EQ(std::get<RunCommand>(command_for({.was_put_back = true})), RunCommand::Run);
}

TEST(Arguments, NameTheJobAndTheDirectoryOfANewRun) {
  EXPECT_THAT(arguments_of(vit(), RunCommand::Run),
              ElementsAre("run", "/home/me/vit.yaml", "--run-dir", "/home/me/runs/vit"));
}

TEST(Arguments, ResumeARunInItsDirectory) {
  EXPECT_THAT(arguments_of(vit(), RunCommand::Resume),
              ElementsAre("run", "/home/me/vit.yaml", "--resume", "/home/me/runs/vit"));
}

TEST(Arguments, RetryAllTasksOfARunWithThoseOfItsJournal) {
  Submission with_settings = vit();
  with_settings.settings = {"retries=3"};
  EXPECT_THAT(arguments_of(with_settings, RunCommand::RetryAll),
              ElementsAre("retry", "/home/me/runs/vit", "--cascade"));
}

TEST(Arguments, HaveTheConfigurationAndTheSettingsOfTheSubmission) {
  Submission with_settings = vit();
  with_settings.config_file = "/home/me/yard.yaml";
  with_settings.settings = {"a=1", "b=2"};
  EXPECT_THAT(arguments_of(with_settings, "post-not-started", "--run-dir"),
              ElementsAre("post-not-started", "/home/me/vit.yaml", "--run-dir", "/home/me/runs/vit",
                          "--config", "/home/me/yard.yaml", "--set", "a=1", "--set", "b=2"));
}

SetAside no_machine() { return {.why = "no machine is left"}; }

SetAside no_start() { return {.began = false, .why = "too many processes"}; }

/// Notes this number of ends of run 7 at time 0; the outcome of the last one.
std::variant<IncompleteRun, EndedSubmission> note_ends(Setbacks& setbacks, int count,
                                                       const SetAside& step, int finished = 0) {
  for (int end = 1; end < count; ++end) {
    EXPECT_TRUE(std::holds_alternative<IncompleteRun>(setbacks.note_end(7, step, finished, 0)));
  }
  return setbacks.note_end(7, step, finished, 0);
}

TEST(Setbacks, PauseARunThatEndedIncomplete) {
  Setbacks setbacks;
  EXPECT_FALSE(setbacks.is_incomplete(7));
  EXPECT_EQ(std::get<IncompleteRun>(setbacks.note_end(7, no_machine(), 3, 1'000)),
            (IncompleteRun{
                .ends = 1, .finished = 3, .resumes_unix_ms = 61'000, .why = "no machine is left"}));
  EXPECT_TRUE(setbacks.is_incomplete(7));
  EXPECT_FALSE(setbacks.is_incomplete(8));
  EXPECT_EQ(setbacks.pause_left(7, 1'000), Duration{60'000});
  EXPECT_EQ(setbacks.pause_left(7, 31'000), Duration{30'000});
  EXPECT_EQ(setbacks.pause_left(7, 61'000), Duration{0});
  EXPECT_EQ(setbacks.pause_left(7, 90'000), Duration{0});
}

TEST(Setbacks, DoubleThePausesUpToHalfAnHour) {
  Setbacks setbacks;
  std::vector<std::int64_t> minutes;
  for (int end = 0; end < 7; ++end) {
    EXPECT_TRUE(std::holds_alternative<IncompleteRun>(setbacks.note_end(7, no_start(), 0, 1'000)));
    minutes.push_back(setbacks.pause_left(7, 1'000).count() / 60'000);
  }
  EXPECT_THAT(minutes, ElementsAre(1, 2, 4, 8, 16, 30, 30));
}

TEST(Setbacks, EndARunAfterSixEndsInARowWithoutATaskThatFinished) {
  Setbacks setbacks;
  note_ends(setbacks, kIncompleteEndsMax - 1, no_machine(), 3);
  EXPECT_EQ(std::get<IncompleteRun>(setbacks.note_end(7, no_machine(), 4, 0)).ends, 1);
  EXPECT_EQ(std::get<EndedSubmission>(note_ends(setbacks, kIncompleteEndsMax - 1, no_machine(), 4)),
            (EndedSubmission{.exit_code = 75,
                             .why = "ended incomplete 6 times in a row (no machine is left)"}));
}

TEST(Setbacks, NeverEndARunThatCouldNotStart) {
  Setbacks setbacks;
  EXPECT_EQ(std::get<IncompleteRun>(note_ends(setbacks, 100, no_start())).ends, 100);
}

TEST(Setbacks, ContinueWithThoseThatAnEarlierServerCounted) {
  Setbacks setbacks;
  setbacks.take_up(7, {.ends = 2, .finished = 3, .resumes_unix_ms = 5'000});
  EXPECT_EQ(setbacks.pause_left(7, 2'000), Duration{3'000});
  EXPECT_EQ(std::get<IncompleteRun>(setbacks.note_end(7, no_machine(), 3, 5'000)).ends, 3);
}

TEST(Setbacks, ShowThatTheMachineIsShortUntilTheRunThatCouldNotStartHasStarted) {
  Setbacks setbacks;
  setbacks.note_start(7);
  EXPECT_FALSE(setbacks.is_machine_short());
  setbacks.take_up(7, {.ends = 5});
  EXPECT_FALSE(setbacks.is_machine_short());
  setbacks.take_up(8, {.ends = 1, .began = false});
  EXPECT_TRUE(setbacks.is_machine_short());
  setbacks.note_start(7);
  EXPECT_TRUE(setbacks.is_machine_short());
  setbacks.note_start(8);
  EXPECT_FALSE(setbacks.is_machine_short());
  EXPECT_TRUE(setbacks.is_incomplete(8)) << "its ends still count";
}

TEST(Setbacks, CountTheDeathsOfARunInARow) {
  Setbacks setbacks;
  EXPECT_EQ(setbacks.deaths_of(7), 0);
  setbacks.note_death(7);
  setbacks.note_death(7);
  EXPECT_EQ(setbacks.deaths_of(7), 2);
  EXPECT_EQ(setbacks.deaths_of(8), 0);
  EXPECT_FALSE(setbacks.is_incomplete(7)) << "it is resumed at once";
  note_ends(setbacks, 1, no_machine());
  EXPECT_EQ(setbacks.deaths_of(7), 0);
}

TEST(Setbacks, AreForgottenWhenTheSubmissionHasEnded) {
  Setbacks setbacks;
  note_ends(setbacks, 3, no_start());
  setbacks.note_death(7);
  setbacks.forget(7);
  EXPECT_FALSE(setbacks.is_incomplete(7));
  EXPECT_FALSE(setbacks.is_machine_short());
  EXPECT_EQ(setbacks.deaths_of(7), 0);
  EXPECT_EQ(std::get<IncompleteRun>(note_ends(setbacks, 1, no_machine())).ends, 1);
}

TEST(Setbacks, OfIncompleteRunsAreForgottenWhenTheyAreTakenOutOfTheQueue) {
  Setbacks setbacks;
  setbacks.take_up(7, {.ends = 1, .began = false});
  setbacks.take_up(8, {.ends = 1});
  setbacks.forget_if([](std::uint32_t number) { return number == 7; });
  EXPECT_FALSE(setbacks.is_incomplete(7));
  EXPECT_FALSE(setbacks.is_machine_short());
  EXPECT_TRUE(setbacks.is_incomplete(8));
}

}  // namespace

}  // namespace trainyard::queue
